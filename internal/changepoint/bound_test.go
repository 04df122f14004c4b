package changepoint

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The bound is never below the gain, so a search that checks the bound first finds the same changes.
func TestBoundIsAboveGain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		n := 2*minEvents + r.IntN(300)
		times := make([]float64, n)
		for i := range times {
			times[i] = 1e12 * r.Float64() * r.Float64() // more of them early
		}
		slices.Sort(times)
		a := &arrivals{times: times, at: make([]float64, n+1), dispersion: 1 + r.Float64(), briefest: 1e9 * r.Float64()}
		a.at[n] = 1e12
		for k := 1; k < n; k++ {
			a.at[k] = (times[k-1] + times[k]) / 2
		}
		for range 200 {
			from := r.IntN(n - 1)
			to := from + 2 + r.IntN(n-from-1)
			k := from + 1 + r.IntN(to-from-1)
			if bound, gain := a.bound(from, k, to), a.gain(from, k, to); bound < gain {
				t.Fatalf("[%d, %d) at %d of %d: a bound of %g, and a gain of %g", from, to, k, n, bound, gain)
			}
		}
	}
}
