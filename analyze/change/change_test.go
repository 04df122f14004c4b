package change

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
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

// A request with a forged time is ignored.
func TestNothingChangesByAStray(t *testing.T) {
	if c := Find(place.Of(testset.WithStray(t))); c.Requests != 59 || len(c.List) > 0 {
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
	if err := json.Unmarshal([]byte(testset.Text(t, r, table.FormatJSON, table.Style{})), &v); err != nil || len(v.Rows) != r.Len() {
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
