package significance

import (
	"math"
	"math/rand/v2"
	"testing"
)

// days draws a quantity that varies from day to day, measured in n captures.
func days(rng *rand.Rand, n int, mean, spread float64) []Piece {
	list := make([]Piece, n)
	for i := range list {
		of := 100 + 900*rng.Float64() // captures have any length
		list[i] = Piece{Sum: of * mean * math.Exp(spread*rng.NormFloat64()), Of: of}
	}
	return list
}

// Captures of the same quantity exceed a bound at most as often as the level says, however few they
// are; captures of a clearly larger one nearly always do.
func TestCapturesAgainstABound(t *testing.T) {
	const level, runs, spread, bound = 0.01, 4000, 0.02, 1.05
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range [][2]int{{1, 3}, {2, 2}, {3, 3}, {5, 4}} {
		for grown, most := range map[float64]float64{1: 0.001, bound: 1.6 * level} {
			wrong := 0
			for range runs {
				before, after := days(rng, n[0], 1, spread), days(rng, n[1], grown, spread)
				if ByCapture.Above(Sample{Pieces: before}, Sample{Pieces: after}, bound).P <= level {
					wrong++
				}
			}
			if float64(wrong) > most*runs {
				t.Errorf("%d and %d captures that grew by %g: %d of %d are beyond %g", n[0], n[1], grown, wrong, runs, bound)
			}
		}
	}
	found := 0
	for range 100 {
		if ByCapture.Above(Sample{Pieces: days(rng, 3, 1, spread)}, Sample{Pieces: days(rng, 3, 1.25, spread)}, bound).P <= level {
			found++
		}
	}
	if found < 95 {
		t.Errorf("a growth of 25 %% is found in %d of 100", found)
	}
}

// Scaling by the bound is equivalent: a quantity is above 1.1 times another exactly if it is above
// the other multiplied by 1.1.
func TestBoundScales(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	sample := func(pieces []Piece) Sample { return Sample{Apart.Mean(pieces), pieces} }
	for _, how := range []How{ByScatter, ByRanks, ByCapture} {
		for range 50 {
			before, after := days(rng, 6, 1, 0.05), days(rng, 5, 1.1, 0.05)
			got := how.Above(sample(before), sample(after), 1.1)
			want := how.Above(sample(times(before, 1.1)), sample(after), 1)
			below := how.Below(sample(before), sample(after), 1.1)
			if math.Abs(got.P-want.P) > 1e-9 || got.Least != want.Least {
				t.Fatalf("%v: %v, want %v", how, got, want)
			}
			if got.P < got.Least-1e-12 && got.P < 0.5 {
				t.Fatalf("%v: %v is less likely than anything can be", how, got)
			}
			if math.Abs(got.P+below.P-1) > 1e-9 {
				t.Fatalf("%v: above %v and below %v", how, got, below)
			}
		}
	}
}

// FewestPieces and FewestValues are the minimum that can reach a level.
func TestFewest(t *testing.T) {
	for _, test := range []struct {
		larger int
		level  float64
		want   int
	}{{1, 0.01, 5}, {5, 0.01, 4}, {20, 0.01, 2}, {100, 0.01, 1}, {1, 0.05, 3}} {
		if got := FewestPieces(test.larger, test.level); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
	const share, level, pieces = 0.99, 0.01, 20
	reaches := func(n int) bool {
		list := make([]Piece, pieces)
		for i := range list {
			list[i] = Piece{Sum: 99, Of: 100} // no piece differs
		}
		q := Apart.Quantile(share, list, n, func(i int) float64 { return float64(i + 1) })
		return leastOf(&q, &q) <= level
	}
	if n := FewestValues(share, level, pieces); !reaches(n+1) || reaches(n-2) {
		t.Errorf("%d values", n)
	}
}
