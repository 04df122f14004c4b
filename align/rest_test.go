package align

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/align/matching"
)

// restOf matches the rest of some ranks whose clocks show the same time.
func restOf(s *simulation, clocks int) []matching.Match {
	sol := &Solution{Clocks: make([]ClockFit, clocks)}
	ranks := s.sorted()
	matches, _ := matching.Find(ranks, s.names)
	return listOf(MatchRest(ranks, s.names, matches, sol))
}

// The order of three collectives proves nothing, but their ends suffice.
func TestFewCollectivesAreMatchedByTime(t *testing.T) {
	s := newSimulation(1, simClock{})
	g := s.group("tp", false, s.addRanks(0, 8)...)
	for i := range int64(3) {
		s.run(g, simBase+i*3_000_000, 500_000)
	}
	got := restOf(s, 1)
	if len(got) != 3 {
		t.Fatalf("%d matches: %+v", len(got), got)
	}
	for i, m := range got {
		if len(m.Members) != 8 || m.Level != matching.ByTime || m.Kind != matching.KindSync {
			t.Errorf("%+v", m)
		}
		for _, x := range m.Members {
			if int(x.Index) != i {
				t.Errorf("call %d of rank %d is in match %d", x.Index, x.Rank, i)
			}
		}
	}
}

// A rank with a recording that lacks most collectives joins the matches of the others with the few that it has.
func TestRestJoinsMatches(t *testing.T) {
	s := newSimulation(2, simClock{})
	g := s.group("tp", false, s.addRanks(0, 4)...)
	for i := range int64(40) {
		s.run(g, simBase+i*1_000_000, 100_000)
	}
	s.ranks[3].Calls = callsOf(s.ranks[3])[18:20]
	got := restOf(s, 1)
	if len(got) != 40 {
		t.Fatalf("%d matches", len(got))
	}
	for i, m := range got {
		with := slices.ContainsFunc(m.Members, func(x matching.Member) bool { return x.Rank == 3 })
		if index := int(m.Members[0].Index); with != (index == 18 || index == 19) {
			t.Errorf("match %d of call %d: %+v", i, index, m.Members)
		}
	}
}

// MatchRest matches nothing that ends at different times, and nothing on clocks with an unknown offset.
func TestRestIsNotGuessed(t *testing.T) {
	for name, spread := range map[string]int64{"ends far apart": 40_000, "unrelated clocks": 0} {
		s := newSimulation(3, simClock{}, simClock{})
		ranks := append(s.addRanks(0, 1), s.addRanks(1, 1)...)
		g := s.group("tp", false, ranks...)
		for i := range int64(3) {
			s.run(g, simBase+i*3_000_000, 10_000)
		}
		for i := range callsOf(s.ranks[1]) {
			callsOf(s.ranks[1])[i].End += spread
		}
		sol := &Solution{Clocks: make([]ClockFit, 2)}
		if spread == 0 {
			sol.Clocks[1].Bound = Unknown
		}
		if got := MatchRest(s.sorted(), s.names, matching.Matches{}, sol); got.Len() != 0 {
			t.Errorf("%s: %+v", name, listOf(got))
		}
	}
}

// Ranks leave a dispatch up to milliseconds apart, and go straight to the next one.
func TestRanksThatLeaveApartAreMatched(t *testing.T) {
	s := newSimulation(4, simClock{})
	ranks := s.addRanks(0, 8)
	comm, call := s.names.Comm(matching.Comm{Group: "ep"}), s.names.Call(matching.Call{Family: "deep_ep::intranode::dispatch"})
	free := make([]int64, len(ranks)) // when each rank comes to the next dispatch
	const n = 50
	for range n {
		last := slices.Max(free)
		for r := range ranks {
			end := last + 20_000 + s.rng.Int64N(400_000)
			s.ranks[r].Calls = append(callsOf(s.ranks[r]), matching.Collective{Start: simBase + free[r], End: simBase + end, Seq: -1, Step: -1, Comm: comm, Call: call})
			free[r] = end + s.rng.Int64N(300_000)
		}
	}
	got := restOf(s, 1)
	if len(got) != n {
		t.Fatalf("%d matches, want %d", len(got), n)
	}
	for i, m := range got {
		if len(m.Members) != 8 || m.Kind != matching.KindMeet || slices.ContainsFunc(m.Members, func(x matching.Member) bool { return int(x.Index) != i }) {
			t.Errorf("match %d: %+v", i, m)
		}
	}
}
