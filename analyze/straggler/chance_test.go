package straggler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// apart plays steps of servers that do not wait for each other.
func apart(seed uint64, servers, syncPoints int, n noise, slow func(server int) float64) *SyncSamples {
	g := gathered(seed, servers, syncPoints, n, func(r, _ int) float64 { return slow(r) })
	g.Apart, g.Floor, g.Share = true, 0, 0.1
	return g
}

// No server is found to be slow by chance, for any number of servers and any noise.
func TestNoSlowServerByChance(t *testing.T) {
	for name, n := range noises {
		alarms := 0
		const runs = 8
		for seed := range uint64(runs) {
			for _, servers := range []int{2, 20, 200} {
				for _, s := range apart(seed, servers, 60, n, func(int) float64 { return 0 }).Stragglers() {
					t.Logf("%s, seed %d: server %d of %d is late by %v, P = %v", name, seed, s.Rank, servers, s.Delay, s.P)
					alarms++
				}
			}
		}
		if alarms > 0 {
			t.Errorf("%s: %d servers", name, alarms)
		}
	}
}

// Ten slow servers out of 200 are found, and so is a single one, even if others have
// single steps that are far longer. Very slow servers do not hide the others.
func TestSlowServersAmongMany(t *testing.T) {
	for _, slow := range []int{1, 10} {
		for _, name := range []string{"uniform", "rare and long"} {
			var want, got []int
			for r := range slow {
				want = append(want, r+50)
			}
			for _, s := range apart(3, 200, 60, noises[name], func(r int) float64 {
				return b2f(slices.Contains(want, r)) * (0.15 + 0.02*float64(r-50))
			}).Stragglers() {
				got = append(got, s.Rank)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v are slow, want %v", name, got, want)
			}
		}
	}
}

// The bound is above the exact probability, but not by much. With two ranks, the
// last one is a coin flip; with many, places are uniform.
func TestChernoff(t *testing.T) {
	const n = 40
	for last := 25; last <= n; last++ {
		exact := distuv.Binomial{N: n, P: 0.5}.Survival(float64(last) - 0.5)
		bound := math.Exp(chernoff(float64(last), func(theta float64) float64 { return n * logMeanPlace(theta, 2) }))
		if bound < exact*(1-1e-9) || bound > 20*exact {
			t.Errorf("last in %d of %d: %v, exactly %v", last, n, bound, exact)
		}
	}
	for _, ranks := range []int{2, 3, 200} {
		places := make([]float64, ranks)
		for i := range places {
			places[i] = float64(i) / float64(ranks-1)
		}
		for _, theta := range []float64{0.25, 3, 100, 1000} {
			if got, want := logMeanPlace(theta, ranks), logMeanExp(theta, places); math.Abs(got-want) > 1e-9*math.Abs(want) {
				t.Errorf("theta %v of %d ranks: %v, want %v", theta, ranks, got, want)
			}
		}
	}
}

// If all ranks are equal, the smallest P of all ranks is below a level no more often
// than that level says, even with correlated consecutive steps.
func TestChanceOfOrderIsHonest(t *testing.T) {
	const runs, level = 200, 0.05
	for _, correlation := range []float64{0, 0.8} {
		for _, ranks := range []int{2, 5, 40} {
			t.Run(fmt.Sprintf("%d ranks, %v", ranks, correlation), func(t *testing.T) {
				below := 0
				for seed := range uint64(runs) {
					g := gathered(seed, ranks, 60, func(rng *rand.Rand) func(int) float64 {
						x := rng.NormFloat64()
						return func(int) float64 {
							x = correlation*x + math.Sqrt(1-correlation*correlation)*rng.NormFloat64()
							return 0.01 * x
						}
					}, nothing)
					g.settle()
					g.guilty = make([]bool, ranks)
					least := 1.0
					for r := range ranks {
						least = min(least, g.orderIn(0, len(g.SyncPoints)).chance(r))
					}
					if least <= level {
						below++
					}
				}
				if float64(below) > level*runs+2*math.Sqrt(level*runs) {
					t.Errorf("P is below %v in %d of %d runs", level, below, runs)
				}
			})
		}
	}
}
