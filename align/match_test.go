package align

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/align/matching"
)

// checkMatches counts the matches whose members are one collective according to
// truth, and fails on those that mix several.
func checkMatches(t *testing.T, s *simulation, truth map[matching.Member]int64, matches []matching.Match) {
	t.Helper()
	for _, m := range matches {
		for _, member := range m.Members[1:] {
			if truth[member] != truth[m.Members[0]] {
				t.Fatalf("match of %d and %d", truth[m.Members[0]], truth[member])
			}
		}
	}
}

// stripped removes ids, and returns the collective that each call belongs to. It drops the calls that keep rejects.
func (s *simulation) stripped(keep func(rank, index int, n int) bool) map[matching.Member]int64 {
	truth := map[matching.Member]int64{}
	s.sorted()
	for r := range s.ranks {
		all := callsOf(s.ranks[r])
		calls := calls{}
		for i, c := range all {
			if keep != nil && !keep(r, i, len(all)) {
				continue
			}
			truth[matching.Member{Rank: int32(r), Index: int32(len(calls))}] = c.Seq + int64(c.Comm)*1_000_000
			c.Seq, c.CommsID = -1, 0
			calls = append(calls, c)
		}
		s.ranks[r].Calls = calls
	}
	return truth
}

// anonymous removes all metadata except the family.
func (s *simulation) anonymous() {
	call := s.names.Call(matching.Call{Family: "cross_device_reduce_1stage"})
	for _, r := range s.ranks {
		for i := range callsOf(r) {
			callsOf(r)[i].Comm, callsOf(r)[i].Call = 0, call
		}
	}
}

func TestOrdinals(t *testing.T) {
	cases := []struct {
		name      string
		keep      func(rank, index, n int) bool
		anonymous bool
		period    int64
		want      float64 // share of all possible matches
	}{
		{name: "same windows"},
		{name: "no metadata", anonymous: true},
		{name: "windows that differ", keep: func(r, i, n int) bool { return i >= 7*r && i < n-11*(7-r) }},
		{name: "windows that differ, no metadata", anonymous: true, keep: func(r, i, n int) bool { return i >= 7*r && i < n-11*(7-r) }},
		{name: "lost calls", anonymous: true, keep: func(r, i, n int) bool { return (i+r*13)%37 != 0 }},
		{name: "a lost stretch", keep: func(r, i, n int) bool { return r < 4 || i < 200 || i > 260 }},
		{name: "decode", period: 9_500_000, anonymous: true, keep: func(r, i, n int) bool { return i >= 20*r && i < n-30*(7-r) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newSimulation(3, simClock{}, simClock{offset: 250_000_000, drift: 12e-6, t0: simBase})
			period := c.period
			if period == 0 {
				period = 1_007_000_000
			}
			s.steps(s.group("3", true, append(s.addRanks(0, 4), s.addRanks(1, 4)...)...), simBase, 8, 72, period)
			truth := s.stripped(c.keep)
			if c.anonymous {
				s.anonymous()
			}
			seen := map[int64]int{}
			for _, id := range truth {
				seen[id]++
			}
			sol, matches, report := s.solve(nil)
			checkMatches(t, s, truth, matches)
			could, did := 0, 0
			for _, n := range seen {
				if n > 1 {
					could += n
				}
			}
			for _, m := range matches {
				did += len(m.Members)
			}
			if float64(did) < 0.95*float64(could) {
				t.Errorf("matched %d of %d: %+v", did, could, report)
			}
			if e := s.err(sol.Clocks[1], sol.Clocks[1].T0-sol.Clocks[1].Offset); max(e, -e) > 1000 || len(sol.Rejected) > 0 {
				t.Errorf("off by %d, %d rejected: %+v", e, len(sol.Rejected), sol.Clocks[1])
			}
		})
	}
}

// Two groups run the same kernels at about the same time on all hosts. Without
// metadata, calls of different groups must not be matched.
func TestGroupsWithoutMetadata(t *testing.T) {
	s := newSimulation(5, simClock{}, simClock{offset: 77_000, t0: simBase})
	a, b := s.addRanks(0, 4), s.addRanks(1, 4)
	s.steps(s.group("x", true, a[0], a[1], b[0], b[1]), simBase, 4, 72, 1_000_000_000)
	s.steps(s.group("yy", true, a[2], a[3], b[2], b[3]), simBase, 4, 72, 1_000_000_000)
	truth := s.stripped(nil)
	s.anonymous()
	sol, matches, report := s.solve(nil)
	checkMatches(t, s, truth, matches)
	if report.Matched[matching.ByFamily] != 8*4*72 {
		t.Errorf("%+v", report)
	}
	if e := s.err(sol.Clocks[1], simBase); max(e, -e) > 1000 {
		t.Errorf("off by %d", e)
	}
}

// A sequence that repeats itself exactly cannot tell which call is which.
func TestPeriodicIsAmbiguous(t *testing.T) {
	s := newSimulation(5, simClock{}, simClock{offset: 77_000_000, t0: simBase})
	g := s.group("x", true, append(s.addRanks(0, 1), s.addRanks(1, 1)...)...)
	for k := range int64(400) {
		s.run(g, simBase+k*1_000_000, 800_000)
	}
	s.stripped(func(r, i, n int) bool { return i >= 10*r && i < n-10*(1-r) })
	sol, matches, report := s.solve(nil)
	if len(matches) != 0 || report.Ambiguous != 1 || sol.Components != 2 {
		t.Errorf("%d matches, %+v", len(matches), report)
	}
}

// Gaps that differ by only a few us identify the steps of decoding.
func TestStepsThatAreAlike(t *testing.T) {
	s := newSimulation(6, simClock{}, simClock{offset: 3_400_000, drift: 20e-6, t0: simBase})
	g := s.group("x", true, append(s.addRanks(0, 1), s.addRanks(1, 1)...)...)
	at := int64(simBase)
	for range 24 {
		for range 32 {
			at += 86_000 + s.rng.Int64N(4000)
			s.run(g, at, 15_000)
		}
		at += 200_000
	}
	truth := s.stripped(nil)
	sol, matches, report := s.solve(nil)
	checkMatches(t, s, truth, matches)
	if e := s.err(sol.Clocks[1], simBase); len(matches) != 24*32 || max(e, -e) > 1000 {
		t.Errorf("%d matches, off by %d: %+v", len(matches), e, report)
	}
}

// If several shifts fit equally well, the one that leaves clocks within 1 us of each
// other is right; the next one leaves them 1 ms apart.
func TestClocksThatAgree(t *testing.T) {
	s := newSimulation(5, simClock{}, simClock{})
	g := s.group("x", true, append(s.addRanks(0, 1), s.addRanks(1, 1)...)...)
	for k := range int64(400) {
		s.run(g, simBase+k*1_000_000, 800_000)
	}
	truth := s.stripped(func(r, i, n int) bool { return i >= 10*r && i < n-20*(1-r) })
	_, matches, report := s.solve(nil)
	checkMatches(t, s, truth, matches)
	if len(matches) != 370 {
		t.Errorf("%d matches, %+v", len(matches), report)
	}
}

// Ranks that leave every dispatch at the same times share a clock. If the offset is
// larger than 5 us in either direction, they do not.
func TestOnOneClock(t *testing.T) {
	for offset, want := range map[int64]bool{0: true, 5000: true, 130_000: false, -2_000_000: false} {
		s := newSimulation(8, simClock{}, simClock{offset: offset})
		g := s.group("x", false, append(s.addRanks(0, 1), s.addRanks(1, 1)...)...)
		g.call = s.names.Call(matching.Call{Family: "deep_ep::intranode::dispatch"})
		s.steps(g, simBase, 6, 20, 4_000_000)
		ranks := s.sorted()
		if got := matching.EndsOf(&ranks[0], s.names).OnOneClock(matching.EndsOf(&ranks[1], s.names)); got != want {
			t.Errorf("%d ns apart: %v", offset, got)
		}
	}
}

// Step numbers decide between shifts, too.
func TestStepsAnchor(t *testing.T) {
	s := newSimulation(5, simClock{}, simClock{offset: 77_000_000, t0: simBase})
	g := s.group("x", true, append(s.addRanks(0, 1), s.addRanks(1, 1)...)...)
	for k := range int64(400) {
		s.run(g, simBase+k*1_000_000, 800_000)
		for r := range s.ranks {
			callsOf(s.ranks[r])[k].Step = int32(k / 20)
		}
	}
	truth := s.stripped(func(r, i, n int) bool { return i >= 10*r && i < n-10*(1-r) })
	_, matches, report := s.solve(nil)
	checkMatches(t, s, truth, matches)
	if len(matches) != 380 {
		t.Errorf("%d matches, %+v", len(matches), report)
	}
}

func TestKeys(t *testing.T) {
	names := &matching.Names{}
	comm := names.Comm(matching.Comm{Group: "3", Size: 2})
	call := names.Call(matching.Call{Op: "allreduce", In: 8, Out: 8})
	other := names.Call(matching.Call{Op: "_allgather_base", In: 8, Out: 8})
	c := func(id uint64, seq int64, call matching.CallID) matching.Collective {
		return matching.Collective{Start: seq * 1000, End: seq*1000 + 500, CommsID: id, Seq: seq, Step: -1, Comm: comm, Call: call}
	}
	ranks := []matching.Rank{
		{Global: 0, Calls: calls{c(1, 1, call), c(2, 2, call), c(3, 3, call), c(7, 4, call), c(7, 5, call), c(0, 6, call)}},
		{Global: 1, Calls: calls{c(2, 2, call), c(3, 3, other), c(4, 9, call), c(7, 4, call), c(7, 5, call), c(0, 6, call)}},
		{Global: 0, Job: 1, Calls: calls{c(2, 2, call)}},
		{Global: 1, Job: 1, Calls: calls{c(2, 2, call)}},
		{Global: 0, Job: 2, Calls: calls{c(2, 2, call)}},
		{Global: 0, Job: 2, Calls: calls{c(2, 2, call)}},
	}
	matches, report := matching.Find(ranks, names)
	member := func(rank, index int32) matching.Member { return matching.Member{Rank: rank, Index: index} }
	both := func(by matching.Level, a, b matching.Member) matching.Match {
		return matching.Match{Members: []matching.Member{a, b}, Level: by, Kind: matching.KindSync}
	}
	want := []matching.Match{
		both(matching.ByCommsID, member(0, 1), member(1, 0)),
		both(matching.ByCommsID, member(2, 0), member(3, 0)),
		both(matching.BySeq, member(0, 3), member(1, 3)),
		both(matching.BySeq, member(0, 4), member(1, 4)),
		both(matching.BySeq, member(0, 5), member(1, 5)),
	}
	if got := listOf(matches); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if report != (matching.Report{Collectives: 16, Matched: [matching.Levels]int{4, 6}, Repeated: 4, Contradictory: 4, Alone: 6}) {
		t.Errorf("%+v", report)
	}
}

// The order in which ranks are given must not matter.
func TestOrderOfRanks(t *testing.T) {
	for _, ids := range []bool{true, false} {
		s := truthCase(9, 1_734_500, 12e-6, ids)
		want, matches, report := s.solve(nil)
		for seed := range uint64(5) {
			perm := rand.New(rand.NewPCG(seed, 1)).Perm(len(s.ranks))
			mixed := make([]matching.Rank, len(perm))
			back := make([]int32, len(perm))
			for i, p := range perm {
				mixed[p], back[p] = s.ranks[i], int32(i)
			}
			found, r := matching.Find(mixed, s.names)
			got := Solve(Problem{Clocks: 2, Ranks: mixed, Matches: found})
			m := listOf(found)
			for _, x := range m {
				for k := range x.Members {
					x.Members[k].Rank = back[x.Members[k].Rank]
				}
			}
			if !reflect.DeepEqual(m, matches) || r != report {
				t.Fatalf("ids %v, order %v: other matches", ids, perm)
			}
			if !slices.Equal(got.Clocks, want.Clocks) {
				t.Fatalf("ids %v, order %v: %+v, want %+v", ids, perm, got.Clocks, want.Clocks)
			}
		}
	}
}

// many makes 64 ranks on 8 hosts with n collectives each.
func many(n int, ids bool) *simulation {
	clocks := make([]simClock, 8)
	for i := range clocks {
		clocks[i] = simClock{offset: int64(i) * 12_345_678, drift: float64(i) * 1e-6, t0: simBase}
	}
	s := newSimulation(1, clocks...)
	var ranks []int
	for c := range clocks {
		ranks = append(ranks, s.addRanks(c, 8)...)
	}
	for _, r := range ranks {
		s.ranks[r].Calls = make(calls, 0, n)
	}
	s.steps(s.group("3", ids, ranks...), simBase, n/100, 100, 12_000_000)
	return s
}

func BenchmarkMatch(b *testing.B) {
	for name, ids := range map[string]bool{"ids": true, "order": false} {
		b.Run(name, func(b *testing.B) {
			s := many(100_000, ids)
			ranks := s.sorted()
			b.ResetTimer()
			for b.Loop() {
				matches, report := matching.Find(ranks, s.names)
				if report.Alone != 0 {
					b.Fatalf("%d %+v", matches.Len(), report)
				}
			}
		})
	}
}

func BenchmarkSolve(b *testing.B) {
	s := many(100_000, true)
	ranks := s.sorted()
	matches, _ := matching.Find(ranks, s.names)
	b.ResetTimer()
	for b.Loop() {
		Solve(Problem{Clocks: 8, Ranks: ranks, Matches: matches})
	}
}

// Over a slow link, two ranks leave a collective of milliseconds a part of it apart. Whose these are is
// clear if there are no other ranks; and only then.
func TestLongCollectivesOfPairs(t *testing.T) {
	for _, pair := range []bool{false, true} {
		r, names := rand.New(rand.NewPCG(4, 2)), &matching.Names{}
		gather := names.Call(matching.Call{Op: "all_gather", Family: "ncclDevKernel_AllGather"})
		scatter := names.Call(matching.Call{Op: "reduce_scatter", Family: "ncclDevKernel_ReduceScatter"})
		comm, at := names.Comm(matching.Comm{Group: "0"}), int64(simBase)
		var of [2]calls
		for i := range 24 {
			at += 1_000_000 + r.Int64N(9_000_000)
			call := gather
			if i%2 == 1 {
				call = scatter
			}
			for rank := range of {
				of[rank] = append(of[rank], matching.Collective{Start: at - 3_000_000, End: at + int64(rank)*200_000 + r.Int64N(150_000), Comm: comm, Call: call, Seq: -1, Step: -1})
			}
		}
		all := []matching.Rank{{Clock: 0, Global: 0, Pair: pair, Calls: of[0]}, {Clock: 1, Global: 1, Pair: pair, Calls: of[1][2:]}}
		matches, report := matching.Find(all, names)
		n := 0
		for _, m := range matches.All() {
			if n++; m.Members[0].Index != m.Members[1].Index+2 {
				t.Errorf("%+v", m)
			}
		}
		if pair != (n == 22) || !pair && n > 0 {
			t.Errorf("pair %v: %d matches, %+v", pair, n, report)
		}
	}
}
