package hardware

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A GPU that stops working while all others are busy is reported. One that never worked is not, and neither is one on an idle host.
func TestIdlers(t *testing.T) {
	for _, c := range []struct {
		name         string
		before, then [3]float64 // utilization of three GPUs, %
		want         string     // "" is no finding
	}{
		{"the others wait for it", [3]float64{80, 90, 85}, [3]float64{100, 0, 100}, "GPU 1 of x has done nothing since 20:55:00, while its 2 peers are busy all the time; before, it was at 90 %"},
		{"it never worked", [3]float64{80, 0, 85}, [3]float64{100, 0, 100}, ""},
		{"none works", [3]float64{80, 90, 85}, [3]float64{0, 0, 0}, ""},
		{"the others are busy now and then", [3]float64{80, 90, 85}, [3]float64{60, 0, 70}, ""},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("x", "printed tables")
		for gpu := range 3 {
			place := f.Place(series.Place{Server: f.Server(series.Server{Host: "x"}), Rank: trace.NoRank, GPU: int32(gpu)})
			for i := range 20 {
				v := c.before[gpu]
				if i >= 10 {
					v = c.then[gpu]
				}
				f.Add(f.Series(series.GPUUtil, place), begin+trace.Time(i)*10*sec, v)
			}
		}
		set.Finish(series.Known{})
		list, _ := Clocks(set, nil)
		got := ""
		for _, f := range list {
			got += f.Text
			if f.Confidence != finding.Likely || f.Subkind != IdleSubkind {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
