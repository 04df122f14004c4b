package straggler

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

func TestLatenessByHand(t *testing.T) {
	g := NewSyncSamples([]string{"TP0", "TP1", "TP2"}, 0)
	g.Meet(30, []int64{300, 310, 307}, 100)
	g.Meet(10, []int64{100, 108, 100}, 100)
	g.Meet(20, []int64{205, NoArrival, 200}, 100)
	g.Meet(40, []int64{400, 400, 390}, 100)         // nobody is last
	g.Meet(50, []int64{NoArrival, 1, NoArrival}, 9) // not a sync point
	got := g.Measure()
	// The median of two others is the lower one.
	want := []Lateness{
		{SyncPoints: 4, Last: 1, P50: 0, P99: 10, Mean: (0 + 5 - 7 + 10) / 4, LastMean: 5, Lost: 5, LostShare: 5. / 700},
		{SyncPoints: 3, Last: 2, P50: 10, P99: 10, Mean: (8 + 10 + 10) / 3, LastMean: 9, Lost: 8 + 8 + 10 + 3, LostShare: 29. / 600},
		{SyncPoints: 4, Last: 0, P50: -5, P99: 7, Mean: (0 - 5 + 7 - 10) / 4, LostShare: 0},
	}
	for r := range want {
		if got[r] != want[r] {
			t.Errorf("rank %d: %+v\nwant %+v", r, got[r], want[r])
		}
	}
}

// Sums match their definitions, whatever ranks are absent.
func TestLatenessByDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		k := 2 + rng.IntN(6)
		g := NewSyncSamples(make([]string, k), 0)
		late, lost, last := make([][]int64, k), make([]int64, k), make([]int, k)
		for m := range 1 + rng.IntN(30) {
			arrivals := make([]int64, k)
			for r := range arrivals {
				if arrivals[r] = int64(rng.IntN(12)); rng.IntN(5) == 0 {
					arrivals[r] = NoArrival
				}
			}
			g.Meet(trace.Time(m), arrivals, 1)
			for r, own := range arrivals {
				var others []int64
				for q, a := range arrivals {
					if q != r && a != NoArrival {
						others = append(others, a)
					}
				}
				if own == NoArrival || len(others) == 0 {
					continue
				}
				slices.Sort(others)
				late[r] = append(late[r], own-request.NearestRank(others, 50))
				if own > others[len(others)-1] {
					last[r]++
					for _, a := range others {
						lost[r] += own - a
					}
				}
			}
		}
		for r, got := range g.Measure() {
			slices.Sort(late[r])
			if got.SyncPoints != len(late[r]) || got.Last != last[r] || got.Lost != lost[r] {
				t.Fatalf("rank %d: %+v, want %d meetings, %d last, %d lost", r, got, len(late[r]), last[r], lost[r])
			}
			if len(late[r]) > 0 && (got.P50 != request.NearestRank(late[r], 50) || got.P99 != request.NearestRank(late[r], 99)) {
				t.Fatalf("rank %d: %+v, want of %v", r, got, late[r])
			}
		}
	}
}

// A noise returns the lateness of one rank at each sync point, as a share of a step.
type noise func(rng *rand.Rand) func(m int) float64

const stepLength = 10_000_000 // ns

// gathered plays sync points of k ranks with a noise and extra lateness.
func gathered(seed uint64, k, syncPoints int, n noise, extra func(rank, m int) float64) *SyncSamples {
	rng := rand.New(rand.NewPCG(seed, 9))
	names, next := make([]string, k), make([]func(int) float64, k)
	for r := range names {
		names[r], next[r] = fmt.Sprintf("TP%d", r), n(rng)
	}
	g := NewSyncSamples(names, 100_000)
	g.Group, g.Verb, g.What = "decode host", "ends", "decode steps"
	for m := range syncPoints {
		at := int64(m+1) * stepLength
		arrivals := make([]int64, k)
		for r := range arrivals {
			arrivals[r] = at + int64(stepLength*(next[r](m)+extra(r, m)))
		}
		g.Meet(trace.Time(at), arrivals, stepLength)
	}
	return g
}

var noises = map[string]noise{
	"uniform":     func(rng *rand.Rand) func(int) float64 { return func(int) float64 { return 0.1 * rng.Float64() } },
	"exponential": func(rng *rand.Rand) func(int) float64 { return func(int) float64 { return 0.1 * rng.ExpFloat64() } },
	"rare and long": func(rng *rand.Rand) func(int) float64 {
		return func(int) float64 {
			if rng.IntN(100) == 0 {
				return 3 * rng.ExpFloat64()
			}
			return 0.01 * rng.Float64()
		}
	},
	"goes on": func(rng *rand.Rand) func(int) float64 { // correlation 0.95
		x := 0.0
		return func(int) float64 {
			x = 0.95*x + 0.03*rng.NormFloat64()
			return x
		}
	},
}

func nothing(int, int) float64 { return 0 }

// Chance never produces stragglers, however large the noise.
func TestNoStragglerByChance(t *testing.T) {
	const runs, most = 300, 3
	for name, n := range noises {
		alarms := 0
		for seed := range uint64(runs) {
			k := 2 << (seed % 3)
			if found := gathered(seed, k, 200+int(seed), n, nothing).Stragglers(); len(found) > 0 {
				alarms++
			}
		}
		if alarms > most {
			t.Errorf("%s: %d of %d runs have a straggler", name, alarms, runs)
		}
	}
}

// A lateness of one percent, or a single long pause, is not worth reporting.
func TestNoStragglerWhereItDoesNotMatter(t *testing.T) {
	for name, extra := range map[string]func(rank, m int) float64{
		"a percent": func(rank, _ int) float64 { return 0.01 * float64(1-min(1, rank)) },
		"a pause": func(rank, m int) float64 {
			if rank == 1 && m == 100 {
				return 500
			}
			return 0
		},
	} {
		if found := gathered(1, 4, 400, noises["uniform"], extra).Stragglers(); len(found) > 0 {
			t.Errorf("%s: %s", name, found[0].Text())
		}
	}
}

func TestTooFewSyncPoints(t *testing.T) {
	slow := func(rank, _ int) float64 { return float64(rank) }
	if found := gathered(1, 2, FewestSyncPoints-1, noises["uniform"], slow).Stragglers(); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	if found := gathered(1, 2, FewestSyncPoints, noises["uniform"], slow).Stragglers(); len(found) != 1 {
		t.Errorf("%+v", found)
	}
}

// Slow ranks are found in all kinds of noise: one or several, at every sync point or
// at some, all the time or for a part of it.
func TestFindsStragglers(t *testing.T) {
	const runs, n, k = 50, 600, 4
	at := func(m int) trace.Time { return trace.Time(m+1) * stepLength }
	// Noise that persists looks like a straggler while it lasts. Only a far larger
	// delay is a certain straggler.
	planted := map[string]float64{"uniform": 0.15, "exponential": 0.15, "rare and long": 0.15, "goes on": 1}
	for _, c := range []struct {
		name         string
		by           float64 // multiple of the planted lateness
		slow         func(rank, m int) bool
		want         []int
		since, until trace.Time
	}{
		{"one", 1, func(r, _ int) bool { return r == 2 }, []int{2}, 0, 0},
		{"two", 1, func(r, _ int) bool { return r == 1 || r == 3 }, []int{1, 3}, 0, 0},
		{"at one meeting of four", 4, func(r, m int) bool { return r == 0 && m%4 == 1 }, []int{0}, 0, 0},
		{"from some time on", 1, func(r, m int) bool { return r == 3 && m >= 350 }, []int{3}, at(350), 0},
		{"until some time", 1, func(r, m int) bool { return r == 3 && m < 250 }, []int{3}, 0, at(250)},
	} {
		for name, noise := range noises {
			if name == "goes on" && c.since+c.until != 0 {
				continue // the noise itself starts and ends all the time
			}
			right := 0
			for seed := range uint64(runs) {
				found := gathered(seed, k, n, noise, func(r, m int) float64 { return c.by * planted[name] * b2f(c.slow(r, m)) }).Stragglers()
				var ranks []int
				dated := true
				for i := range found {
					s := &found[i]
					ranks = append(ranks, s.Rank)
					dated = dated && near(s.Since, c.since) && near(s.Until, c.until) && s.P <= ErrorLevel
				}
				slices.Sort(ranks)
				if dated && slices.Equal(ranks, c.want) {
					right++
				}
			}
			t.Logf("%s, %s: right in %d of %d runs", c.name, name, right, runs)
			if right < runs*9/10 {
				t.Errorf("%s, %s: right in %d of %d runs", c.name, name, right, runs)
			}
		}
	}
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// near reports whether two times are both zero, or within 60 steps of each other.
func near(x, y trace.Time) bool {
	if x == 0 || y == 0 {
		return x == y
	}
	return max(x-y, y-x) < 60*stepLength
}

// The order in which sync points are added does not matter.
func TestOrderOfSyncPoints(t *testing.T) {
	slow := func(r, m int) float64 { return 0.2 * b2f(r == 1 && m > 100) }
	g := gathered(3, 4, 300, noises["exponential"], slow)
	h := gathered(3, 4, 300, noises["exponential"], slow)
	rand.New(rand.NewPCG(4, 4)).Shuffle(len(h.SyncPoints), func(i, j int) { h.SyncPoints[i], h.SyncPoints[j] = h.SyncPoints[j], h.SyncPoints[i] })
	if a, b := g.Stragglers(), h.Stragglers(); len(a) != 1 || !reflect.DeepEqual(a, b) {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// The interval contains the planted lateness nearly as often as it promises.
func TestIntervalOfLateness(t *testing.T) {
	const runs, planted = 200, 0.15
	held := 0
	for seed := range uint64(runs) {
		found := gathered(seed, 4, 500, noises["uniform"], func(r, _ int) float64 { return planted * b2f(r == 2) }).Stragglers()
		if len(found) == 1 && found[0].DelayLow <= planted && planted <= found[0].DelayHigh {
			held++
		}
	}
	if held < runs*85/100 {
		t.Errorf("%d of %d intervals hold what was planted", held, runs)
	}
}

// A rank that takes 6 % longer for all its work is less late in short steps, even within the clock
// error, and later in long ones: it was slow all along. A rank that stalls once is no straggler.
func TestSlowAllAlong(t *testing.T) {
	g := NewSyncSamples([]string{"a", "b", "c", "d"}, 5)
	rng := rand.New(rand.NewPCG(3, 4))
	at := trace.Time(0)
	for i := range 600 {
		took := []int64{150, 60, 130, 480, 2000}[i/120]
		arrivals := []int64{0, 0, 0, took * 6 / 100}
		for r := range arrivals {
			arrivals[r] += rng.Int64N(3)
		}
		if i == 200 {
			arrivals[1] += 40_000
			took += 40_000
		}
		at += trace.Time(took)
		g.Meet(at, arrivals, took)
	}
	found := g.Stragglers()
	if len(found) != 1 || found[0].Rank != 3 || found[0].Since != 0 || found[0].Until != 0 || found[0].SyncPoints != 600 {
		t.Errorf("%+v", found)
	}
}

// The end of a lateness is given at a precision that suits the length of the
// recording: for a tenth of a second, whole seconds are too coarse.
func TestUntil(t *testing.T) {
	const second = 1_000_000_000
	for _, c := range []struct {
		since, until trace.Time
		took         float64 // ns per sync point, of 500; 0 is unknown
		want         string
	}{
		{0, 41 * second / 10, 200_000, "00:00:04.100"},
		{0, 41 * second / 10, second, "00:00:04"},
		{0, 41 * second / 10, 0, "00:00:04"},
		{3 * second, 41 * second / 10, second, "00:00:04.100"},
		{3 * second, 300 * second, 0, "00:05:00"},
	} {
		s := Straggler{Since: c.since, Until: c.until, took: c.took}
		if s.SyncPoints = 500; s.UntilText() != c.want {
			t.Errorf("%+v: %s", c, s.UntilText())
		}
	}
}
