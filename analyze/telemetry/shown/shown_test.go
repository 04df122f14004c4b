package shown

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// In an export of curves, one that leaves its usual level is reported, with the time, whatever it
// measures. One that merely fluctuates is not.
func TestShown(t *testing.T) {
	waver := func(i int) float64 { return float64(i * 7 % 5) }
	for _, c := range []struct {
		name string
		of   func(i int) float64
		want string // "" is no finding
	}{
		{"steady", func(i int) float64 { return 100 + waver(i) }, ""},
		{"a step down", func(i int) float64 { return (100 + waver(i)) * map[bool]float64{true: 0.5, false: 1}[i >= 40] }, "x (a) falls since 20:54:00, to 50 ("},
		{"a slope", func(i int) float64 { return 100 + waver(i) + 5*float64(max(0, i-30)) }, "x (a) rises since 20:53:52, to 24"},
		{"one spike", func(i int) float64 { return 100 + 900*map[bool]float64{true: 1, false: 0}[i == 20] }, ""},
		{"a while", func(i int) float64 { return 10 + 90*map[bool]float64{true: 1, false: 0}[i >= 20 && i < 30] }, "x (a) rises since 20:53:40 until 20:53:50, to 100 (10 before)"},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("x.csv", "Grafana CSV")
		place := f.Place(series.Place{Server: f.Server(series.Server{}), Rank: trace.NoRank, GPU: series.NoGPU})
		metric := f.Metric(series.Metric{Name: "x", Kind: series.Shown})
		for i := range 60 {
			at := trace.Time(1787000000+i) * 1e9
			f.Add(f.SeriesOf(series.Series{Metric: metric, Place: place, Label: set.Syms.Intern("a")}), at, c.of(i))
			f.Add(f.SeriesOf(series.Series{Metric: metric, Place: place, Label: set.Syms.Intern("b")}), at, 100+waver(i))
		}
		set.Finish(series.Known{})
		found, check := Shown(telemetry.Measure(set, telemetry.Options{}))
		got := ""
		for _, f := range found {
			got += f.Text
		}
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") || check.N != 2 {
			t.Errorf("%s: %q, want %q; %+v", c.name, got, c.want, check)
		}
	}
}
