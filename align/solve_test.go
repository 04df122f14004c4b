package align

import (
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/trace"
)

func truthCase(seed uint64, offset int64, drift float64, ids bool) *simulation {
	s := newSimulation(seed, simClock{}, simClock{offset: offset, drift: drift, t0: simBase + 750_000_000})
	ranks := append(s.addRanks(0, 4), s.addRanks(1, 4)...)
	s.steps(s.group("3", ids, ranks...), simBase, 2, 72, 1_007_114_823)
	return s
}

// The case in which alignment was measured: 8 ranks on 2 hosts, 144 collectives.
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

func TestNoFalseDrift(t *testing.T) {
	for seed := range uint64(50) {
		s := truthCase(seed, 1_734_500, 0, true)
		sol, _, _ := s.solve(nil)
		if fit := sol.Clocks[1]; max(fit.DriftPPB, -fit.DriftPPB) > fit.DriftBoundPPB {
			t.Errorf("seed %d: drift %d, bound %d", seed, fit.DriftPPB, fit.DriftBoundPPB)
		}
	}
}

// Clocks 3 and 4 share a group, but nothing with the other clocks.
func TestDisconnected(t *testing.T) {
	s := newSimulation(1, simClock{}, simClock{offset: 5000}, simClock{offset: 1e9}, simClock{offset: 3e9, drift: 4e-6, t0: simBase}, simClock{offset: 7e9, t0: simBase})
	a, b := s.addRanks(0, 2), s.addRanks(1, 2)
	c, d := s.addRanks(3, 2), s.addRanks(4, 2)
	s.steps(s.group("ab", true, append(a, b...)...), simBase, 2, 60, 1_000_000_000)
	s.steps(s.group("cde", true, append(c, d...)...), simBase, 2, 60, 1_000_000_000)
	sol, _, _ := s.solve(nil)
	if sol.Components != 3 {
		t.Errorf("%d components", sol.Components)
	}
	for c, want := range []struct {
		why       trace.SyncBasis
		component int
		bound     bool
	}{{trace.SyncGiven, 0, true}, {trace.SyncMatched, 0, true}, {trace.SyncAssumed, 2, false}, {trace.SyncAssumed, 3, false}, {trace.SyncAssumed, 3, false}} {
		fit := sol.Clocks[c]
		if fit.Why != want.why || fit.Component != want.component || (fit.Bound != Unknown) != want.bound {
			t.Errorf("clock %d: %+v", c, fit)
		}
	}
	if f := sol.Clocks[3]; f.ToReference(simBase) != simBase {
		t.Errorf("an assumed clock was moved: %+v", f)
	}
	// Relative to each other, they are right.
	at := int64(simBase + 700_000_000)
	if d := sol.Clocks[3].ToReference(s.clocks[3].show(at)) - sol.Clocks[4].ToReference(s.clocks[4].show(at)); max(d, -d) > 1000 {
		t.Errorf("off by %d", d)
	}
}

func TestFixedComesFirst(t *testing.T) {
	s := truthCase(1, 1_734_500, 12e-6, true)
	given := Fixed{A: 0, B: 1, Offset: 1_200_000, Why: trace.SyncGiven}
	recorded := Fixed{A: 1, B: 0, Offset: 77, Bound: 10, Why: trace.SyncRecorded}
	sol, _, _ := s.solve(nil, recorded, given)
	fit := sol.Clocks[1]
	if fit.Offset != 1_200_000 || fit.DriftPPB != 0 || fit.Why != trace.SyncGiven || fit.Bound != 0 {
		t.Errorf("%+v", fit)
	}
	if len(sol.Conflicts) != 2 || sol.Conflicts[0].Kind != CollectiveConflict || sol.Conflicts[1].Kind != FixedConflict {
		t.Errorf("%v", sol.Conflicts)
	}
	if d := sol.Conflicts[0].Difference - 534_500; max(d, -d) > 2000 {
		t.Errorf("%v", sol.Conflicts[0])
	}
	// A fixed offset that agrees with the collectives causes no conflict.
	given = Fixed{A: 1, B: 0, At: simBase + 750_000_000, Offset: -1_734_500, DriftPPB: -12_000, Why: trace.SyncGiven}
	if sol, _, _ = s.solve(nil, given); len(sol.Conflicts) != 0 {
		t.Errorf("%v", sol.Conflicts)
	}
	if e := s.worstErr(sol.Clocks[1], simBase, simBase+1_500_000_000); e > 30 {
		t.Errorf("off by %d", e)
	}
}

// Clock 1 is given relative to the reference, clock 2 is recorded relative to 1, and clock 3 is matched with 2.
func TestChainComposes(t *testing.T) {
	s := newSimulation(4, simClock{}, simClock{offset: 50_000, drift: 30e-6, t0: simBase},
		simClock{offset: -1e15, drift: 30e-6, t0: simBase}, simClock{offset: 8_000_000, drift: -10e-6, t0: simBase})
	s.steps(s.group("x", true, append(s.addRanks(2, 4), s.addRanks(3, 4)...)...), simBase, 2, 72, 1_000_000_000)
	sol, _, _ := s.solve(nil,
		Fixed{A: 0, B: 1, At: s.clocks[1].show(simBase), Offset: 50_000, DriftPPB: 29_999, Why: trace.SyncGiven},
		Fixed{A: 1, B: 2, Offset: -1e15 - 50_000, Bound: 100, Why: trace.SyncRecorded})
	for c, why := range []trace.SyncBasis{trace.SyncGiven, trace.SyncGiven, trace.SyncRecorded, trace.SyncMatched} {
		fit := sol.Clocks[c]
		if fit.Why != why || fit.Component != 0 {
			t.Errorf("clock %d: %+v", c, fit)
		}
		if e := s.worstErr(fit, simBase, simBase+1_500_000_000); e > fit.Bound+5 {
			t.Errorf("clock %d: off by %d, %+v", c, e, fit)
		}
	}
	if b := sol.Clocks[3].Bound; b < 500 || b > 3000 {
		t.Errorf("bound %d", b)
	}
}

// Three hosts that share groups pairwise: all three relations count. One that
// contradicts the two others is left out.
func TestCycle(t *testing.T) {
	build := func(wrong int64) *simulation {
		s := newSimulation(8, simClock{}, simClock{offset: 3e6, drift: -7e-6, t0: simBase}, simClock{offset: -2e6, drift: 5e-6, t0: simBase})
		a, b, c := s.addRanks(0, 3), s.addRanks(1, 3), s.addRanks(2, 3)
		s.steps(s.group("a", true, a[0], b[0]), simBase, 2, 72, 1_000_000_000)
		s.steps(s.group("bb", true, b[1], c[1]), simBase, 2, 72, 1_000_000_000)
		s.steps(s.group("ccc", true, a[2], c[2]), simBase, 2, 40, 1_000_000_000)
		for i := range callsOf(s.ranks[c[2]]) {
			callsOf(s.ranks[c[2]])[i].Start += wrong
			callsOf(s.ranks[c[2]])[i].End += wrong
		}
		return s
	}
	for _, wrong := range []int64{0, 15_000} {
		s := build(wrong)
		sol, _, _ := s.solve(nil)
		for c := 1; c < 3; c++ {
			if e := s.worstErr(sol.Clocks[c], simBase, simBase+1_500_000_000); e > sol.Clocks[c].Bound {
				t.Errorf("wrong %d, clock %d: off by %d: %+v", wrong, c, e, sol.Clocks[c])
			}
		}
		if (len(sol.Conflicts) == 1) != (wrong > 0) {
			t.Errorf("wrong %d: %v", wrong, sol.Conflicts)
		}
	}
}

// Ranks of one host are not moved, and a rank that is far off is named.
func TestRankApart(t *testing.T) {
	s := truthCase(2, 1_734_500, 12e-6, true)
	for i := range callsOf(s.ranks[6]) {
		callsOf(s.ranks[6])[i].Start += 30_000
		callsOf(s.ranks[6])[i].End += 30_000
	}
	sol, _, _ := s.solve(nil)
	for r, f := range sol.Ranks {
		if f.Apart != (r == 6) || f.Matches != 144 {
			t.Errorf("rank %d: %+v", r, f)
		}
	}
	if e := s.worstErr(sol.Clocks[1], simBase, simBase+1_500_000_000); e > sol.Clocks[1].Bound || e > 1500 {
		t.Errorf("off by %d: %+v", e, sol.Clocks[1])
	}
}

func TestWrongMatchesAreRejected(t *testing.T) {
	s := truthCase(2, 1_734_500, 12e-6, true)
	s.spoil(0.15)
	sol, matches, _ := s.solve(nil)
	wrong := 0
	for _, m := range matches {
		a, b := callsOf(s.ranks[m.Members[0].Rank])[m.Members[0].Index], callsOf(s.ranks[m.Members[7].Rank])[m.Members[7].Index]
		if d := b.End - a.End - 1_734_500; max(d, -d) > 200_000 {
			wrong++
		}
	}
	if len(sol.Rejected) != wrong || wrong < 10 {
		t.Errorf("%d rejected, %d wrong", len(sol.Rejected), wrong)
	}
}

// Collectives whose ranks do not end together are refused.
func TestRefusedMatches(t *testing.T) {
	s := truthCase(2, 1_734_500, 12e-6, true)
	for _, r := range s.ranks[4:] {
		for i := range callsOf(r) { // as if shifted by a whole collective: each starts after the others' ends
			callsOf(r)[i].Start, callsOf(r)[i].End = callsOf(r)[i].End+1_000_000, callsOf(r)[i].End+1_100_000
		}
		r.Calls = callsOf(r)[:100]
	}
	for i := range callsOf(s.ranks[0]) {
		for r := range 4 {
			callsOf(s.ranks[r])[i].Start = callsOf(s.ranks[r])[i].End - 5_000_000
		}
		for r := 4; r < 8; r++ { // ends that wander by 20 ms
			callsOf(s.ranks[r])[i].End += int64(s.rng.NormFloat64() * 20_000_000)
		}
	}
	sol, _, _ := s.solve(nil)
	if sol.Clocks[1].Why != trace.SyncAssumed || len(sol.Conflicts) != 1 || sol.Conflicts[0].Kind != SpreadConflict {
		t.Errorf("%+v %v", sol.Clocks[1], sol.Conflicts)
	}
}

func TestRequestsAsCheck(t *testing.T) {
	s := truthCase(2, 1_734_500, 12e-6, true)
	bounds := s.requests(0, 1, 100, simBase, 1_500_000_000)
	sol, _, _ := s.solve(bounds)
	if len(sol.Conflicts) != 0 || sol.Clocks[1].By != ByCollectives {
		t.Errorf("%v", sol.Conflicts)
	}
	for i := range bounds[:7] {
		bounds[i].Lo += 600_000_000
	}
	sol, _, _ = s.solve(bounds)
	if len(sol.Conflicts) != 1 || sol.Conflicts[0].Count != 7 || sol.Conflicts[0].Of != 100 {
		t.Errorf("%v", sol.Conflicts)
	}
}

func TestRequestConflictsAreReported(t *testing.T) {
	s := newSimulation(1, simClock{}, simClock{offset: 2_000_000})
	bounds := s.requests(0, 1, 300, simBase, 2_000_000_000)
	for i := range bounds[:5] {
		bounds[i].Lo, bounds[i].Hi = bounds[i].Lo-900_000_000, bounds[i].Hi-900_000_000
	}
	sol, _, _ := s.solve(bounds)
	if len(sol.Conflicts) != 1 || sol.Conflicts[0].Count != 5 || sol.Clocks[1].Trimmed != 5 {
		t.Errorf("%v %+v", sol.Conflicts, sol.Clocks[1])
	}
	for i := range bounds {
		bounds[i].Lo = NoLo
	}
	sol, _, _ = s.solve(bounds)
	if len(sol.Conflicts) != 1 || sol.Conflicts[0].Kind != OneSided || sol.Clocks[1].Why != trace.SyncAssumed {
		t.Errorf("%v %+v", sol.Conflicts, sol.Clocks[1])
	}
	if got, want := sol.Conflicts[0].String(), "requests bound the offset on one side only; not used: 300 bounds"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	bounds = s.requests(0, 1, 200, simBase, 2_000_000_000)
	for i := range bounds {
		by := int64(i%50) * 900_000_000 // no two of any few agree
		bounds[i].Lo, bounds[i].Hi = bounds[i].Lo-by, bounds[i].Hi-by
	}
	sol, _, _ = s.solve(bounds)
	if len(sol.Conflicts) != 1 || sol.Conflicts[0].Kind != DividedRequests || sol.Clocks[1].Why != trace.SyncAssumed {
		t.Errorf("%v %+v", sol.Conflicts, sol.Clocks[1])
	}
}

// Empty problems, and those with one clock, need no special case.
func TestEmpty(t *testing.T) {
	if sol := Solve(Problem{Clocks: 1}); sol.Components != 1 || sol.Clocks[0].Bound != 0 {
		t.Errorf("%+v", sol)
	}
	if sol := Solve(Problem{Clocks: 2, Reference: 1}); sol.Components != 2 || sol.Clocks[0].Bound != Unknown || sol.Clocks[1].Bound != 0 {
		t.Errorf("%+v", sol)
	}
	if m, r := matching.Find(nil, nil); m.Len() != 0 || r != (matching.Report{}) {
		t.Errorf("%v %v", m, r)
	}
}

// Pipeline stages that only send to each other, in both directions.
func TestTransfers(t *testing.T) {
	s := newSimulation(1, simClock{}, simClock{offset: -3_000_000, drift: 2e-6, t0: simBase})
	s.addRanks(0, 1)
	s.addRanks(1, 1)
	send, recv := s.names.Call(matching.Call{Op: "send", In: 8}), s.names.Call(matching.Call{Op: "recv", Out: 8})
	comm := s.names.Comm(matching.Comm{Group: "pp", Size: 2})
	for k := range int64(100) {
		from := int(k % 2)
		at := simBase + k*5_000_000
		for r, c := range []struct {
			call       matching.CallID
			start, end int64
		}{{send, at, at + 60_000}, {recv, at - s.rng.Int64N(2_000_000), at + 50_000 + s.rng.Int64N(50_000)}} {
			clock := s.clocks[r^from]
			s.ranks[r^from].Calls = append(callsOf(s.ranks[r^from]), matching.Collective{
				Start: clock.show(c.start), End: clock.show(c.end), Seq: k, Step: -1, Comm: comm, Call: c.call,
			})
		}
	}
	matches, _ := matching.Find(s.ranks, s.names)
	bounds := TransferBounds(s.ranks, s.names, &matches)
	sol := Solve(Problem{Clocks: 2, Ranks: s.ranks, Matches: matches, Bounds: bounds})
	fit := sol.Clocks[1]
	if e := s.worstErr(fit, simBase, simBase+500_000_000); len(bounds) != 100 || fit.By != ByRequests || e > fit.Bound || fit.Bound > 100_000 {
		t.Errorf("%d bounds, off by %d: %+v", len(bounds), e, fit)
	}
}

// Any input yields a finite solution.
func TestNonsense(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	any := func() int64 {
		return []int64{0, 1, -1, NoLo, NoHi, simBase, rng.Int64(), -rng.Int64(), rng.Int64N(1e9)}[rng.IntN(9)]
	}
	for range 300 {
		s := newSimulation(rng.Uint64(), make([]simClock, 4)...)
		s.addRanks(0, 2)
		s.addRanks(1, 2)
		g := s.group("x", rng.IntN(2) == 0, 0, 1, 2, 3)
		for range rng.IntN(30) {
			s.run(g, simBase+rng.Int64N(1e9), 1000)
		}
		for range rng.IntN(3) {
			r := callsOf(s.ranks[rng.IntN(4)])
			for i := range r {
				r[i].Start, r[i].End = any(), any()
			}
		}
		var p Problem
		for range rng.IntN(50) {
			p.Bounds = append(p.Bounds, Bound{A: rng.IntN(4), B: rng.IntN(4), At: any(), Lo: any(), Hi: any()})
		}
		for range rng.IntN(3) {
			p.Fixed = append(p.Fixed, Fixed{A: rng.IntN(4), B: rng.IntN(4), At: any(), Offset: any(), DriftPPB: any(), Why: trace.SyncBasis(rng.IntN(2))})
		}
		p.Clocks, p.Reference, p.Ranks = 4, rng.IntN(4), s.ranks
		p.Matches, _ = matching.Find(s.ranks, s.names)
		for _, fit := range Solve(p).Clocks {
			if d := fit.DriftPPB; d > 4*maxDriftPPB || d < -4*maxDriftPPB || fit.Bound < Unknown {
				t.Fatalf("%+v", fit)
			}
		}
	}
}
