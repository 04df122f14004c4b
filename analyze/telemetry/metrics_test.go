package telemetry

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Each level and mean of a rank is drawn once: in the timeline of ranks, or with the other metrics.
func TestEveryLevelIsDrawnOnce(t *testing.T) {
	for id := range series.KnownMetrics {
		kind := series.Metrics[id].Kind
		if kind != series.Gauge && kind != series.Mean || id == series.Running {
			continue
		}
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("m", "test")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "decode-0", Role: "decode"}), Rank: trace.NoRank, GPU: series.NoGPU})
		for i := range 20 {
			at := trace.Time(1787000000+15*i) * 1e9
			f.Add(f.Series(series.Running, p), at, 4) // makes the place a rank
			f.Add(f.Series(id, p), at, float64(1+i))
		}
		set.Finish(series.Known{})
		var ranks, others strings.Builder
		if err := Measure(set, Options{}).Write(&ranks, table.Style{}); err != nil {
			t.Fatal(err)
		}
		if err := MeasureMetrics(set, Options{}).Write(&others, table.Style{}); err != nil {
			t.Fatal(err)
		}
		name := "  " + series.Metrics[id].Name + " "
		if n := strings.Count(ranks.String(), name) + strings.Count(others.String(), name); n != 1 {
			t.Errorf("%s is drawn %d times:\n%s%s", series.Metrics[id].Name, n, ranks.String(), others.String())
		}
	}
}

// A value holds until the next one if that comes on time.
func TestValuesHoldBetweenScrapes(t *testing.T) {
	no := math.NaN()
	for _, c := range []struct{ is, want []float64 }{
		{[]float64{1, no, no, 2, no, no, 3, no, no, 4, no, no}, []float64{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, no, no}},
		{[]float64{1, no, no, 2}, []float64{1, no, no, 2}},
		{[]float64{no, 1, 2, 3, no, no, no, 4, 5}, []float64{no, 1, 2, 3, no, no, no, 4, 5}},
		{[]float64{no, no}, []float64{no, no}},
	} {
		got := slices.Clone(c.is)
		holdBetween(got)
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }) {
			t.Errorf("%v: %v, want %v", c.is, got, c.want)
		}
	}
}
