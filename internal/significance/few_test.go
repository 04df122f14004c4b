package significance

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// one returns pieces of one value each.
func one(values ...float64) []Piece {
	var out []Piece
	for _, v := range values {
		out = append(out, Piece{v, 1})
	}
	return out
}

// P is the fraction of all ways to divide the values that are at least as far apart. Here, all are
// tried; equal values count half.
func TestMannWhitneyCountsWays(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		n, m := 4+rng.IntN(3), 4+rng.IntN(3)
		all := make([]float64, n+m)
		for i := range all {
			all[i] = float64(1 + rng.IntN(12))
		}
		apart := func(set int) (u float64) {
			for i, x := range all {
				for k, y := range all {
					switch {
					case set>>i&1 == 0 || set>>k&1 == 1:
					case x > y:
						u++
					case x == y:
						u += 0.5
					}
				}
			}
			return u
		}
		got := apart(1<<n - 1)
		low, high, sets := 0.0, 0.0, 0.0
		for set := range 1 << (n + m) {
			if bits.OnesCount(uint(set)) != n {
				continue
			}
			sets++
			if u := apart(set); u <= got {
				low++
			}
			if u := apart(set); u >= got {
				high++
			}
		}
		want := min(1, 2*min(low, high)/sets)
		if c := compareFew(one(all[:n]...), one(all[n:]...)); math.Abs(c.P-want) > 1e-12 {
			t.Fatalf("%v and %v: %v, want %v", all[:n], all[n:], c.P, want)
		}
	}
}

// Six values above six others occur by chance in 2 of 924 cases.
func TestCompareFew(t *testing.T) {
	c := compareFew(one(1, 2, 3, 4, 5, 6), one(20, 30, 10, 40, 50, 60))
	if math.Abs(c.P-2.0/924) > 1e-12 || c.Ratio != 10 || !(c.Low > 1 && c.Low < 10 && c.High > 10 && c.High <= 60) {
		t.Errorf("%+v", c)
	}
	if c := compareFew(one(0, 0, 0, 5), one(0, 0, 0, 0, 0, 1)); c.P < 0.5 || c.Low > c.Ratio || c.High < c.Ratio {
		t.Errorf("%+v", c)
	}
	if c := compareFew(one(1, 2, 3), one(100, 101, 102)); !math.IsNaN(c.P) || c.Ratio < 50 {
		t.Errorf("three and three can be chance in one of ten cases: %+v", c)
	}
}

// Equal distributions are rarely called different, however skewed, and intervals contain the truth
// as often as they promise.
func TestFewErrorsAreAsFrequentAsPromised(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	draw := func(n int, level float64) []Piece {
		var values []float64
		for range n {
			values = append(values, level*math.Exp(1.5*rng.NormFloat64()))
		}
		return one(values...)
	}
	for _, n := range [][2]int{{4, 4}, {6, 6}, {5, 20}} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			const tries, factor = 1000, 3
			wrong, outside := 0, 0
			for range tries {
				if compareFew(draw(n[0], 1), draw(n[1], 1)).P <= 0.05 {
					wrong++
				}
				if c := compareFew(draw(n[0], 1), draw(n[1], factor)); factor < c.Low || factor > c.High {
					outside++
				}
			}
			if wrong > tries*6/100 || outside > tries*7/100 {
				t.Errorf("%d of %d are called different, %d intervals miss the truth", wrong, tries, outside)
			}
		})
	}
}

// The values are those of R's p.adjust(p, "BH").
func TestFalseDiscoveries(t *testing.T) {
	nan := math.NaN()
	got := FalseDiscoveries([]float64{0.04, 0.01, nan, 0.03, 0.5})
	want := []float64{0.16 / 3, 0.04, nan, 0.16 / 3, 0.5}
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-12 }) {
		t.Errorf("%v, want %v", got, want)
	}
}
