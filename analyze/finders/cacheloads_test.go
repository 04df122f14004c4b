package finders

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A cost of 100 us more per cached token is distinguished from a doubled cost per computed token.
func TestPerCached(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 6))
	list := func(perComputed, perCached float64) (out []prefilled) {
		for range 200 {
			x := prefilled{computed: 100 + rnd.Int64N(2000), cached: rnd.Int64N(6000)}
			x.ns = int64((12e6 + perComputed*float64(x.computed) + perCached*float64(x.cached)) * math.Exp(0.05*rnd.NormFloat64()))
			out = append(out, x)
		}
		return out
	}
	before := list(60_000, 0)
	if got := perCached(before, list(60_000, 100_000)); math.Abs(got-100_000) > 5_000 {
		t.Errorf("%.0f ns, want 100,000", got)
	}
	if got := perCached(before, list(120_000, 0)); got != 0 {
		t.Errorf("%.0f ns of slow computing", got)
	}
	if got := perCached(before, list(60_000, 0)); got != 0 {
		t.Errorf("%.0f ns of nothing", got)
	}
}
