package align

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// scenarios are ways to observe clocks. Each returns the clock in question and the
// window in which its bound must hold.
var scenarios = []struct {
	name string
	// maxBound is the upper limit of the median bound, ns: a bound that is honest
	// because it is huge is useless.
	maxBound int64
	run      func(seed uint64) (s *simulation, sol Solution, clock int, from, to int64)
}{
	{"truth case", 2000, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s := truthCase(seed, 1_734_500, 12e-6, true)
		sol, _, _ := s.solve(nil)
		return s, sol, 1, simBase, simBase + 1_530_000_000
	}},
	{"no drift", 2000, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s := truthCase(seed, -5_000_000, 0, true)
		sol, _, _ := s.solve(nil)
		return s, sol, 1, simBase, simBase + 1_530_000_000
	}},
	{"little drift", 2000, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s := truthCase(seed, 700, 0.5e-6, true)
		sol, _, _ := s.solve(nil)
		return s, sol, 1, simBase, simBase + 1_530_000_000
	}},
	{"ten matches in 70 ms", 6000, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s := newSimulation(seed, simClock{}, simClock{offset: -88_000, drift: 20e-6, t0: simBase})
		s.steps(s.group("3", true, append(s.addRanks(0, 2), s.addRanks(1, 2)...)...), simBase, 1, 10, 1_000_000_000)
		sol, _, _ := s.solve(nil)
		return s, sol, 1, simBase, simBase + 70_000_000
	}},
	{"three matches", 12_000, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s := newSimulation(seed, simClock{}, simClock{offset: -88_000, drift: 20e-6, t0: simBase})
		s.steps(s.group("3", true, append(s.addRanks(0, 1), s.addRanks(1, 1)...)...), simBase, 1, 3, 1_000_000_000)
		sol, _, _ := s.solve(nil)
		return s, sol, 1, simBase, simBase + 20_000_000
	}},
	{"15 % wrong matches", 2500, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s := truthCase(seed, 1_734_500, 12e-6, true)
		s.spoil(0.15)
		sol, _, _ := s.solve(nil)
		return s, sol, 1, simBase, simBase + 1_530_000_000
	}},
	{"ranks that always end late", 5000, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s := truthCase(seed, 1_734_500, 12e-6, true)
		for _, r := range s.ranks {
			late := s.rng.Int64N(2000)
			for i := range callsOf(r) {
				callsOf(r)[i].End += late
			}
		}
		sol, _, _ := s.solve(nil)
		return s, sol, 1, simBase, simBase + 1_530_000_000
	}},
	{"last of eight hosts", 3000, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s := newSimulation(seed)
		var ranks []int
		for c := range int64(8) {
			s.clocks = append(s.clocks, simClock{offset: c * 1_000_003, drift: float64(c) * 3e-6, t0: simBase})
			ranks = append(ranks, s.addRanks(int(c), 2)...)
		}
		s.steps(s.group("3", true, ranks...), simBase, 2, 72, 1_007_114_823)
		sol, _, _ := s.solve(nil)
		return s, sol, 7, simBase, simBase + 1_530_000_000
	}},
	{"wandering clock, 60 s", 12_000, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s := newSimulation(seed, simClock{}, simClock{offset: 1e6, drift: 3e-6, t0: simBase})
		g := s.group("3", true, append(s.addRanks(0, 2), s.addRanks(1, 2)...)...)
		for k := range int64(600) {
			s.clocks[1].offset = 1e6 + 4*k*(600-k)/300 // a parabola of 1.2 us
			s.run(g, simBase+k*100_000_000+s.rng.Int64N(1_000_000), 800_000)
		}
		sol, _, _ := s.solve(nil)
		s.clocks[1].offset = 1e6 + 4*300
		return s, sol, 1, simBase + 29_900_000_000, simBase + 30_100_000_000
	}},
	{"chain of groups", 6000, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s, sol := chain(seed)
		return s, sol, 2, simBase, simBase + 1_500_000_000
	}},
	{"requests", 400_000, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s := newSimulation(seed, simClock{}, simClock{offset: 2_000_000, drift: 8e-6, t0: simBase})
		sol, _, _ := s.solve(s.requests(0, 1, 300, simBase, 5_000_000_000))
		return s, sol, 1, simBase, simBase + 5_000_000_000
	}},
	{"requests for 10 min", 400_000, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s := newSimulation(seed, simClock{}, simClock{offset: -40_000_000, drift: -17e-6, t0: simBase})
		sol, _, _ := s.solve(s.requests(0, 1, 3000, simBase, 600_000_000_000))
		return s, sol, 1, simBase, simBase + 600_000_000_000
	}},
	{"requests, 2 % wrong", 500_000, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s := newSimulation(seed, simClock{}, simClock{offset: 2_000_000, drift: 8e-6, t0: simBase})
		bounds := s.requests(0, 1, 500, simBase, 5_000_000_000)
		for i := range bounds {
			if s.rng.IntN(50) == 0 {
				d := s.rng.Int64N(200_000_000) - 100_000_000
				bounds[i].Lo += d
				bounds[i].Hi += d
			}
		}
		sol, _, _ := s.solve(bounds)
		return s, sol, 1, simBase, simBase + 5_000_000_000
	}},
	{"collectives, then requests", 500_000, func(seed uint64) (*simulation, Solution, int, int64, int64) {
		s := truthCase(seed, 1_734_500, 12e-6, true)
		s.clocks = append(s.clocks, simClock{offset: -9_000_000, drift: 2e-6, t0: simBase})
		sol, _, _ := s.solve(s.requests(2, 1, 300, simBase, 1_500_000_000))
		return s, sol, 2, simBase, simBase + 1_500_000_000
	}},
}

// spoil swaps the ends of some collectives on clock 1 with those of others, as wrong matches would.
func (s *simulation) spoil(share float64) {
	for _, r := range s.ranks {
		if r.Clock == 0 {
			continue
		}
		rng := rand.New(rand.NewPCG(uint64(share*1e6), uint64(r.Calls.Len())))
		for i := range callsOf(r) {
			if rng.Float64() < share {
				d := rng.Int64N(60_000_000) - 30_000_000
				callsOf(r)[i].Start += d
				callsOf(r)[i].End += d
			}
		}
	}
}

// chain has three hosts: the first two share one group, and the last two share another.
func chain(seed uint64) (*simulation, Solution) {
	s := newSimulation(seed, simClock{}, simClock{offset: 3e6, drift: -7e-6, t0: simBase}, simClock{offset: -2e6, drift: 5e-6, t0: simBase})
	a, b, c := s.addRanks(0, 4), s.addRanks(1, 4), s.addRanks(2, 4)
	s.steps(s.group("ab", true, append(slices.Clone(a), b...)...), simBase, 2, 60, 1_000_000_000)
	s.steps(s.group("bcd", true, append(slices.Clone(b), c...)...), simBase+2_000_000, 2, 60, 1_000_000_000)
	sol, _, _ := s.solve(nil)
	return s, sol
}

// The bound must hold for 95 of 100 seeds; it is designed for 99 %.
func TestBoundsAreHonest(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			covered := 0
			var bounds, errs []int64
			for seed := range uint64(100) {
				s, sol, clock, from, to := sc.run(seed)
				fit := sol.Clocks[clock]
				if fit.Why != trace.SyncMatched || fit.Component != 0 {
					t.Fatalf("seed %d: not matched: %+v %v", seed, fit, sol.Conflicts)
				}
				e := s.worstErr(fit, from, to)
				if e <= fit.Bound {
					covered++
				}
				bounds, errs = append(bounds, fit.Bound), append(errs, e)
			}
			slices.Sort(bounds)
			slices.Sort(errs)
			t.Logf("covered %d; bound p50 %d max %d; error p50 %d p95 %d max %d", covered, bounds[50], bounds[99], errs[50], errs[95], errs[99])
			if covered < 95 {
				t.Errorf("the bound covers the truth in %d of 100", covered)
			}
			if bounds[50] > sc.maxBound || bounds[50] > 100*errs[50] {
				t.Errorf("median bound %d ns, median error %d: not tight", bounds[50], errs[50])
			}
		})
	}
}
