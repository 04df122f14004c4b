package page

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/requests"
)

func TestStagesOfRanks(t *testing.T) {
	group := func(rank, stage string, n int, mean int64) requests.Group {
		return requests.Group{Key: []string{"decode", "Scheduler", rank, stage}, Summary: distribution.Summary{N: n, Mean: mean, Total: int64(n) * mean}}
	}
	f := stageFigure([]requests.Group{
		group("h1 Scheduler TP0", "forward", 10, 1000), group("h1 Scheduler TP0", "loop", 10, 5000), group("h1 Scheduler TP0", "tiny", 10, 1),
		group("h1 Scheduler TP1", "forward", 20, 1200), group("h1 Scheduler TP1", "tiny", 10, 5), group("h1 Scheduler TP1", "alone", 10, 90_000),
		group("h1 Scheduler TP2", "forward", 10, 900), group("h1 Scheduler TP2", "loop", 10, 10_000),
	}, Source{})
	heat := f.Body.(*chart.Heatmap)
	want := map[string][]float64{
		"loop":    {1, math.NaN(), 2}, // of two, the median is the smaller one
		"forward": {1, 1.2, 0.9},
	}
	if len(heat.Rows) != 2 || heat.Rows[0] != "loop" || heat.Rows[1] != "forward" || len(f.Notes) != 1 {
		t.Fatalf("rows are %q, notes %q", heat.Rows, f.Notes)
	}
	if heat.Columns[1] != "h1 TP1" {
		t.Errorf("columns are %q", heat.Columns)
	}
	for r, name := range heat.Rows {
		for c, cell := range heat.Cells[r] {
			if v := want[name][c]; cell.Value != v && !(math.IsNaN(v) && math.IsNaN(cell.Value)) {
				t.Errorf("%s on %s is %g, want %g", name, heat.Columns[c], cell.Value, v)
			}
		}
	}
	if f := stageFigure([]requests.Group{group("h1 Scheduler TP0", "forward", 10, 1000)}, Source{}); f != nil {
		t.Error("one rank is compared")
	}
}
