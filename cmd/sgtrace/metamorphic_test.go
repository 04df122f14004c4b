package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// Metamorphic tests change inputs in ways whose effect on the outputs is known, for every pipeline.
// Nobody has to know the right output for that.

// result is everything that a run of the program leaves.
type result struct {
	status   int
	out, err string
	file     string // the content of out.pftrace or out.json, if it was written
}

// sgtrace runs the program in dir; it may write out.pftrace or out.json.
func sgtrace(t *testing.T, dir string, args ...string) result {
	t.Helper()
	t.Chdir(dir)
	var out, errOut bytes.Buffer
	r := result{status: run(append([]string{"sgtrace"}, args...), strings.NewReader(""), &out, &errOut)}
	r.out, r.err = summaryOf.ReplaceAllString(out.String(), ""), errOut.String()
	for _, name := range []string{"out.pftrace", "out.json"} {
		if data, err := os.ReadFile(name); err == nil {
			r.file = string(data)
			os.Remove(name)
		}
	}
	return r
}

// summaryOf matches the commands that findings suggest for the files that were read.
var summaryOf = regexp.MustCompile(`,"commands?":(\[\[.*?\]\]|"[^"]*")`)

// mustRun is sgtrace for a command that must succeed.
func mustRun(t *testing.T, dir, command string) result {
	t.Helper()
	r := sgtrace(t, dir, strings.Fields(command)...)
	if r.status != exitOK {
		t.Fatalf("sgtrace %s: status %d: %s", command, r.status, r.err)
	}
	return r
}

// pipelines are commands on a whole run, one per path through the program.
var pipelines = []string{
	"requests --format json otel.jsonl",
	"report --format json otel.jsonl torch nsys",
	"report --by-stage --format json otel.jsonl",
	"report --by-rank --format json otel.jsonl",
	"report --tail p90 --format json otel.jsonl",
	"report --timeline --bucket 100ms --format json otel.jsonl",
	"convert otel2perfetto otel.jsonl -o out.pftrace",
	"report --kernels --format json torch",
	"report --launches --by-rank --format json nsys",
	"report --nvtx --format json torch nsys",
	"report --by-rank --format json torch nsys otel.jsonl",
	"convert nsys2perfetto nsys -o out.pftrace",
	"merge torch nsys otel.jsonl -o out.pftrace",
	"merge torch nsys --from +20ms --to +60ms --args none -o out.pftrace",
	"merge torch otel.jsonl --args none -o out.json",
}

// rewrite changes a file.
func rewrite(t *testing.T, name string, change func([]byte) []byte) {
	t.Helper()
	if err := os.WriteFile(name, change(readFile(t, name)), 0o666); err != nil {
		t.Fatal(err)
	}
}

// addTo returns a change that adds shift to the numbers after a pattern.
func addTo(pattern string, shift int64) func([]byte) []byte {
	re := regexp.MustCompile(`(` + pattern + `)(\d+)`)
	return func(data []byte) []byte {
		return re.ReplaceAllFunc(data, func(b []byte) []byte {
			m := re.FindSubmatch(b)
			n, err := strconv.ParseInt(string(m[2]), 10, 64)
			if err != nil {
				panic(err) // too long for a time
			}
			return strconv.AppendInt(slices.Clone(m[1]), n+shift, 10)
		})
	}
}

// execSQL runs a statement on a database.
func execSQL(t *testing.T, name, sql string, args ...any) {
	t.Helper()
	conn, err := sqlite.OpenConn(name, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{Args: args}); err != nil {
		t.Fatal(err)
	}
}

func glob(t *testing.T, elem ...string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(elem...))
	if err != nil || len(names) == 0 {
		t.Fatalf("no file matches %v: %v", elem, err)
	}
	return names
}

// Shifting all clocks shifts the times in the output, and changes nothing else.
func TestShiftedClocks(t *testing.T) {
	const shift = 7 * 24 * 3600 * 1e9 // whole days, because sentences contain times of day
	a, b := recorded(t, 3), recorded(t, 3)
	rewrite(t, filepath.Join(b, "otel.jsonl"), addTo(`imeUnixNano":"`, shift))
	for _, name := range glob(t, b, "torch", "*") {
		rewrite(t, name, addTo(`"baseTimeNanoseconds": ?`, shift))
	}
	for _, name := range glob(t, b, "nsys", "*") {
		execSQL(t, name, "UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = utcEpochNs + ?", int64(shift))
	}
	back, within := addTo(`_unix_ns": ?`, -shift), addTo(`(?:true_(?:start|end)_ns|sgtrace\.open\.(?:from|to))"?(?:=|: ?)"?`, -shift)
	for _, command := range pipelines {
		x, y := mustRun(t, a, command), mustRun(t, b, command)
		y.out = string(back([]byte(y.out)))
		switch {
		case strings.HasSuffix(command, ".json"):
			y.file = string(within(addTo(`"base(?:TimeNanoseconds|_time_ns)":"?`, -shift)([]byte(y.file))))
			day := regexp.MustCompile(`"base_time":"[^"]*"`)
			x.file, y.file = day.ReplaceAllString(x.file, ""), day.ReplaceAllString(y.file, "")
		case x.file != "":
			x.file, y.file = drawingOf(t, x.file, 0), string(within([]byte(drawingOf(t, y.file, -shift))))
		}
		same(t, command, x, y)
	}
}

// drawingOf returns a Perfetto file as text, with shifted times.
func drawingOf(t *testing.T, file string, shift int64) string {
	t.Helper()
	tr, err := readback.Decode([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("from %d\n%s", tr.Start+shift, tr.Text())
}

// listOfFiles matches the JSON lines about the input files: their names, sizes, and warnings.
var listOfFiles = regexp.MustCompile(`(?m)^"(inputs|warnings)":\[(\n,?{.*)*\n?\],\n`)

// same fails the test if two results differ.
func same(t *testing.T, what string, x, y result) {
	t.Helper()
	x.out, y.out = listOfFiles.ReplaceAllString(x.out, ""), listOfFiles.ReplaceAllString(y.out, "")
	for _, c := range []struct{ name, x, y string }{{"standard output", x.out, y.out}, {"messages", x.err, y.err}, {"the file", x.file, y.file}} {
		if c.x != c.y {
			at := 0
			for at < min(len(c.x), len(c.y)) && c.x[at] == c.y[at] {
				at++
			}
			from := max(0, at-300)
			t.Errorf("%s: %s differs at %d:\n%.800q\nwant\n%.800q", what, c.name, at, c.y[from:], c.x[from:])
		}
	}
	if x.status != y.status {
		t.Errorf("%s: status %d, want %d", what, y.status, x.status)
	}
}

// The order of inputs changes no byte of the output.
func TestOrderOfInputs(t *testing.T) {
	dir := recorded(t, 4)
	splitLines(t, dir, 3)
	var inputs []string
	for _, pattern := range []string{"part*.jsonl", "torch/*", "nsys/*"} {
		for _, name := range glob(t, dir, pattern) {
			rel, err := filepath.Rel(dir, name)
			if err != nil {
				t.Fatal(err)
			}
			inputs = append(inputs, rel)
		}
	}
	for _, command := range []string{
		"report --by-rank --format json", "report --kernels", "report --nvtx --by-rank", "inspect",
		"merge -o out.pftrace", "merge -o out.json --layout ranks", "report --tail p90", "report --timeline", "requests",
	} {
		in := inputs
		if requests := strings.Contains(command, "requests") || strings.Contains(command, "--t"); requests {
			in = inputs[:3]
		}
		args := strings.Fields(command)
		want := sgtrace(t, dir, append(slices.Clone(args), in...)...)
		if want.status != exitOK {
			t.Fatalf("%s: status %d: %s", command, want.status, want.err)
		}
		for turn := 1; turn < len(in); turn += 3 {
			turned := slices.Concat(in[turn:], in[:turn])
			slices.Reverse(turned[:2])
			same(t, command, want, sgtrace(t, dir, append(slices.Clone(args), turned...)...))
		}
	}
}

// splitLines writes the lines of otel.jsonl to n files in turn: part0.jsonl, ...
func splitLines(t *testing.T, dir string, n int) {
	t.Helper()
	parts := make([][]byte, n)
	i := 0
	for line := range bytes.Lines(readFile(t, filepath.Join(dir, "otel.jsonl"))) {
		parts[i%n] = append(parts[i%n], line...)
		i++
	}
	for i, part := range parts {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("part%d.jsonl", i)), part, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// The parts of a dump give the same output as the whole.
func TestPartsOfADump(t *testing.T) {
	dir := recorded(t, 5)
	want := map[string]result{}
	for _, command := range pipelines {
		if strings.Contains(command, "otel.jsonl") {
			want[command] = mustRun(t, dir, command)
		}
	}
	for _, n := range []int{2, 5} {
		splitLines(t, dir, n)
		for command, x := range want {
			var parts []string
			for i := range n {
				parts = append(parts, fmt.Sprintf("part%d.jsonl", i))
			}
			y := mustRun(t, dir, strings.Replace(command, "otel.jsonl", strings.Join(parts, " "), 1))
			for _, r := range []*result{&x, &y} {
				r.err = ""
				if strings.HasSuffix(command, ".pftrace") {
					r.file = unordered(t, r.file)
				} else {
					r.file = "" // folded stacks come in the order of the files
				}
			}
			same(t, fmt.Sprintf("%d parts: %s", n, command), x, y)
		}
	}
}

// unordered returns the content of a Perfetto file, without the names of its inputs and the order
// of simultaneous events.
func unordered(t *testing.T, file string) string {
	t.Helper()
	tr, err := readback.Decode([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range tr.Slices {
		lines = append(lines, fmt.Sprintf("%s: %d +%d %s %v", s.Track.Path(), s.Start, s.Dur, s.Name, s.Args))
	}
	for _, i := range tr.Instants {
		lines = append(lines, fmt.Sprintf("%s: %d ! %s", i.Track.Path(), i.Time, i.Name))
	}
	for _, s := range tr.Samples {
		lines = append(lines, fmt.Sprintf("%s: %d = %v", s.Track.Path(), s.Time, s.Value))
	}
	for _, f := range tr.Flows {
		lines = append(lines, fmt.Sprintf("%s %d -> %s %d", f.From.Name, f.From.Start, f.To.Name, f.To.Start))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Compressing a file changes nothing.
func TestPackedInputs(t *testing.T) {
	whole := recorded(t, 6)
	want := map[string]result{}
	for _, command := range pipelines {
		want[command] = mustRun(t, whole, command)
	}
	for _, pack := range []struct {
		name string
		pack func([]byte, int) ([]byte, []int)
	}{{"gzip members", testinput.Gzip}, {"zstd frames", testinput.Zstd}} {
		dir := recorded(t, 6)
		for _, name := range append(glob(t, dir, "torch", "*"), filepath.Join(dir, "otel.jsonl")) {
			rewrite(t, name, func(data []byte) []byte { packed, _ := pack.pack(data, 7); return packed })
		}
		for _, command := range pipelines {
			same(t, pack.name+": "+command, want[command], mustRun(t, dir, command))
		}
	}
}

// Inputs that are given twice count once.
func TestInputsTwice(t *testing.T) {
	dir := recorded(t, 7)
	other := filepath.Join(dir, "again")
	for _, folder := range []string{".", "torch", "nsys"} {
		if err := os.MkdirAll(filepath.Join(other, folder), 0o777); err != nil {
			t.Fatal(err)
		}
		for _, name := range glob(t, dir, folder, "*.*") {
			if err := os.WriteFile(filepath.Join(other, folder, filepath.Base(name)), readFile(t, name), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	again := regexp.MustCompile(`\b(torch|nsys|otel\.jsonl)\b`)
	for _, command := range pipelines {
		want := mustRun(t, dir, command)
		same(t, command, want, mustRun(t, dir, again.ReplaceAllString(command, "$1 $1"))) // with the same name
		got := sgtrace(t, dir, strings.Fields(again.ReplaceAllString(command, "$1 again/$1"))...)
		if got.status != exitOK && got.status != exitPartial {
			t.Errorf("%s: status %d: %s", command, got.status, got.err)
		}
		if strings.HasPrefix(command, "report --format") {
			continue // the summary mentions the copies
		}
		x, y := result{out: want.out}, result{out: got.out}
		if strings.HasSuffix(command, ".pftrace") {
			x.file, y.file = unordered(t, want.file), unordered(t, got.file)
		}
		same(t, "copies: "+command, x, y)
	}
}

// rows returns the rows of the main table of a report in JSON.
func rows(t *testing.T, r result) []map[string]any {
	t.Helper()
	var report struct {
		Main   string
		Tables []struct {
			Name string
			Rows []map[string]any
		}
	}
	decoder := json.NewDecoder(strings.NewReader(r.out))
	decoder.UseNumber()
	if err := decoder.Decode(&report); err != nil {
		t.Fatalf("%v: %.200s", err, r.out)
	}
	for _, t := range report.Tables {
		if t.Name == report.Main {
			return t.Rows
		}
	}
	t.Fatalf("no table %q: %.200s", report.Main, r.out)
	return nil
}

// column returns a column of rows as text.
func column(rows []map[string]any, name string) (values []string) {
	for _, r := range rows {
		values = append(values, fmt.Sprint(r[name]))
	}
	return values
}

// total adds up a column of rows.
func total(t *testing.T, rows []map[string]any, name string) (sum int64) {
	t.Helper()
	for _, text := range column(rows, name) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// A report with a filter equals a report on a file that contains only what passes the filter.
func TestFilteredInputs(t *testing.T) {
	dir := recorded(t, 8)
	prefill := filepath.Join(dir, "torch", "prefill-*TP-1*")
	one := glob(t, prefill)[0]
	only, err := filepath.Rel(dir, one)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"kernels", "launches", "api", "memcpy", "nvtx"} {
		x := mustRun(t, dir, "report --format json --"+kind+" --host prefill --rank TP1 torch")
		y := mustRun(t, dir, "report --format json --"+kind+" "+only)
		same(t, kind+" of a rank", result{out: y.out}, result{out: x.out})
		x = mustRun(t, dir, "report --format json --"+kind+" --host decode nsys")
		y = mustRun(t, dir, "report --format json --"+kind+" nsys/decode-0.sqlite")
		same(t, kind+" of a host", result{out: y.out}, result{out: x.out})
	}

	// Each request has its own trace. Clock offsets are estimated from all requests, so here there
	// are none.
	config := simulator.DefaultConfig(8)
	config.PrefillSkew, config.DecodeSkew = 0, 0
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := golden.WriteDir(dir, run, nil, nil); err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	var chosen []string
	for i, m := range regexp.MustCompile(`"traceId":"(\w+)"`).FindAllStringSubmatch(string(readFile(t, filepath.Join(dir, "otel.jsonl"))), -1) {
		if i%97 == 0 && !kept[m[1]] {
			kept[m[1]] = true
			chosen = append(chosen, "--trace", m[1])
		}
	}
	keepSpans(t, filepath.Join(dir, "otel.jsonl"), filepath.Join(dir, "some.jsonl"), func(s map[string]any) bool { return kept[fmt.Sprint(s["traceId"])] })
	for _, command := range []string{"requests", "report --by-stage", "report --by-rank", "report --by request", "report --by role,host"} {
		x := mustRun(t, dir, command+" --format json otel.jsonl "+strings.Join(chosen, " "))
		y := mustRun(t, dir, command+" --format json some.jsonl")
		same(t, command+" of some traces", result{out: y.out}, result{out: x.out})
	}
	// A filter by host, role, or rank keeps exactly its rows.
	whole := rows(t, mustRun(t, dir, "report --by role,host,rank --format json otel.jsonl"))
	for _, c := range []struct{ flag, column string }{{"--role prefill", "prefill"}, {"--role decode", "decode"}} {
		var want []string
		for _, r := range whole {
			if r["role"] == c.column {
				want = append(want, fmt.Sprint(r["stage"], r["rank"], r["n"], r["total_ns"], r["p50_ns"], r["max_ns"]))
			}
		}
		var got []string
		for _, r := range rows(t, mustRun(t, dir, "report --by role,host,rank --format json otel.jsonl "+c.flag)) {
			got = append(got, fmt.Sprint(r["stage"], r["rank"], r["n"], r["total_ns"], r["p50_ns"], r["max_ns"]))
		}
		slices.Sort(want)
		slices.Sort(got)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: rows\n%s\nwant\n%s", c.flag, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// keepSpans writes a dump of the spans that keep selects from another dump.
func keepSpans(t *testing.T, from, to string, keep func(span map[string]any) bool) {
	t.Helper()
	var out bytes.Buffer
	for line := range bytes.Lines(readFile(t, from)) {
		var doc map[string]any
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber()
		if err := decoder.Decode(&doc); err != nil {
			t.Fatal(err)
		}
		for _, resource := range doc["resourceSpans"].([]any) {
			for _, scope := range resource.(map[string]any)["scopeSpans"].([]any) {
				scope := scope.(map[string]any)
				scope["spans"] = slices.DeleteFunc(scope["spans"].([]any), func(s any) bool { return !keep(s.(map[string]any)) })
			}
		}
		if err := json.NewEncoder(&out).Encode(doc); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(to, out.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Two adjacent time windows together have the events of a window over both. Events that span the
// boundary are in both.
func TestWindowsOfTime(t *testing.T) {
	dir := recorded(t, 9)
	for _, c := range []struct{ command, count string }{
		{"report --kernels torch", "instances"},
		{"report --api nsys", "instances"},
		{"report --memcpy torch nsys", "instances"},
		{"requests otel.jsonl", ""},
	} {
		count := func(window string) int64 {
			r := sgtrace(t, dir, append(strings.Fields(c.command+" --format json"), strings.Fields(window)...)...)
			switch {
			case r.status == exitFailed && regexp.MustCompile(`(?:selects?|leaves) nothing|--from and --to select no `).MatchString(r.err):
				return 0
			case r.status != exitOK:
				t.Fatalf("%s %s: %s", c.command, window, r.err)
			case c.count == "":
				return int64(len(rows(t, r)))
			}
			return total(t, rows(t, r), c.count)
		}
		whole := count("")
		if open := count("--from +0ms --to +3600s"); whole == 0 || open != whole {
			t.Errorf("%s: %d in a window around all, want %d", c.command, open, whole)
		}
		for _, at := range []string{"+1ms", "+20ms", "+53417us", "+90ms", "+400ms", "+2s"} {
			before, behind, across := count("--to "+at), count("--from "+at), count("--from "+at+" --to "+at)
			if before+behind-across != whole {
				t.Errorf("%s: %d until %s, %d from then on, %d of which are both; want %d in all", c.command, before, at, behind, across, whole)
			}
		}
	}
}

// A timeline that merge draws from traces as Chrome JSON, and one that it draws from that timeline,
// give the same reports as the traces.
func TestConvertThenReport(t *testing.T) {
	dir := recorded(t, 10)
	mustRun(t, dir, "merge torch -o merged.json")
	mustRun(t, dir, "merge merged.json --layout ranks -o again.json.gz")
	mustRun(t, dir, "merge torch otel.jsonl -o beside.json")
	// A timeline does not name the GPU, so its kernels have no roofs.
	for _, kind := range []string{"kernels --table kernels", "launches", "api", "memcpy", "nvtx", "nvtx-kernels", "by-rank", "kernels --table kernels --by-rank", "launches --by-rank"} {
		read := func(input string) string {
			return strings.ReplaceAll(mustRun(t, dir, "report --format json --"+kind+" "+input).out, input, "INPUT")
		}
		want := read("torch")
		if len(want) < 500 {
			t.Errorf("%s: nothing: %s", kind, want)
		}
		for _, name := range []string{"merged.json", "again.json.gz", "beside.json"} {
			same(t, kind+" of "+name, result{out: want}, result{out: read(name)})
		}
	}
}

// Renaming ranks renames rows, and changes nothing else.
func TestRenamedRanks(t *testing.T) {
	a, b := recorded(t, 11), recorded(t, 11)
	rewrite(t, filepath.Join(b, "otel.jsonl"), func(data []byte) []byte {
		data = bytes.ReplaceAll(data, []byte("[TP 1]"), []byte("[TP 6]"))
		return bytes.ReplaceAll(data, []byte(`{"key":"tp_rank","value":{"intValue":"1"}}`), []byte(`{"key":"tp_rank","value":{"intValue":"6"}}`))
	})
	for _, name := range glob(t, b, "torch", "*TP-1*") {
		rewrite(t, name, func(data []byte) []byte {
			data = bytes.ReplaceAll(data, []byte("_TP1"), []byte("_TP6")) // process names
			return bytes.Replace(data, []byte(`"rank": 1, "world_size": 2`), []byte(`"rank": 6, "world_size": 8`), 1)
		})
		if err := os.Rename(name, strings.Replace(name, "TP-1", "TP-6", 1)); err != nil {
			t.Fatal(err)
		}
	}
	renamed := regexp.MustCompile(`TP1\b`)
	for _, command := range []string{
		"requests --format json otel.jsonl",
		"report --by-rank --format json otel.jsonl",
		"report --tail p90 --format json otel.jsonl",
		"report --timeline --bucket 100ms --format json otel.jsonl",
		"report --kernels --by-rank --format json torch",
		"report --by-rank --format json torch",
	} {
		x, y := mustRun(t, a, command), mustRun(t, b, command)
		same(t, command, result{out: renamed.ReplaceAllString(x.out, "TP6")}, result{out: y.out})
	}
}
