package hardware

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A resource that is nearly used up is reported with its start, if it has a limit and is still nearly used up at the end.
func TestLefts(t *testing.T) {
	for _, c := range []struct {
		name, of, all string
		limit         float64
		values        []float64
		want          string // "" is no finding
	}{
		{"a container near its limit", levels[0].of, levels[0].all, 100e9, []float64{50e9, 94e9, 96e9, 99e9}, "pod has 1 GB left of the 100 GB of memory that it may use, since 20:53:40"},
		{"one with room", levels[0].of, levels[0].all, 100e9, []float64{50e9, 99e9, 60e9}, ""},
		{"one without a limit", levels[0].of, levels[0].all, 1 << 62, []float64{50e9, 99e9}, ""},
		{"a host at one moment", levels[1].of, levels[1].all, 100e9, []float64{1e9}, "pod has 1 GB left of its 100 GB of memory at 20:53:20"},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("x", "printed tables")
		place := f.Place(series.Place{Server: f.Server(series.Server{}), User: "pod", Rank: trace.NoRank, GPU: series.NoGPU})
		for i, v := range c.values {
			at := begin + trace.Time(i)*10*sec
			f.Add(f.Series(f.Metric(series.Metric{Name: c.of}), place), at, v)
			f.Add(f.Series(f.Metric(series.Metric{Name: c.all}), place), at, c.limit)
		}
		set.Finish(series.Known{})
		list, _ := Hosts(set)
		got := ""
		for _, f := range list {
			got += f.Text
			if f.Confidence != finding.Certain || f.Cost != 0 {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
