package counters

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/convert/clocks"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

const second = trace.Time(1e9)

// A counter holds a value until the next one. At any time, a gauge has its last value, a mean the
// value of the next sample, and a rate integrates to the growth of its counter.
func TestShapesOfSeries(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("x", "test")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a"}), Rank: trace.NoRank, GPU: series.NoGPU})
		counter := f.Metric(series.Metric{Name: "bytes", Unit: "bytes", Kind: series.Counter})
		at, total := trace.Time(100)*second, 0.0
		n := 2 + random.IntN(30)
		var times []trace.Time
		var values []float64
		tokens := 0.0
		for range n {
			at += trace.Time(1+random.IntN(5)) * second
			v := float64(random.IntN(50))
			times, values = append(times, at), append(values, v)
			total += v
			tokens += v
			f.Add(f.Series(series.Queued, p), at, v)
			f.Add(f.Series(series.Generation, p), at, v)
			f.Add(f.Series(series.NewTokens, p), at, v)
			f.Add(f.Series(counter, p), at, total)
		}
		set.Finish(series.Known{})
		v := &loggedView{set: set}
		of := func(m series.MetricID) []series.Sample {
			i := slices.IndexFunc(set.List, func(s series.Series) bool { return s.Metric == m })
			return v.shape(i, func(t trace.Time) trace.Time { return t }).points
		}
		held := func(points []series.Sample, at trace.Time) (value float64) {
			for _, p := range points {
				if p.Time <= at {
					value = p.Value
				}
			}
			return value
		}
		grown := values[0]
		for k := range n - 1 {
			between := times[k] + (times[k+1]-times[k])/2
			if got := held(of(series.Queued), between); got != values[k] {
				t.Fatalf("a gauge is %g at %d, want %g", got, between, values[k])
			}
			if got := held(of(series.Generation), between); got != values[k+1] {
				t.Fatalf("a mean is %g at %d, want %g", got, between, values[k+1])
			}
			grown += held(of(counter), between) * float64(times[k+1]-times[k]) / 1e9
		}
		if d := grown - total; d > 1e-6 || d < -1e-6 {
			t.Fatalf("rates add up to %g, want %g", grown, total)
		}
		amount, sum := of(series.NewTokens), 0.0
		for k := range len(amount) - 1 {
			sum += amount[k].Value * float64(amount[k+1].Time-amount[k].Time) / 1e9
		}
		if d := sum - tokens; d > 1e-6 || d < -1e-6 || amount[len(amount)-1].Value != 0 {
			t.Fatalf("amounts add up to %g, want %g", sum, tokens)
		}
	}
}

// A time window begins with the values that held at its start and contains nothing from outside;
// sources that were not selected are left out.
func TestLoggedWindow(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("x.log", "test log")
	for i, name := range []string{"a", "b"} {
		p := f.Place(series.Place{Server: f.Server(series.Server{Host: name}), Rank: trace.NoRank, GPU: 3})
		for k := range 10 {
			f.Add(f.Series(series.SMClock, p), trace.Time(100+10*k)*second, float64(1000*i+k))
			f.Instant(series.Instant{Time: trace.Time(100+10*k) * second, Place: p, Kind: series.Hardware, Line: uint32(k)}, "Xid 79")
		}
	}
	set.Finish(series.Known{})
	b := trace.NewBuilder(set.Syms, trace.NewArgs(), set.Diags)
	Draw(b, set, &clocks.Alignment{}, &Chosen{Window: inputs.Extent{From: 125 * second, To: 140 * second}, Hosts: []string{"b"}}, 0)
	out := b.Finish()
	got := ""
	for _, s := range out.Samples {
		got += fmt.Sprintf("%s %d %g\n", out.Syms.Name(out.Tracks[s.Track].Name), s.Time/second, s.Value)
	}
	for _, x := range out.Instants {
		got += fmt.Sprintf("%s %d %s\n", out.Syms.Name(out.Tracks[x.Track].Name), x.Time/second, out.Syms.Name(x.Name))
	}
	const want = `SM clock · GPU 3 of b 125 1002
SM clock · GPU 3 of b 130 1003
SM clock · GPU 3 of b 140 1004
events · b 130 hardware
events · b 140 hardware
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
