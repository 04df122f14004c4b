package distribution

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/request"
)

// FitSize fits a line through most requests although four of ten are far above it.
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

// Attention makes long prompts take longer than in proportion. FitPrompts follows that, also if a quarter of all take three times as long;
// where times are proportional, it adds nothing.
func TestFitPrompts(t *testing.T) {
	for _, perPair := range []float64{1.2, 0} {
		rng := rand.New(rand.NewPCG(5, 6))
		usual := func(n float64) float64 { return 10e6 + 16_000*n + perPair*n*n }
		var v []Sized
		for i := range 2000 {
			n := math.Exp(6.5 + rng.NormFloat64())
			ns := usual(n) * (1 + 0.03*rng.NormFloat64())
			if i%4 == 0 && n > 4000 {
				ns *= 3
			}
			v = append(v, Sized{int64(n), int64(ns)})
		}
		f := FitPrompts(v)
		for _, n := range []int64{100, 700, 4000, 16_000} {
			if got, want := float64(f.Expected(n)), usual(float64(n)); got < 0.8*want || got > 1.2*want {
				t.Errorf("%g ns per pair: %d tokens take %.1f ms, want %.1f: %+v", perPair, n, got/1e6, want/1e6, f)
			}
		}
		if perPair == 0 && f.PerPair*16_000 > 0.1*f.PerToken {
			t.Errorf("proportional: %+v", f)
		}
	}
}

// LowerMedian returns the same as sorting, in any order of values, even with equal values and NaN.
func TestLowerMedianIsThatOfSorted(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	orders := map[string]func(i, n int) float64{
		"random":     func(int, int) float64 { return rng.NormFloat64() },
		"few values": func(int, int) float64 { return float64(rng.IntN(3)) },
		"one value":  func(int, int) float64 { return 7 },
		"ascending":  func(i, _ int) float64 { return float64(i) },
		"descending": func(i, n int) float64 { return float64(n - i) },
		"organ pipe": func(i, n int) float64 { return float64(min(i, n-i)) },
		"some NaN":   func(i, _ int) float64 { return []float64{math.NaN(), float64(i), -float64(i)}[rng.IntN(3)] },
	}
	for name, value := range orders {
		for _, n := range []int{1, 2, 63, 64, 65, 66, 1000, 4097} {
			v := make([]float64, n)
			for i := range v {
				v[i] = value(i, n)
			}
			want := request.NearestRank(slices.Sorted(slices.Values(v)), 50)
			if got := LowerMedian(v); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s, %d values: %v, want %v", name, n, got, want)
			}
		}
	}
}
