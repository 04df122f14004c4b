package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// Four SGLang ranks have all-reduces in an unnamed namespace. An engineer computed the truth from
// the order of calls: all collectives are matched, how long each rank waited (ms), how often it
// came last, and the two ranks that the others waited for.
func TestWaitsOfRealRanks(t *testing.T) {
	inputs := testinput.Shared(t, "data", "reality2", "gb300_sglang_qwen3moe_tp4__bs16-TP-?.trace.json.zst")
	files, err := filepath.Glob(inputs)
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	all := strings.Join(files, " ")
	var ranks struct {
		Tables []struct{ Rows []map[string]any }
	}
	read := func(command string, to any) {
		if err := json.Unmarshal([]byte(mustRun(t, t.TempDir(), command+" --format json "+all).out), to); err != nil {
			t.Fatal(err)
		}
	}
	read("report --by-rank --table collectives.ranks", &ranks)
	rows := ranks.Tables[0].Rows
	if len(rows) != 4 {
		t.Fatalf("%d ranks", len(rows))
	}
	for i, row := range rows {
		wait, last := row["wait_ns"].(float64)/1e6, row["last"].(float64)
		if row["n"].(float64) != 1176 || math.Abs(wait-[]float64{74.6, 43.6, 95.0, 51.9}[i]) > 0.1 || math.Abs(last-[]float64{256, 381, 192, 347}[i]) > 2 {
			t.Errorf("rank %d: %v", i, row)
		}
	}
	var found struct {
		Findings []struct {
			Text     string
			Cost     float64
			Evidence []struct{ Text string }
		}
	}
	read("report", &found)
	if len(found.Findings) != 2 || !strings.HasPrefix(found.Findings[1].Text, "the 4 GPUs are idle 14 % of the time between steps and 16 % in them") {
		t.Fatalf("%+v", found.Findings)
	}
	f := found.Findings[0]
	if !strings.Contains(f.Text, "for TP1 EP1 until 04:44:06.99") || !strings.Contains(f.Text, "then for TP3 EP3, whose hosts launch late") || math.Abs(f.Cost-0.218) > 0.003 {
		t.Errorf("%v: %s", f.Cost, f.Text)
	}
	if e := f.Evidence[1].Text; !strings.Contains(e, "broadcast_pyobj() (common.py:1401) for 27.4 ms") || !strings.Contains(e, "TorchDynamo Cache Lookup in trampoline() (compile.py:188) for 26.9 ms") {
		t.Errorf("%s", e)
	}
}
