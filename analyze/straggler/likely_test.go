package straggler

import (
	"strings"
	"sync"
	"testing"
)

// A rank that costs the others time, but is too noisy or has too few steps to be
// certain, is a likely straggler, with P. A certain one is not listed as likely.
func TestLikelyStragglers(t *testing.T) {
	const rank = 2
	likely, certain := 0, 0
	for seed := range uint64(60) {
		g := gathered(seed, 4, 60, noises["exponential"], func(r, _ int) float64 {
			if r == rank {
				return 0.07
			}
			return 0
		})
		found, suspects := g.Stragglers(), g.Likely()
		if len(found) > 0 && len(suspects) > 0 {
			t.Fatalf("seed %d: both %v and %v", seed, found, suspects)
		}
		certain += len(found)
		for _, s := range suspects {
			if s.Rank != rank || s.P <= ErrorLevel || s.P > LikelyLevel || s.LostShare < g.Share {
				t.Errorf("seed %d: rank %d with P = %v loses %v", seed, s.Rank, s.P, s.LostShare)
			}
			if text := s.LikelyText(); !strings.HasPrefix(text, "likely, not certain: TP2 ends last in ") || !strings.Contains(text, "; p = 0.0") {
				t.Error(text)
			}
			likely++
		}
	}
	if likely < 5 || certain < 5 {
		t.Errorf("of 60 runs %d are likely and %d certain, want some of each", likely, certain)
	}
}

// A rank that is late all along is found even if another stands still three times, which costs far more.
func TestSteadyBesideStalls(t *testing.T) {
	for seed := range uint64(20) {
		for _, stall := range []float64{0, 100} {
			g := gathered(seed, 4, 300, noises["uniform"], func(r, m int) float64 {
				switch {
				case r == 1:
					return 0.08
				case r == 3 && m%100 == 50:
					return stall
				}
				return 0
			})
			if found := g.Stragglers(); len(found) != 1 || found[0].Rank != 1 {
				t.Errorf("seed %d, stalls of %v steps: %+v, want TP1", seed, stall, found)
			}
		}
	}
}

// Finders that ask concurrently all get the same answer.
func TestJudgedOnce(t *testing.T) {
	for seed := range uint64(20) {
		g := gathered(seed, 8, 2000, noises["uniform"], func(r, _ int) float64 { return 0.2 * float64(r/7) })
		var all [8][]Straggler
		var done sync.WaitGroup
		for i := range all {
			done.Go(func() { all[i] = g.Stragglers() })
		}
		done.Wait()
		for i := range all {
			if len(all[i]) != 1 || all[i][0].Rank != 7 || all[i][0].Lost != all[0][0].Lost {
				t.Fatalf("seed %d: %+v, want TP7 as %+v", seed, all[i], all[0])
			}
		}
	}
}

// Equal ranks are hardly ever likely stragglers.
func TestUnlikelyStragglers(t *testing.T) {
	for name, n := range noises {
		wrong := 0
		const runs = 100
		for seed := range uint64(runs) {
			wrong += len(gathered(seed, 4, 200, n, func(int, int) float64 { return 0 }).Likely())
		}
		if wrong > runs*LikelyLevel+3 {
			t.Errorf("%s: %d of %d", name, wrong, runs)
		}
	}
}
