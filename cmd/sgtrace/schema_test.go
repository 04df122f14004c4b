package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/docs"
	"github.com/sgtrace/sgtrace/golden/otlp"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// A schemaField is a field that --format json prints: a column, or the path of a value in an object
// that is not a table.
type schemaField struct{ key, unit, doc string }

var schemaName = regexp.MustCompile(`^sgtrace\.[a-z.-]+/v[0-9]+$`)

// printedSchemas prints every report as JSON and returns the fields of every schema.
func printedSchemas(t *testing.T) map[string][]schemaField {
	t.Helper()
	dir, pipeline, rid := schemaInputs(t)
	otel, torch, nsys := filepath.Join(dir, "otel.jsonl"), filepath.Join(dir, "torch"), filepath.Join(dir, "nsys")
	schemas := map[string][]schemaField{}
	clocks, extracted := filepath.Join(t.TempDir(), "clocks.json"), filepath.Join(t.TempDir(), "dataset")
	if status := run([]string{"sgtrace", "extract", "-o", extracted, pipeline}, nil, &bytes.Buffer{}, &bytes.Buffer{}); status != exitOK {
		t.Fatalf("extract: status %d", status)
	}
	for _, args := range [][]string{
		{"requests", otel}, {"request", rid, otel}, {"live", "--at", "+15s", otel}, {"inspect", otel, torch, nsys, serverLog(t)}, {"dataset", "ls", extracted},
		{"report", "--by-stage", otel}, {"report", "--latency", otel}, {"report", "--tail", otel}, {"report", "--timeline", "--slo", "ttft=100ms", otel}, {"report", "--timeline", otel, torch, nsys},
		{"report", "--by-rank", otel, torch}, {"report", "--by-rank", pipeline}, {"report", "--tail", pipeline}, {"report", "--by-rank", allToAll(t)}, {"report", "--by-rank", glooRun().write(t)}, {"report", "--summary", "--slo", "ttft=100ms,itl=20ms", otel, torch},
		{"report", "--hang", hung(t)}, {"report", "--memory", allocated(t)}, {"report", "--experts", routed(t)}, {"report", "--kernels", nsys}, {"report", "--launches", nsys}, {"report", "--api", nsys}, {"report", "--memcpy", nsys},
		{"report", "--nvtx", nsys}, {"report", "--nvtx-kernels", nsys}, {"report", "--gaps", torch}, {"report", "--ops", torch}, {"report", "--ops", graphReplay(t)}, {"report", "--kernels", graphReplay(t)}, {"report", "--stacks", torch}, {"report", "--fleet", otel, torch, nsys},
		{"report", "--by-rank", serverLog(t)}, {"report", "--timeline", serverLog(t)}, {"report", "--summary", serverLog(t)}, {"report", "--timeline", metricsOf(t)}, {"report", "--summary", benchOf(t)},
		{"whatif", "--scale", "decode=0.9", "--slo", "ttft=100ms", quietDump(t)}, {"report", "--critical-path", otel}, {"request", "--critical-path", rid, otel},
		{"whatif", "--sweep", "decode=1..2", "--slo", "ttft=100ms", quietDump(t)}, {"diff", otel, pipeline}, {"diff", metricsOf(t), metricsOf(t)}, {"diff", torch, nsys}, {"diff", "--ops", "--gaps", torch, torch}, {"diff", "--fail-if", "itl.mean>+5%", "--table", "gate", otel, pipeline},
	} {
		text := runJSON(t, args)
		fitsSchema(t, args, text)
		readSchemas(t, schemas, text)
	}
	if status := run([]string{"sgtrace", "merge", "--torch", torch, "-o", filepath.Join(t.TempDir(), "m.pftrace"), "--clock-report", clocks}, nil, &bytes.Buffer{}, &bytes.Buffer{}); status != exitOK {
		t.Fatalf("merge: status %d", status)
	}
	text, err := os.ReadFile(clocks)
	if err != nil {
		t.Fatal(err)
	}
	readSchemas(t, schemas, text)
	return schemas
}

// hung writes flight recorder dumps of ranks, one of which misbehaves.
func hung(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := torch.WriteHang(dir, torch.HangConfig{Seed: 1, TP: 4, DP: 2, Steps: 60, Fault: torch.OtherSize, Wrong: 1, Ring: 2000, Silent: 1}, torch.AsPickle); err != nil {
		t.Fatal(err)
	}
	stack := "Process 309: sglang::scheduler_TP3\nPython v3.12.3 (/usr/bin/python3)\n\nThread 309 (active): \"MainThread\"\n    forward (model.py:120)\n"
	if err := os.WriteFile(filepath.Join(dir, "stacks.txt"), []byte(stack), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

// allocated writes a memory snapshot.
func allocated(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "1770000000-TP-3-memory.pickle")
	if err := os.WriteFile(path, torch.MemorySnapshot(torch.NewAllocator(1, 0, 200, 100)), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// routed writes the expert counts of a server.
func routed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	truth := torch.PlayExperts(torch.ExpertConfig{Seed: 1, Mode: torch.ExpertsPerPass, Layers: 9, Experts: 8, TopK: 2, EP: 2, Passes: 3, Tokens: 20})
	for name, data := range truth.Files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// schemaInputs writes a run recorded in every format, and a dump of a second run with pipeline
// parallelism that long prompts stall; rid is a request of the first.
func schemaInputs(t *testing.T) (dir, pipeline, rid string) {
	t.Helper()
	dir = t.TempDir()
	r, err := writeDemo(dir, simulator.DefaultConfig(1))
	if err != nil {
		t.Fatal(err)
	}
	rid = r.Truth().Requests[0].RID
	config := simulator.DefaultConfig(2)
	config.Mode, config.Unified, config.Level = simulator.Unified, simulator.Parallel{TP: 2, PP: 2, DP: 2}, 4
	config.LongPrompts, config.LongTokens, config.KVTokens = 0.03, 4000, 1<<14
	if r, err = simulator.Play(config); err != nil {
		t.Fatal(err)
	}
	var dump bytes.Buffer
	if err := otlp.Write(&dump, r); err != nil {
		t.Fatal(err)
	}
	pipeline = filepath.Join(t.TempDir(), "pipeline.jsonl")
	if err := os.WriteFile(pipeline, dump.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir, pipeline, rid
}

// benchOf writes the results of bench_serving for a run.
func benchOf(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "bench.jsonl")
	const text = `{"backend":"sglang","dataset_name":"random","request_rate":4.0,"max_concurrency":8,"duration":310.5,"completed":1200,"median_ttft_ms":218.8,"p99_ttft_ms":300.1}`
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// metricsOf writes metrics in the Prometheus text format.
func metricsOf(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := range 2 {
		fmt.Fprintf(&b, "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",Hostname=\"n\"} 1980 %d\n", 1787000000000+15000*i)
		for _, most := range [...]string{"0.1", "0.2", "+Inf"} {
			fmt.Fprintf(&b, "sglang:time_to_first_token_seconds_bucket{le=\"%s\"} %d %d\n", most, 7*i, 1787000000000+15000*i)
		}
	}
	name := filepath.Join(t.TempDir(), "metrics.txt")
	if err := os.WriteFile(name, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// serverLog writes the log of a server.
func serverLog(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for i := range 60 {
		fmt.Fprintf(&text, "[2026-09-29 00:00:%02d DP%d TP0] Decode batch, #running-req: %d, #token: %d, token usage: 0.12, cuda graph: True, gen throughput (token/s): 95.33, #queue-req: 1\n",
			i, i%2, 2+i%3, 5000+i)
	}
	text.WriteString("[2026-09-29 00:00:31 DP1 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.0980 -> 0.3487\n")
	path := filepath.Join(t.TempDir(), "decode.log")
	if err := os.WriteFile(path, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// allToAll writes the trace of one of three ranks, which sends more to one rank than to the others.
func allToAll(t *testing.T) string {
	t.Helper()
	const text = `{"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 3}, "traceEvents": [
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {"correlation": 7}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "pid": 0, "tid": 7, "ts": 20, "dur": 40,
 "args": {"correlation": 7, "stream": 7, "Collective name": "all_to_allv", "dtype": "Float", "In msg nelems": 600, "Out msg nelems": 400,
 "In split size": "[1, 1, 4]", "Group size": 3, "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2]"}}]}`
	path := filepath.Join(t.TempDir(), "rank0.json")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// quietDump writes the dump of a healthy run, which a replay can reproduce.
func quietDump(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quiet.jsonl")
	c := simulator.DefaultConfig(1)
	c.Rate, c.KVTokens = 6, 16384
	c.Incident, c.Straggler, c.SlowTransfers, c.FailedTransfers = simulator.Incident{Onset: 1}, simulator.Straggler{}, 0, 0
	dump, _ := testinput.Simulate(t, c)
	if err := os.WriteFile(path, dump, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// fitsSchema checks the output of a command against docs/schema.json, and its shares.
func fitsSchema(t *testing.T, args []string, text []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	schema := parseSchema(t)
	for _, wrong := range schema.check(schema.root, v, "") {
		t.Errorf("%v: %s", args, wrong)
	}
	sharesAreParts(t, args, v)
}

func runJSON(t *testing.T, args []string) []byte {
	t.Helper()
	var out, errOut bytes.Buffer
	status := run(append(append([]string{"sgtrace"}, args...), "--format", "json"), nil, &out, &errOut)
	if status != exitOK && status != exitPartial && status != exitGate {
		t.Fatalf("%v: status %d: %s", args, status, errOut.String())
	}
	return out.Bytes()
}

// readSchemas collects the fields of all objects with a schema.
func readSchemas(t *testing.T, schemas map[string][]schemaField, text []byte) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for d.More() {
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		var visit func(v any)
		visit = func(v any) {
			switch v := v.(type) {
			case []any:
				for _, x := range v {
					visit(x)
				}
			case map[string]any:
				if schema, ok := v["schema"].(string); ok && schemaName.MatchString(schema) {
					addSchema(schemas, schema, v)
				}
				for _, x := range v {
					visit(x)
				}
			}
		}
		visit(v)
	}
}

// addSchema records the fields of an object.
func addSchema(schemas map[string][]schemaField, schema string, object map[string]any) {
	var fields []schemaField
	if columns, ok := object["columns"].([]any); ok {
		for _, c := range columns {
			c := c.(map[string]any)
			fields = append(fields, schemaField{c["name"].(string), c["unit"].(string), c["doc"].(string)})
		}
	} else {
		if _, ok := object["tables"]; ok { // all documents have the same fields
			addField(schemas, schema, schemaField{key: "-", unit: "document"})
			schema = "document"
		}
		paths := map[string]bool{}
		jsonPaths(paths, "", object)
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			fields = append(fields, schemaField{key: path, unit: "json"})
		}
	}
	for _, f := range fields {
		addField(schemas, schema, f)
	}
}

func addField(schemas map[string][]schemaField, schema string, f schemaField) {
	if !slices.ContainsFunc(schemas[schema], func(g schemaField) bool { return g.key == f.key && g.unit == f.unit }) {
		schemas[schema] = append(schemas[schema], f)
	}
}

// jsonPaths collects the paths of all values below v, such as "findings[].kind", down to objects
// with their own schema.
func jsonPaths(paths map[string]bool, prefix string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if v["schema"] != nil && prefix != "" {
			return
		}
		for key, x := range v {
			path := strings.TrimPrefix(prefix+"."+key, ".")
			paths[path] = true
			jsonPaths(paths, path, x)
		}
	case []any:
		for _, x := range v {
			jsonPaths(paths, prefix+"[]", x)
		}
	}
}

func TestSchemas(t *testing.T) {
	printed := printedSchemas(t)
	t.Run("gain", func(t *testing.T) { onlyGain(t, printed) })
	t.Run("documented", func(t *testing.T) { areDocumented(t, printed) })
}

// columnsPage returns docs/COLUMNS.md: the fields of every schema.
func columnsPage(printed map[string][]schemaField) string {
	var b strings.Builder
	b.WriteString("# Columns\n\nAll tables that `--format json` and `--format csv` print, column by column; columns of detail are not in text. [METRICS.md](METRICS.md) says how\n" +
		"numbers are measured. A schema only gains columns: for anything else, its name gets another version. `make docs` makes this page\nfrom the tables themselves. A schema whose column is `-` is that of a whole answer of `--format json`, which holds tables.\n")
	for _, schema := range slices.Sorted(maps.Keys(printed)) {
		fmt.Fprintf(&b, "\n## %s\n\n| column | unit | meaning |\n|---|---|---|\n", schema)
		for _, f := range slices.SortedFunc(slices.Values(printed[schema]), func(x, y schemaField) int { return strings.Compare(x.key+" "+x.unit, y.key+" "+y.unit) }) {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.key, f.unit, strings.ReplaceAll(f.doc, "|", "\\|"))
		}
	}
	return b.String()
}

// columnRow matches a row of docs/COLUMNS.md.
var columnRow = regexp.MustCompile("^\\| `([^`]+)` \\| ([^|]*) \\|")

// documented returns the fields in docs/COLUMNS.md, each with its schema and unit.
func documented(page string) (fields []string) {
	schema := ""
	for line := range strings.Lines(page) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			schema = strings.TrimSpace(title)
		} else if m := columnRow.FindStringSubmatch(line); m != nil {
			fields = append(fields, fmt.Sprintf("%s %s %s", schema, m[1], m[2]))
		}
	}
	return fields
}

// The output of --format json only ever gains fields, because programs read it. docs/COLUMNS.md
// lists them all.
func onlyGain(t *testing.T, printed map[string][]schemaField) {
	path, page := filepath.Join("..", "..", "docs", "COLUMNS.md"), columnsPage(printed)
	text, err := os.ReadFile(path)
	if err != nil && !*testset.Update {
		t.Fatal(err)
	}
	got := documented(page)
	for _, field := range documented(string(text)) {
		if !slices.Contains(got, field) {
			t.Errorf("gone or of another unit: %s\n"+
				"A schema only gains columns; for anything else its name has to end in the next version. "+
				"Then delete its old rows in %s by hand.", field, path)
		}
	}
	switch {
	case t.Failed():
	case *testset.Update:
		if err := os.WriteFile(path, []byte(page), 0o666); err != nil {
			t.Fatal(err)
		}
	case string(text) != page:
		t.Error("docs/COLUMNS.md is stale: make docs")
	}
}

// Some report in this test prints each schema in the source, and docs/METRICS.md lists it. Each
// column is defined there, or documents itself.
func areDocumented(t *testing.T, printed map[string][]schemaField) {
	elsewhere := map[string]string{
		simulator.TruthSchema:             "what the simulator has planted: no report",
		"sgtrace.inspect.diagnostics/v1":  "only of damaged inputs",
		"sgtrace.inspect.gaps/v1":         "only of dumps that lost spans",
		"sgtrace.inspect.messages/v1":     "only of exports with messages",
		"sgtrace.report.diff.captures/v1": "in the text of diff",
	}
	for _, schema := range sourceSchemas(t) {
		if len(printed[schema]) == 0 && elsewhere[schema] == "" {
			t.Errorf("%s is in the source and not printed here: add a command that prints it", schema)
		}
		if !strings.Contains(docs.Metrics, schema) && schema != simulator.TruthSchema {
			t.Errorf("%s is not in docs/METRICS.md", schema)
		}
	}
	words := screen.Parse(docs.Metrics).Words()
	for schema, fields := range printed {
		for _, f := range fields {
			switch name := lastWord.FindString(f.key); {
			case f.unit == "document":
			case strings.HasSuffix(f.key, "_"+f.unit+"_"+f.unit):
				t.Errorf("%s: column %s has its unit twice: Column.Name is without it", schema, f.key)
			case f.unit != "json" && !columnKey.MatchString(f.key):
				t.Errorf("%s: column %s: programs read keys of a-z, 0-9, and _; Column.Title may differ for people", schema, f.key)
			case f.unit != "json" && f.doc == "" && !slices.Contains(words, f.key):
				t.Errorf("%s: column %s says nothing, and docs/METRICS.md does not define it", schema, f.key)
			case f.unit == "json" && name != "schema" && !strings.Contains(docs.Metrics, "`"+name+"`"):
				t.Errorf("%s: docs/METRICS.md does not define %s", schema, f.key)
			}
		}
	}
}

// columnKey matches the key of a column. "idle:" comes before reasons.
var columnKey = regexp.MustCompile(`^(idle:)?[a-z0-9_]+$`)

// lastWord matches the last field in a path: "per_second" in "requests.per_second".
var lastWord = regexp.MustCompile(`[^.\[\]]+$`)

// sourceSchemas returns the names of the schemas in the source.
func sourceSchemas(t *testing.T) []string {
	t.Helper()
	var schemas []string
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && schemaName.MatchString(text) {
					schemas = append(schemas, text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(schemas)
	return slices.Compact(schemas)
}
