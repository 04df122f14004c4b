package slow

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// If one of two servers takes 1.4 times as long from some scrape on, that is found, even if load varies
// by more on both. A change on both is not reported here, nor one that lasts for a few scrapes.
func TestSlowerThanTheOtherByHistograms(t *testing.T) {
	const n = 60
	for _, c := range []struct {
		name  string
		both  func(k int) float64 // factor of the duration of requests on both
		times func(k int) float64 // additional factor on the first one
		since int                 // scrape; 0 is no finding
	}{
		{"alone", jumps(0, 1, 1), jumps(30, 1, 1.4), 30},
		{"beside load", func(k int) float64 { return 1 + 0.15*math.Sin(float64(k)/4) }, jumps(30, 1, 1.4), 30},
		{"both", jumps(30, 1, 1.4), jumps(0, 1, 1), 0},
		{"for a minute", jumps(0, 1, 1), func(k int) float64 { return jumps(30, 1, 1.4)(k) / jumps(34, 1, 1.4)(k) }, 0},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("m", "test")
		random := rand.New(rand.NewPCG(3, 4))
		for server, name := range []string{"a", "b"} {
			p := f.Place(series.Place{Server: f.Server(series.Server{Name: name, Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
			counts := make([]float64, len(bounds))
			for k := range n {
				at := trace.Time(1787000000+15*k) * second
				f.Add(f.Series(series.Running, p), at, 4)
				for b, most := range bounds {
					f.Add(f.SeriesOf(series.Series{Metric: series.E2E, Place: p, Most: most}), at, counts[b])
				}
				takes := 0.9 * c.both(k)
				if server == 0 {
					takes *= c.times(k)
				}
				for range 40 {
					v := takes * math.Exp(0.5*random.NormFloat64()-0.125)
					for b, most := range bounds {
						if v <= most {
							counts[b]++
						}
					}
				}
			}
		}
		set.Finish(series.Known{})
		found, _ := Latencies(telemetry.Measure(set, telemetry.Options{}))
		switch {
		case c.since == 0 && len(found) == 0:
		case c.since == 0 || len(found) != 1 || !strings.Contains(found[0].Text, " on a"):
			t.Errorf("%s: %v", c.name, found)
		default:
			off := (found[0].Since - trace.Time(1787000000+15*c.since)*second) / (15 * second)
			if m := found[0].Metric; off < -2 || off > 2 || m.After/m.Before < 1.25 || m.After/m.Before > 1.55 || found[0].Until != 0 {
				t.Errorf("%s: %d scrapes off, %v times as long: %s", c.name, off, m.After/m.Before, found[0].Text)
			}
		}
	}
}
