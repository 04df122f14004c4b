package change

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/table/tabletest"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

func TestNothingChangesInNothing(t *testing.T) {
	s := testset.BuildSet(t, "empty", strings.NewReader(`{"resourceSpans":[]}`))
	if c := Find(place.Of(s)); len(c.List) > 0 || c.Series != 0 {
		t.Errorf("%+v", c)
	}
}

// A request with a forged time is left out.
func TestNothingChangesByAStray(t *testing.T) {
	var d testset.Dump
	for i := range 60 {
		from := float64(i) * 10_000
		if i == 30 {
			from = -1e12 // 11 days before
		}
		d.Add(testset.Span{Trace: fmt.Sprintf("%032x", i+1), Name: "llm_request", Service: "vllm", From: from, To: from + 5000,
			Attrs: testset.Attrs{"gen_ai.request.id": fmt.Sprint("r", i), "gen_ai.usage.completion_tokens": 4, "gen_ai.latency.time_to_first_token": 0.001}})
	}
	if c := Find(place.Of(d.Set(t))); c.Requests != 59 || len(c.List) > 0 {
		t.Errorf("%d requests, %+v", c.Requests, c.List)
	}
}

func TestChangesAsJSON(t *testing.T) {
	dump, _ := testinput.Simulate(t, simulator.DefaultConfig(1))
	r := Find(place.Of(testset.BuildSet(t, "sim", bytes.NewReader(dump)))).Report()
	var v struct {
		Schema string           `json:"schema"`
		Rows   []map[string]any `json:"rows"`
	}
	if err := json.Unmarshal([]byte(tabletest.Text(t, r, table.FormatJSON, table.Style{})), &v); err != nil || len(v.Rows) != r.Len() {
		t.Errorf("%s: %v, %d of %d rows", v.Schema, err, len(v.Rows), r.Len())
	}
}

func BenchmarkFindChanges(b *testing.B) {
	s := testset.LoadDump(b, "d_big_tp2.jsonl.zst")
	b.ReportAllocs()
	for b.Loop() {
		Find(place.Of(s))
	}
}
