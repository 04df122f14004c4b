package align

import (
	"testing"
)

func truthCase(seed uint64, offset int64, drift float64, ids bool) *simulation {
	s := newSimulation(seed, simClock{}, simClock{offset: offset, drift: drift, t0: simBase + 750_000_000})
	ranks := append(s.addRanks(0, 4), s.addRanks(1, 4)...)
	s.steps(s.group("3", ids, ranks...), simBase, 2, 72, 1_007_114_823)
	return s
}

// The case that alignment was measured on: 8 ranks on 2 hosts, 144 collectives.
func TestTruth(t *testing.T) {
	for _, ids := range []bool{true, false} {
		s := truthCase(1, 1_734_500, 12e-6, ids)
		sol, matches, report := s.solve(nil)
		fit := sol.Clocks[1]
		t.Logf("%+v\n%+v\n%+v conflicts %v rejected %d", report, fit, sol.Ranks, sol.Conflicts, len(sol.Rejected))
		if len(matches) != 144 {
			t.Errorf("%d matches, want 144", len(matches))
		}
		if e := s.err(fit, simBase+750_000_000); max(e, -e) > 500 {
			t.Errorf("off by %d ns at mid-trace", e)
		}
		if d := fit.DriftPPB - 12_000; max(d, -d) > 500 {
			t.Errorf("drift %d ppb, want 12000", fit.DriftPPB)
		}
	}
}
