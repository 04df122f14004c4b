package significance

import (
	"math"
	"math/rand/v2"
	"testing"
)

// drawStrata returns n values whose level rises from stratum to stratum, and a random group of
// them.
func drawStrata(rng *rand.Rand, n int, part float64) (values []float64, in []bool) {
	for i := range n {
		values = append(values, math.Floor(rng.ExpFloat64()*20)+float64(i))
		in = append(in, rng.Float64() < part)
	}
	return values, in
}

// A randomly drawn group is called high as often as the probability says.
func TestChanceGroupsAreRarelyHigh(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const runs = 2000
	var below, inPieces [3]int
	limits := [3]float64{0.05, 0.2, 0.5}
	for range runs {
		values, in := drawStrata(rng, 200, 0.1)
		s := NewStrata(values, 20)
		for k, limit := range limits {
			if s.Higher(in) <= limit {
				below[k]++
			}
			if s.HigherInPieces(in) <= limit {
				inPieces[k]++
			}
		}
	}
	for k, limit := range limits {
		deviation := 4 * math.Sqrt(runs*limit*(1-limit))
		for _, n := range []int{below[k], inPieces[k]} {
			if math.Abs(float64(n)-runs*limit) > deviation {
				t.Errorf("p <= %v in %d of %d runs", limit, n, runs)
			}
		}
	}
}

// P counts the ways to divide a stratum. Here, the group is drawn repeatedly.
func TestHigherCountsWays(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		values, in := drawStrata(rng, 120, 0.3)
		for i := range values {
			if in[i] {
				values[i] += 4
			}
		}
		const strata, size, draws = 6, 20, 4000
		s := NewStrata(values, strata)
		sum := func(in []bool) (sum float64) {
			for i, r := range s.ranks {
				if in[i] {
					sum += r
				}
			}
			return sum
		}
		own, high, got := sum(in), 0.0, s.Higher(in)
		for range draws {
			for k := range strata {
				rng.Shuffle(size, func(i, j int) { in[k*size+i], in[k*size+j] = in[k*size+j], in[k*size+i] })
			}
			if sum(in) >= own {
				high++
			}
		}
		if want := high / draws; math.Abs(got-want) > 0.01+0.2*want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// A group that is always the highest is found; equal values give nothing.
func TestHigherGroups(t *testing.T) {
	values, in := make([]float64, 200), make([]bool, 200)
	for i := range values {
		in[i] = i%10 == 3
	}
	if s := NewStrata(values, 20); s.Higher(in) != 1 || s.HigherInPieces(in) != 1 {
		t.Errorf("equal values: %v, %v", s.Higher(in), s.HigherInPieces(in))
	}
	for i := range values {
		if in[i] {
			values[i] = 1
		}
	}
	if s := NewStrata(values, 20); s.Higher(in) > 1e-12 || s.HigherInPieces(in) > 1e-12 {
		t.Errorf("always highest: %v, %v", s.Higher(in), s.HigherInPieces(in))
	}
	if p := NewStrata(values, 7).HigherInPieces(in); !math.IsNaN(p) {
		t.Errorf("seven pieces: %v", p)
	}
}
