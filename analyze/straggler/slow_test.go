package straggler

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// fourRanks meet with the given lateness, as a share of a step.
func fourRanks(syncPoints int, late func(rank, m int) float64) *SyncSamples {
	return gathered(7, 4, syncPoints, noises["uniform"], late)
}

// A rank that is last at every sync point is a straggler, even if its lateness
// slowly rises and falls, like that of a device that heats up.
func TestStragglerThatDrifts(t *testing.T) {
	found := fourRanks(800, func(r, m int) float64 {
		return b2f(r == 2) * (0.5 + 0.3*math.Sin(float64(m)/250))
	}).Stragglers()
	if len(found) != 1 || found[0].Rank != 2 || found[0].Last < 790 || found[0].Part != 1 {
		t.Fatalf("%+v", found)
	}
	s := &found[0]
	if !math.IsNaN(s.P) || !math.IsNaN(s.DelayLow) || s.delayNs(s.DelayHigh) != request.Unknown || s.LateBlocks != 40 {
		t.Errorf("the test of a drift says p = %v, %v to %v, late in %d", s.P, s.DelayLow, s.DelayHigh, s.LateBlocks)
	}
	if text := s.Confidence()[0].Text; !strings.HasSuffix(text, "of the time on average, and by enough to matter in each of 40 blocks of time") {
		t.Error(text)
	}
}

// If a rank is early for a while, its lateness is not permanent, however long it lasted before.
func TestNoStragglerWhereItDriftsAway(t *testing.T) {
	found := fourRanks(800, func(r, m int) float64 { return b2f(r == 2) * 0.3 * math.Sin(float64(m)/100) }).Stragglers()
	for i := range found {
		if found[i].Part == 1 {
			t.Error(found[i].Text())
		}
	}
}

// If two ranks are late, the others only wait for the later one. The other one may
// be later than most, but costs nothing.
func TestNoStragglerNextToALaterOne(t *testing.T) {
	found := fourRanks(800, func(r, _ int) float64 { return []float64{0, 0, 0.15, 0.5}[r] }).Stragglers()
	if len(found) != 1 || found[0].Rank != 3 {
		t.Errorf("%+v", found)
	}
}

// A rank that is slow in every fifth step, of 20 sync points each, is found, although it is on time in most blocks.
func TestStragglerInSomeSteps(t *testing.T) {
	found := fourRanks(1600, func(r, m int) float64 { return b2f(r == 1 && m/20%5 == 3) }).Stragglers()
	if len(found) != 1 || found[0].Rank != 1 || found[0].LateBlocks > 20 {
		t.Fatalf("%+v", found)
	}
	if s := &found[0]; s.Delay < 0.19 || s.Delay > 0.21 {
		t.Errorf("late by %v, want a fifth of the time", s.Delay)
	}
}

// A rank that takes a tenth longer is late by a tenth, and the interval contains
// that, even if steps become three times as long meanwhile.
func TestIntervalWhereStepsGrow(t *testing.T) {
	const k, n, slow, factor = 4, 1200, 2, 0.1
	g := NewSyncSamples([]string{"TP0", "TP1", "TP2", "TP3"}, 100_000)
	at := int64(0)
	for m := range n {
		took := int64(stepLength * (1 + 2*float64(m)/n))
		at += took
		arrivals := make([]int64, k)
		for r := range arrivals {
			arrivals[r] = at + int64(r*m%7)*took/1000
		}
		arrivals[slow] += int64(factor * float64(took))
		g.Meet(trace.Time(at), arrivals, took)
	}
	found := g.Stragglers()
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

// Two recordings are judged separately: a rank that is late only in the second one, in a few equally late
// steps, became late in between.
func TestLateInOneOfTwoRecordings(t *testing.T) {
	const before, after, away = 480_000, 690_000, 70_000_000_000
	rng := rand.New(rand.NewPCG(1, 2))
	g := NewSyncSamples([]string{"TP0", "TP1", "TP2", "TP3"}, 1000)
	g.Recorded = true
	at, offset := int64(1_000_000_000), int64(0)
	for k := range 960 {
		took, late := int64(before), int64(0)
		if k >= 480 {
			took, late = after, 208_000
		}
		if k%20 == 0 { // offsets differ between groups of 20 steps, and are constant within each
			offset = rng.Int64N(10_000)
		}
		if at += took; k == 480 {
			at += away
		}
		arrivals := []int64{at, at + late + offset, at + rng.Int64N(1000), at + rng.Int64N(1000)}
		g.Meet(trace.Time(at), arrivals, took)
	}
	found := g.Stragglers()
	if len(found) != 1 || found[0].Name != "TP1" {
		t.Fatalf("%+v", found)
	}
	const end = 1_000_000_000 + 480*before
	if s := &found[0]; s.Last != 480 || s.SyncPoints != 480 || s.Earliest > end || s.Latest < end+away || s.Since < end || s.Since > end+away {
		t.Errorf("%+v", s)
	}
}
