package changepoint

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testset"
)

// Pulses are found with their interval. Steady levels, steps, and waves have none.
func TestRateOfPulses(t *testing.T) {
	for _, c := range []struct {
		what  string
		level func(p *Pulses, from, to float64) float64
		is    bool
		least int
	}{
		{"pulses", func(p *Pulses, from, to float64) float64 { return -4 * p.Over(from, to) }, true, 90},
		{"pulses and a step", func(p *Pulses, from, to float64) float64 {
			return -4*p.Over(from, to) + 3*after(&Observation{From: from, To: to}, 60)
		}, true, 85},
		{"steady", func(*Pulses, float64, float64) float64 { return 0 }, false, 100},
		{"a step", func(_ *Pulses, from, to float64) float64 { return 4 * after(&Observation{From: from, To: to}, 60) }, false, 100},
		{"a wave", func(p *Pulses, from, to float64) float64 { return 2 * math.Sin(math.Pi*(from+to)/p.Every) }, false, 98},
	} {
		right, runs := 0, 0
		for _, seed := range testset.FirstSeeds(t, 3) {
			for k, climate := range climates {
				r := rand.New(rand.NewPCG(seed, uint64(k)))
				truth := Pulses{At: 12 * r.Float64(), Every: 7 + 8*r.Float64(), Count: 20}
				truth.Length = truth.Every * (0.12 + 0.2*r.Float64())
				list := climate.series(r, func(from, to float64) float64 { return c.level(&truth, from, to) })
				got := FindPulses(list)
				runs++
				if found := got.P <= 0.001; found == c.is && (!found || math.Abs(got.Every/truth.Every-1) < 0.03) {
					right++
				} else {
					t.Logf("%s, seed %d, %+v: %+v for %+v", c.what, seed, climate, got, truth)
				}
			}
		}
		testset.Rate(t, "pulses: "+c.what, right, runs, c.least)
	}
}

// BenchmarkFindPulses searches noise, the most common input.
func BenchmarkFindPulses(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	list := make([]Observation, 600)
	for i := range list {
		list[i] = Observation{From: float64(i), To: float64(i) + 1, Value: 1 + 0.05*r.NormFloat64(), Weight: 1}
	}
	for b.Loop() {
		FindPulses(list)
	}
}
