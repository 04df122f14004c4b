package changepoint

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/internal/order"
)

// The formula is an upper bound for the simulated probability, and close to it.
func TestSupremum(t *testing.T) {
	const runs, n, trim = 4000, 500, 0.1
	var above [3]float64
	levels := [3]float64{2.5, 3, 3.5}
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 8))
		s := newScores(autoregressive(r, n, 0))
		highest := 0.0
		for k := int(trim * n); k <= n-int(trim*n); k++ {
			highest = max(highest, math.Sqrt(s.between(0, k, n)))
		}
		for i, z := range levels {
			if highest > z {
				above[i] += 1. / runs
			}
		}
	}
	for i, z := range levels {
		p := supremum(z, trim)
		if noise := 3 * math.Sqrt(p/runs); p < above[i]-noise || p > 1.7*above[i]+noise {
			t.Errorf("beyond %g: formula %.4f, simulated %.4f", z, p, above[i])
		}
	}
}

func TestSupremumIsAProbability(t *testing.T) {
	last := 1.0
	for z := 0.0; z < 45; z += 0.01 {
		p := supremum(z, 0.05)
		if p < 0 || p > last+1e-12 && z > 1.6 {
			t.Fatalf("supremum(%g) is %g after %g", z, p, last)
		}
		last = p
	}
}

// With few degrees of freedom, a deviate counts for less; with many, it is unchanged.
func TestNormal(t *testing.T) {
	for _, c := range []struct{ t, df, want float64 }{
		{12.706, 1, 1.960}, {2.571, 5, 1.960}, {1.984, 100, 1.960}, {3, 1e6, 3}, {100, 1e6, farthest}, {0, 3, 0},
	} {
		if got := normal(c.t, c.df); math.Abs(got-c.want) > 0.001 {
			t.Errorf("normal(%g, %g) is %.4f, want %g", c.t, c.df, got, c.want)
		}
	}
}

func TestSeeded(t *testing.T) {
	windows := seeded(window{100, 1100}, 50)
	if windows[0] != (window{100, 1100}) {
		t.Errorf("the first window is %v", windows[0])
	}
	if len(windows) > 7*1000/50*2 {
		t.Errorf("%d windows", len(windows))
	}
	for _, w := range windows {
		if w.from < 100 || w.to > 1100 || w.to-w.from < 50 {
			t.Errorf("window %v", w)
		}
	}
	// Every position is well inside a window of about any length.
	for length := 100; length <= 1000; length *= 2 {
		for at := 200; at < 1000; at += 50 {
			found := false
			for _, w := range windows {
				n := w.to - w.from
				found = found || n >= length*7/10 && n <= length*15/10 && at-w.from >= n/8 && w.to-at >= n/8
			}
			if !found && at-100 >= length/2 && 1100-at >= length/2 {
				t.Errorf("no window of about %d around %d", length, at)
			}
		}
	}
}

func TestCorrelationTime(t *testing.T) {
	for _, phi := range []float64{0, 0.5, 0.8, 0.9} {
		sum := 0.0
		const runs = 50
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, 9))
			x := autoregressive(r, 1000, phi)
			m := order.Mean(x)
			for i := range x {
				x[i] -= m
			}
			sum += correlationTime(x, 1) / runs
		}
		if want := (1 + phi) / (1 - phi); sum < 0.9*want || sum > 1.35*want {
			t.Errorf("correlation %g: time %.2f, want about %.2f", phi, sum, want)
		}
	}
}
