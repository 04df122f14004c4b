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

// snapshots returns the lines of vLLM servers: tokens per second cover an interval, but the number of running
// requests is that at its end, with random fluctuation. A step takes alone s, plus each s per request.
func snapshots(seed uint64, alone, each float64, servers ...func(k int) (asked, slower float64)) *telemetry.Logged {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	r := rand.New(rand.NewPCG(seed, 7))
	for i, server := range servers {
		name := string(rune('a' + i))
		f := set.Fill(name, "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: name, Engine: "vLLM", Role: "unified"}), Rank: trace.Rank{DP: 0, PP: -1, TP: -1, EP: -1}, GPU: series.NoGPU})
		for k := range 120 {
			f.Line(int64(k) + 1)
			at := trace.Time(1_700_000_000+10*k) * 1e9
			asked, slower := server(k)
			asked *= math.Exp(0.15 * r.NormFloat64())
			mean := asked * alone * slower / (1 - math.Min(0.95, asked*each*slower))
			f.Add(f.Series(series.Running, p), at, math.Max(1, math.Round(mean+0.8*math.Sqrt(mean)*r.NormFloat64())))
			f.Add(f.Series(series.Queued, p), at, 0)
			f.Add(f.Series(series.KVUsage, p), at, mean/2)
			f.Add(f.Series(series.Generation, p), at, asked)
		}
	}
	set.Finish(series.Known{})
	return telemetry.Measure(set, telemetry.Options{})
}

// A server that is a third slower than before, or than others, is found although each line shows a random number
// of running requests. A server with higher demand, or with larger batches at its limit, is not slower.
func TestSlowerBySnapshots(t *testing.T) {
	steady := func(int) (float64, float64) { return 570, 1 }
	for _, c := range []struct {
		name        string
		alone, each float64
		servers     []func(k int) (float64, float64)
		want        string
	}{
		{"none", 0.018, 0.0003, []func(int) (float64, float64){steady, steady, steady}, ""},
		{"since the middle", 0.018, 0.0003, []func(int) (float64, float64){steady, func(k int) (float64, float64) { return 570, 1 + 0.35*float64(k/60) }, steady}, "on DP0 (b), "},
		{"all the time", 0.018, 0.0003, []func(int) (float64, float64){steady, steady, func(int) (float64, float64) { return 570, 1.4 }}, "on the other 2 of its role, although no more come out"},
		{"more is asked of one", 0.018, 0.0003, []func(int) (float64, float64){steady, steady, func(int) (float64, float64) { return 800, 1 }}, ""},
		{"near the limit", 0.002, 0.00167, []func(int) (float64, float64){steady, steady, func(k int) (float64, float64) { return 570 * (1 + 0.03*float64(k/60)), 1 }}, ""},
	} {
		for seed := range uint64(4) {
			found, _ := Slower(snapshots(seed, c.alone, c.each, c.servers...))
			if got := texts(found); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("%s, seed %d: %q", c.name, seed, got)
			}
		}
	}
}
