package telemetry

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// The share of their time that requests wait on a server, computed exactly, equals what its counts imply.
func TestTimeOfRequestsByCounts(t *testing.T) {
	const places, seconds, second = 3, 1200, trace.Time(1e9)
	r := rand.New(rand.NewPCG(7, 7))
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	var waits [2]float64
	all := 0.0
	for k, rate := range []float64{0.4, 0.9} { // load, as a share of the server's capacity
		f := set.Fill(string(rune('a'+k)), "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: string(rune('a' + k)), Role: "unified", Engine: "vLLM"}), Rank: trace.NoRank, GPU: series.NoGPU})
		var free [places]float64
		var running, queued [seconds]float64
		count := func(list *[seconds]float64, from, to float64) {
			for s := int(math.Ceil(from)); float64(s) < to && s < seconds; s++ {
				list[s]++
			}
		}
		for at := 0.0; at < seconds*0.9; at += r.ExpFloat64() * 10 / places / rate {
			place := 0
			for i := range free {
				if free[i] < free[place] {
					place = i
				}
			}
			from := max(at, free[place])
			free[place] = from + 10*r.ExpFloat64()
			count(&queued, at, from)
			count(&running, from, free[place])
			waits[k] += from - at
			all += free[place] - at
		}
		for s := range seconds {
			f.Line(int64(s) + 1)
			f.Add(f.Series(series.Running, p), (1_700_000_000+trace.Time(s))*second, running[s])
			f.Add(f.Series(series.Queued, p), (1_700_000_000+trace.Time(s))*second, queued[s])
		}
	}
	set.Finish(series.Known{})
	l := Measure(set, Options{})
	for k, want := range waits {
		if got := l.Waiting(&l.Ranks[k], l.Between(l.From, 0)); math.Abs(got-want/all) > 0.01 {
			t.Errorf("%d waits %.3f of the time, want %.3f", k, got, want/all)
		}
	}
	if waits[1]/all < 0.2 || waits[0]/all > 0.1 {
		t.Errorf("the servers are not as they should be: %v of %v", waits, all)
	}
}
