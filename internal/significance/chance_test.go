package significance

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// For equally probable events, AtLeast is the binomial distribution; for others, it equals the sum
// over all outcomes.
func TestAtLeast(t *testing.T) {
	for n := range 40 {
		p := make([]float64, n)
		for i := range p {
			p[i] = 0.125
		}
		for k := 1; k <= n; k++ {
			want := 1 - distuv.Binomial{N: float64(n), P: 0.125}.CDF(float64(k-1))
			if got := AtLeast(k, p); math.Abs(got-want) > 1e-12 {
				t.Errorf("%d or more of %d: %g, want %g", k, n, got, want)
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		p := make([]float64, rng.IntN(10))
		for i := range p {
			p[i] = rng.Float64()
		}
		for k := -1; k <= len(p)+1; k++ {
			if got, want := AtLeast(k, p), allOutcomes(k, p); math.Abs(got-want) > 1e-12 {
				t.Errorf("%d or more of %v: %g, want %g", k, p, got, want)
			}
		}
	}
}

// allOutcomes adds up the probabilities of the outcomes with k events or more.
func allOutcomes(k int, p []float64) (sum float64) {
	for outcome := range 1 << len(p) {
		n, chance := 0, 1.0
		for i, one := range p {
			if outcome>>i&1 == 1 {
				n, chance = n+1, chance*one
			} else {
				chance *= 1 - one
			}
		}
		if n >= k {
			sum += chance
		}
	}
	return sum
}

// Rare outcomes keep their probability, far below the rounding error of 1.
func TestAtLeastOfRare(t *testing.T) {
	p := make([]float64, 30)
	for i := range p {
		p[i] = 1. / 160
	}
	if got, want := AtLeast(30, p), math.Pow(1./160, 30); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("all of 30: %g, want %g", got, want)
	}
}
