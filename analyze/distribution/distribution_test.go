package distribution

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A line that four of ten requests are far above is fitted all the same.
func TestFitSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var v []Sized
	for range 200 {
		n := 1 + rng.Int64N(4000)
		ns := 6_000_000 + 70_000*n + rng.Int64N(100_000)
		if rng.IntN(10) < 4 {
			ns += 10_000_000 + rng.Int64N(400_000_000)
		}
		v = append(v, Sized{n, ns})
	}
	f := FitSize(v)
	if f.N != 200 || math.Abs(f.PerToken-70_000) > 4000 || f.Base < 5_000_000 || f.Base > 20_000_000 {
		t.Errorf("fit %+v, want 6 ms + 70 us per token", f)
	}
	for name, v := range map[string][]Sized{"few": v[:fewFitted-1], "none": nil, "equal": make([]Sized, 50)} {
		if f := FitSize(v); f.N != 0 || f.Expected(100) != 0 {
			t.Errorf("%s: fit %+v, want none", name, f)
		}
	}
}
