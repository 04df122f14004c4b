package analyze

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// fourRanks meet; how late they are, in parts of a step, is given.
func fourRanks(meetings int, late func(rank, m int) float64) *gathering {
	return gathered(7, 4, meetings, noises["uniform"], late)
}

// A rank that is last at every meeting is a straggler, however slowly its lateness
// rises and falls, as that of a device that heats up.
func TestStragglerThatDrifts(t *testing.T) {
	found := fourRanks(800, func(r, m int) float64 {
		return b2f(r == 2) * (0.5 + 0.3*math.Sin(float64(m)/250))
	}).stragglers()
	if len(found) != 1 || found[0].Rank != 2 || found[0].Last < 790 || found[0].Part != 1 {
		t.Fatalf("%+v", found)
	}
	s := &found[0]
	if !math.IsNaN(s.P) || !math.IsNaN(s.DelayLow) || s.delayNs(s.DelayHigh) != request.Unknown || s.LateBlocks != 40 {
		t.Errorf("the test of a drift says p = %v, %v to %v, late in %d", s.P, s.DelayLow, s.DelayHigh, s.LateBlocks)
	}
	if text := s.doubt(); !strings.HasSuffix(text, "the mean of 40 pieces, and in each of them by what matters") {
		t.Error(text)
	}
}

// Lateness that is below nothing for a while is no state, however long it was there
// before.
func TestNoStragglerWhereItDriftsAway(t *testing.T) {
	found := fourRanks(800, func(r, m int) float64 { return b2f(r == 2) * 0.3 * math.Sin(float64(m)/100) }).stragglers()
	for i := range found {
		if found[i].Part == 1 {
			t.Error(found[i].Text())
		}
	}
}

// Of two ranks that are late, the others wait for the later one only: the other may
// be later than most, and costs nothing.
func TestNoStragglerNextToALaterOne(t *testing.T) {
	found := fourRanks(800, func(r, _ int) float64 { return []float64{0, 0, 0.15, 0.5}[r] }).stragglers()
	if len(found) != 1 || found[0].Rank != 3 {
		t.Errorf("%+v", found)
	}
}

// A rank that is slow in one step of five, for many meetings each, is found, though
// in most blocks it is not late at all.
func TestStragglerInSomeSteps(t *testing.T) {
	found := fourRanks(1600, func(r, m int) float64 { return b2f(r == 1 && m/20%5 == 3) }).stragglers()
	if len(found) != 1 || found[0].Rank != 1 || found[0].LateBlocks > 20 {
		t.Fatalf("%+v", found)
	}
	if s := &found[0]; s.Delay < 0.19 || s.Delay > 0.21 {
		t.Errorf("late by %v, want a fifth of the time", s.Delay)
	}
}

// A rank that takes a tenth longer is a tenth late, and the interval says so, also
// where steps become three times as long meanwhile.
func TestIntervalWhereStepsGrow(t *testing.T) {
	const k, n, slow, factor = 4, 1200, 2, 0.1
	g := newGathering([]string{"TP0", "TP1", "TP2", "TP3"}, 100_000)
	at := int64(0)
	for m := range n {
		took := int64(stepLength * (1 + 2*float64(m)/n))
		at += took
		arrivals := make([]int64, k)
		for r := range arrivals {
			arrivals[r] = at + int64(r*m%7)*took/1000
		}
		arrivals[slow] += int64(factor * float64(took))
		g.meet(trace.Time(at), arrivals, took)
	}
	found := g.stragglers()
	if len(found) != 1 || found[0].Rank != slow {
		t.Fatalf("%+v", found)
	}
	s := &found[0]
	if !(s.DelayLow > 0.095 && s.DelayLow <= s.Delay && s.Delay <= s.DelayHigh && s.DelayHigh < 0.105) {
		t.Errorf("%v, %v to %v", s.Delay, s.DelayLow, s.DelayHigh)
	}
	// Steps take 20 ms on average.
	if low, high := s.delayNs(s.DelayLow), s.delayNs(s.DelayHigh); low < 1_900_000 || high > 2_100_000 {
		t.Errorf("%d to %d ns", low, high)
	}
}

// DP attention has one scheduler per DP rank: nothing to compare, and that is said.
func TestVerdictOnDPAttention(t *testing.T) {
	loads := func(ranks ...string) *Ranks {
		r := &Ranks{}
		for _, name := range ranks {
			rank, err := trace.ParseRank(name)
			if err != nil {
				t.Fatal(err)
			}
			r.Loads = append(r.Loads, RankLoad{Where: place.Where{Scope: place.OneRank, Role: request.Unified, Host: "a", Rank: rank}})
		}
		return r
	}
	for _, c := range []struct {
		ranks *Ranks
		want  bool
	}{
		{loads("TP0-PP0-DP0", "TP1-PP0-DP1", "TP2-PP0-DP2"), true},
		{loads("TP0-PP0-DP0", "TP1-PP0-DP0"), false},
		{loads("TP0-PP0-DP0", "TP0-PP0-DP1"), false},
		{loads("TP0-PP0-DP0"), false},
		{loads("TP0-PP0", "TP1-PP0"), false},
		{loads(), false},
	} {
		if got := strings.Contains(c.ranks.Verdict(), "each DP rank has one scheduler"); got != c.want {
			t.Errorf("%s of %d ranks", c.ranks.Verdict(), len(c.ranks.Loads))
		}
	}
}

// A few of many ranks are named, without the one that they wait for.
func TestCrowdPeers(t *testing.T) {
	for _, c := range []struct {
		ranks int
		whole bool
		want  string
	}{{2, false, "TP0"}, {3, false, "TP0 and TP2"}, {4, false, "TP0, TP2 and TP3"}, {2, true, ""}, {5, false, ""}} {
		x := &crowd{ranks: make([]int32, c.ranks), gathering: &gathering{}, whole: c.whole}
		for i := range c.ranks {
			x.gathering.names = append(x.gathering.names, fmt.Sprintf("TP%d", i))
		}
		if got := x.peers("TP1"); got != c.want {
			t.Errorf("TP1 of %d meets %q, want %q", c.ranks, got, c.want)
		}
	}
	s := Straggler{Name: "TP1", Group: "2 ranks", Peers: "TP0", What: "collectives", Verb: "arrives",
		Lateness: Lateness{Meetings: 9, Last: 8, LastMean: 5000, LostShare: 0.5}}
	const want = "TP1 arrives last in 8 of 9 collectives with TP0, 5.00 us late; the others lose 50 % of their time"
	if got := s.Text(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
