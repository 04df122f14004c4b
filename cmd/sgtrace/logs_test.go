package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/dataset"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/internal/tablefile"
)

// leftBehind is the evidence that a scenario leaves: the dump, logs, and records.
type leftBehind struct {
	run                 *cluster.Run
	dump, logs, records string
}

// canary is in all prompts and must not appear in any output.
const canary = "the secret recipe of Mrs Canary, sk-abcdefghijklmnopqrstuvwx"

// leave plays a scenario and writes its evidence.
func leave(t *testing.T, scenario string, seed uint64, l cluster.Logging) leftBehind {
	t.Helper()
	run, err := cluster.Play(cluster.Find(scenario).Config(seed))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	x := leftBehind{run, filepath.Join(dir, "otel.jsonl"), filepath.Join(dir, "logs"), filepath.Join(dir, "records")}
	for _, d := range []string{x.logs, x.records} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path string, of func(*bytes.Buffer) error) {
		var b bytes.Buffer
		if err := of(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(x.dump, func(b *bytes.Buffer) error { return cluster.Write(b, run) })
	for i := range run.Servers {
		write(filepath.Join(x.logs, run.Name(i)+".log"), func(b *bytes.Buffer) error { return cluster.WriteLog(b, run, i, l) })
		write(filepath.Join(folder(t, x.records, run.Name(i)), "sglang-request-metrics-20260817_09.log"), func(b *bytes.Buffer) error { return cluster.WriteRecords(b, run, i, canary) })
	}
	return x
}

// folder makes a folder inside a given one.
func folder(t *testing.T, in, name string) string {
	t.Helper()
	path := filepath.Join(in, name)
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

// loggedRows runs a report and returns the rows of one of its tables.
func loggedRows(t *testing.T, args ...string) (list []map[string]any) {
	t.Helper()
	out := runJSON(t, append([]string{"report"}, args...))
	if bytes.Contains(out, []byte("Canary")) || bytes.Contains(out, []byte("sk-abc")) {
		t.Errorf("%v: a prompt is in the output", args)
	}
	var d struct {
		Tables []struct{ Rows []map[string]any }
	}
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatal(err)
	}
	for _, table := range d.Tables {
		list = append(list, table.Rows...)
	}
	return list
}

// Logs of every layout and time zone give the number of tokens that the servers computed, and the
// time zone is found where requests are logged.
func TestLogsOfAllLayouts(t *testing.T) {
	for i, layout := range cluster.Layouts {
		for _, scenario := range []string{[]string{"healthy", "healthy_pd"}[i%2]} {
			x := leave(t, scenario, uint64(i+1), cluster.Logging{Layout: layout, Stats: true})
			ranks := loggedRows(t, "--by-rank", "--table", "logs.ranks", "--format", "json", x.logs)
			if len(ranks) != len(x.run.Servers) {
				t.Errorf("%s, %s: %d ranks, want %d", layout.Name, scenario, len(ranks), len(x.run.Servers))
			}
			computed, want := 0.0, 0
			for _, r := range ranks {
				if v, ok := r["new_tokens"].(float64); ok {
					computed += v
				}
			}
			for _, s := range x.run.Servers {
				for _, b := range s.Batches {
					if b.At <= x.run.End {
						want += b.NewTokens
					}
				}
			}
			if computed != float64(want) {
				t.Errorf("%s, %s: %.0f tokens, want %d", layout.Name, scenario, computed, want)
			}
			for _, in := range loggedRows(t, "--table", "logs.inputs", "--format", "json", x.logs) {
				if want := zoneName(layout); in["zone"] != want {
					t.Errorf("%s: zone %v by %v, want %s", layout.Name, in["zone"], in["zone_by"], want)
				}
				if in["unknown"].(float64) != 0 {
					t.Errorf("%s: %v lines are not known", layout.Name, in["unknown"])
				}
			}
		}
	}
}

func zoneName(l cluster.Layout) string {
	if l.Zone == 0 {
		return "UTC"
	}
	text := fmt.Sprintf("UTC%+d", int(l.Zone.Hours()))
	if m := int(math.Abs(l.Zone.Minutes())) % 60; m != 0 {
		text += fmt.Sprintf(":%02d", m)
	}
	return text
}

// Records give the same number of requests as the dump of the same run, with the same latencies;
// both together count each request once.
func TestRecordsAgreeWithDump(t *testing.T) {
	for _, scenario := range []string{"healthy_direct", "healthy_pd"} {
		x := leave(t, scenario, 3, cluster.Logging{Layout: cluster.Layouts[0]})
		dump, records := latencies(t, x.dump), latencies(t, x.records)
		for _, metric := range []string{"e2e", "ttft"} {
			d, r := dump[metric], records[metric]
			if d == nil || r == nil {
				t.Fatalf("%s: no %s: %v, %v", scenario, metric, d, r)
			}
			for _, column := range []string{"p50_ns", "p90_ns", "p99_ns"} {
				a, ok1 := d[column].(float64)
				b, ok2 := r[column].(float64)
				if !ok1 || !ok2 || math.Abs(a-b) > 0.002*a+2e6 {
					t.Errorf("%s: %s of %s is %v in the dump, %v in records", scenario, column, metric, d[column], r[column])
				}
			}
		}
		all := latencies(t, x.dump, x.records)
		if a, b := dump["e2e"]["n"], all["e2e"]["n"]; a != b {
			t.Errorf("%s: %v requests in the dump, %v with records", scenario, a, b)
		}
	}
}

// Each request in logs and records agrees with the dump of the same run to the microsecond in which they are written:
// with DP ranks, with retractions from a full KV cache, and with disaggregated prefill and decode servers.
func TestEachRequestAgreesWithDump(t *testing.T) {
	for scenario, seed := range map[string]uint64{"fine_dp": 7, "retraction": 5, "fine_pd": 7} {
		run, err := cluster.Play(cluster.Find(scenario).Config(seed))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		evidence := cluster.Evidence{Logging: cluster.Logging{Layout: cluster.Layouts[seed%uint64(len(cluster.Layouts))], Stats: true}, Records: true, Prompt: canary}
		files, err := evidence.Files(run)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			path := filepath.Join(dir, "untraced", f.Name)
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f.Text, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		var dump bytes.Buffer
		if err := cluster.Write(&dump, run); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "otel.jsonl"), dump.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		traced, untraced := requestRows(t, filepath.Join(dir, "otel.jsonl")), requestRows(t, filepath.Join(dir, "untraced"))
		finished := 0
		for rid, x := range traced {
			y := untraced[rid]
			if x["status"] != "finished" {
				continue // records are written when requests end
			}
			finished++
			if y == nil {
				t.Errorf("%s: %s is not in the records", scenario, rid)
				continue
			}
			for _, column := range []string{"prompt_tokens", "tokens", "cached_tokens", "retractions"} {
				if x[column] != y[column] {
					t.Errorf("%s, %s: %s is %v, %v in the dump", scenario, rid, column, y[column], x[column])
				}
			}
			for _, column := range []string{"ttft_ns", "queue_ns", "prefill_ns", "tpot_ns"} {
				const rounded = 4000 // two clocks, and two durations printed in ms with two decimals
				a, ok1 := x[column].(float64)
				b, ok2 := y[column].(float64)
				if ok1 != ok2 || math.Abs(a-b) > rounded {
					t.Errorf("%s, %s: %s is %v, %v in the dump", scenario, rid, column, y[column], x[column])
				}
			}
		}
		if finished < 300 {
			t.Errorf("%s: only %d requests", scenario, finished)
		}
	}
}

// requestRows returns the rows of requests by request id.
func requestRows(t *testing.T, input string) map[string]map[string]any {
	t.Helper()
	out := runJSON(t, []string{"requests", "--format", "json", input})
	var d struct {
		Tables []struct{ Rows []map[string]any }
	}
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatal(err)
	}
	by := map[string]map[string]any{}
	for _, table := range d.Tables {
		for _, row := range table.Rows {
			by[fmt.Sprint(row["rid"])] = row
		}
	}
	return by
}

// latencies returns the latency rows of finished requests by metric.
func latencies(t *testing.T, inputs ...string) map[string]map[string]any {
	t.Helper()
	by := map[string]map[string]any{}
	for _, r := range loggedRows(t, append([]string{"--latency", "--format", "json"}, inputs...)...) {
		if r["of"] == "finished requests" {
			by[fmt.Sprint(r["metric"])] = r
		}
	}
	return by
}

// floatsOf reads a column of floating point numbers.
func floatsOf(t *testing.T, path, name string) (cells []float64) {
	t.Helper()
	batchesOf(t, path, name, func(b *tablefile.Batch) { cells = append(cells, b.Reals[:b.N]...) })
	return cells
}

// Reports on a dataset of logs and records read the originals, and SQL has tables of the logged
// values. Extracting a redacted dataset warns that it does not know its originals.
func TestDatasetOfLogs(t *testing.T) {
	x := leave(t, "healthy_direct", 3, cluster.Logging{Layout: cluster.Layouts[0]})
	set := filepath.Join(t.TempDir(), "set")
	if r := sgtrace(t, x.logs, "extract", "-o", set, x.logs, x.records); r.status != exitOK || !strings.Contains(r.err, "[dataset-untabled]") {
		t.Fatalf("status %d: %s", r.status, r.err)
	}
	for _, args := range [][]string{{"--by-rank", "--table", "logs.ranks"}, {"--latency"}} {
		args = append(args, "--format", "json")
		if got, want := loggedRows(t, append(args, set)...), loggedRows(t, append(args, x.logs, x.records)...); len(want) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %v, want %v", args, got, want)
		}
	}
	computed, want := 0, 0
	for _, path := range glob(t, set, dataset.Version, "capture=*", "values-0"+tablefile.ParquetSuffix) {
		metrics, units := columnOf(t, path, "metric"), columnOf(t, path, "unit")
		values := floatsOf(t, path, "value")
		for i, metric := range metrics {
			if metric == "new tokens" && units[i] == "tokens" {
				computed += int(values[i])
			}
		}
	}
	for _, s := range x.run.Servers {
		for _, b := range s.Batches {
			if b.At <= x.run.End {
				want += b.NewTokens
			}
		}
	}
	if computed != want {
		t.Errorf("tables of values have %d new tokens, want %d", computed, want)
	}
	r := sgtrace(t, x.logs, "extract", "--redact", "-o", set+"2", x.logs)
	if !strings.Contains(r.err, "a redacted one does not know its originals") {
		t.Errorf("status %d: %s", r.status, r.err)
	}
}

// For two folders of logs or metrics, diff compares the computed work and lists events that only
// one side has; a folder does not differ from itself.
func TestDiffOfLogs(t *testing.T) {
	l := cluster.Logging{Layout: cluster.Layouts[0]}
	calm, full := leave(t, "fine", 3, l), leave(t, "retraction", 3, l)
	compare := func(before, after string) (verdict string, rows map[string][2]float64) {
		var d struct {
			Tables []struct {
				Name, Title string
				Rows        []struct {
					Of            string
					Before, After any // text in the setup table
				}
			}
		}
		if err := json.Unmarshal(runJSON(t, []string{"diff", "--format", "json", before, after}), &d); err != nil {
			t.Fatal(err)
		}
		rows = map[string][2]float64{}
		for _, table := range d.Tables {
			if table.Name == "diff.captures" {
				verdict = table.Title
			}
			for _, r := range table.Rows {
				if table.Name == "diff.load" {
					before, _ := r.Before.(float64)
					after, _ := r.After.(float64)
					rows[r.Of] = [2]float64{before, after}
				}
			}
		}
		return verdict, rows
	}
	_, rows := compare(calm.logs, full.logs)
	for side, x := range []leftBehind{calm, full} {
		tokens, first, last := 0, int64(math.MaxInt64), int64(0)
		for i := range x.run.Servers {
			clock := &x.run.Hosts[x.run.Servers[i].Host].Clock
			for _, b := range x.run.Servers[i].Batches {
				if b.At <= x.run.End {
					tokens, first, last = tokens+b.NewTokens, min(first, clock.At(b.At)), max(last, clock.At(b.At))
				}
			}
		}
		want := float64(tokens) / (float64(last-first) / 1e9)
		if got := rows["new tokens, tokens/s"][side]; math.Abs(got/want-1) > 0.03 { // timestamps have a resolution of one second
			t.Errorf("side %d: %v tokens/s, want %v", side, got, want)
		}
	}
	if r := rows["retraction lines, number/min"]; r[0] != 0 || r[1] <= 0 {
		t.Errorf("retractions: %v", r)
	}
	if verdict, _ := compare(full.logs, full.logs); !strings.Contains(verdict, "No difference") {
		t.Errorf("of one folder: %s", verdict)
	}
}

// The TTFT that clients measured is reported as the users', beside that of the servers; the
// difference is the network and gateways, both ways.
func TestTTFTOfClients(t *testing.T) {
	x := leave(t, "healthy_direct", 3, cluster.Logging{Layout: cluster.Layouts[0]})
	const there, back = 12, 7 // ms
	var b bytes.Buffer
	for _, q := range x.run.Requests {
		h := q.Halves[len(q.Halves)-1]
		if q.Health || h.Finish == "" || h.FirstToken == 0 || h.End > x.run.End {
			continue
		}
		at := func(ns int64) int64 { return x.run.Hosts[x.run.Servers[h.Server].Host].Clock.At(ns) }
		ttft := float64(h.FirstToken-h.Received)/1e6 + there + back
		fmt.Fprintf(&b, `{"metadata":{"x_request_id":"%s","request_start_ns":%d,"request_end_ns":%d,"worker_id":"w"},"metrics":{"time_to_first_token":{"value":%.6f,"unit":"ms"},"output_sequence_length":{"value":%d,"unit":"tokens"}},"error":null}`+"\n",
			h.RID, at(h.Received-there*1e6), at(h.End+back*1e6), ttft, h.Produced)
	}
	clients := filepath.Join(folder(t, t.TempDir(), "aiperf"), "profile_export.jsonl")
	if err := os.WriteFile(clients, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, servers := range map[string]string{"records": x.records, "dump": x.dump} {
		rows := map[string]map[string]any{}
		for _, r := range loggedRows(t, "--summary", "--table", "summary.latency", "--format", "json", servers, clients) {
			rows[fmt.Sprint(r["metric"])] = r
		}
		for _, column := range []string{"p50_ns", "mean_ns"} {
			own, ok1 := rows["ttft"][column].(float64)
			seen, ok2 := rows["user_ttft"][column].(float64)
			if between := (seen - own) / 1e6; !ok1 || !ok2 || math.Abs(between-there-back) > 1 {
				t.Errorf("%s, %s: %v ms between TTFT of servers and of clients, want %d: %v", name, column, between, there+back, rows)
			}
		}
	}
}
