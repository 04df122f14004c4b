package change

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Where requests begin to wait, a rise in arrivals leads that change from its own onset, even
// if the rise is too small to be found in the whole capture. Without a rise, the wait leads.
func TestDemandLeadsTheWait(t *testing.T) {
	const seconds, seeds = trace.Time(1e9), 100
	for _, rise := range []float64{1, 1.5} {
		found := 0
		for seed := range uint64(seeds) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			w := &observer{from: 0, to: 120 * seconds}
			for at := 0.0; at < 120; {
				rate := 9.0
				if at >= 50 && at < 75 {
					rate *= rise
				}
				at += rnd.ExpFloat64() / rate
				w.arrivals = append(w.arrivals, trace.Time(at*1e9))
			}
			wait := Shift{Metric: MedianChanged, Means: request.Queueing, Before: Level{P50: 1}, After: Level{P50: 2}, Time: 61 * seconds, Last: 62 * seconds}
			over := Shift{Metric: MedianChanged, Means: request.Queueing, Before: Level{P50: 2}, After: Level{P50: 1}, Time: 76 * seconds, Last: 77 * seconds}
			c := &Changes{From: w.from, To: w.to, List: []Change{
				{Time: wait.Time, Last: wait.Last, Shifts: []Shift{wait}}, {Time: over.Time, Last: over.Last, Shifts: []Shift{over}}}}
			w.addDemand(c)
			first := &c.List[0]
			if len(c.List) != 2 || len(c.List[1].Shifts) != 1 || !first.has(&wait) {
				t.Fatalf("seed %d: %+v", seed, c.List)
			}
			if first.Shifts[0].Metric == ArrivalsChanged && first.Time > 42*seconds && first.Time < 58*seconds {
				found++
			}
		}
		if rise > 1 && found < 80 || rise == 1 && found > 1 {
			t.Errorf("%v times the arrivals: they lead in %d of %d", rise, found, seeds)
		}
	}
}

// If a known server is slower, only its requests can claim the time that users lose. A shift in load has
// no such requests, even on one server: routing and arrivals affect everyone.
func TestKnowsWhoSees(t *testing.T) {
	one := place.Location{Scope: place.OneRank, Role: request.Unified, Host: "a"}
	for _, x := range []struct {
		shift Shift
		want  bool
	}{
		{Shift{Metric: MedianChanged, Means: request.Stepping, Location: one}, true},
		{Shift{Metric: PaceChanged, Location: place.Location{Scope: place.WholeRole}}, true},
		{Shift{Metric: ShareChanged, Location: one}, false},
		{Shift{Metric: ArrivalsChanged, Location: place.Location{Scope: place.Everywhere}}, false},
		{Shift{Metric: MedianChanged, Means: request.Stepping, Location: place.Location{Scope: place.WholeRole}}, false},
	} {
		if x.shift.knowsWhoSees() != x.want {
			t.Errorf("%+v: want %v", x.shift, x.want)
		}
	}
}

// If extra requests that have no cached prompts arrive while the others keep theirs, arrivals are the
// cause. If nobody's prompts are cached any longer, the cache is.
func TestOthersHaveNothingCached(t *testing.T) {
	const early, second = trace.Time(1e9), trace.Time(1e9)
	old, others := []float64{0.9, 0.85, 0.95, 0.9}, []float64{0, 0, 0, 0, 0, 0, 0, 0}
	more := Shift{Metric: ArrivalsChanged, Before: Level{Rate: 4}, After: Level{Rate: 12}, Time: 60 * second, First: 59 * second, Last: 61 * second}
	for _, x := range []struct {
		after []float64
		kept  float64
		want  bool
	}{{append(old, others...), 1, true}, {append([]float64{0.1, 0.1, 0, 0.1}, others...), 0, false}} {
		kept := work.Kept(old, x.after, 1e9, 1e9)
		f := Shift{Metric: CachedChanged, Before: Level{Share: 0.9}, After: Level{Share: 0.3}, Time: 60 * second, First: 59 * second, Last: 61 * second, Kept: kept}
		if kept != x.kept || follows(&more, &f, 4*early) != x.want {
			t.Errorf("%v: %v kept, follows: %v", x.after, kept, !x.want)
		}
	}
}

// Longer prompts without cached tokens lower the cached share although the cache works as before.
// If prompts that used to be cached no longer are, that is a cause of its own.
func TestLongPromptsHaveNothingCached(t *testing.T) {
	const second = trace.Time(1e9)
	at := func(m Metric, before, after Level) Shift {
		return Shift{Metric: m, Before: before, After: after, Time: 60 * second, First: 58 * second, Last: 62 * second}
	}
	longer := at(PromptChanged, Level{Rate: 1000}, Level{Rate: 5000})
	for _, kept := range []float64{0.1, 1} {
		fewer := at(CachedChanged, Level{Share: 0.5}, Level{Share: 0.1})
		fewer.Kept = kept
		found := groupShifts([]Shift{fewer, longer}, int64(4*second))
		if one := len(found) == 1; one != (kept == 1) || found[0].Shifts[0].Metric != PromptChanged {
			t.Errorf("%v kept: %+v", kept, found)
		}
	}
}

// The cost of a change is measured until the next cause begins, unless that began at about the same time.
func TestAlone(t *testing.T) {
	const second = trace.Time(1e9)
	cause := func(m Metric, at trace.Time, before, after float64) Change {
		f := Shift{Metric: m, Before: Level{Rate: before, Share: before}, After: Level{Rate: after, Share: after}, Time: at, First: at - second, Last: at + second}
		return Change{Time: at, First: f.First, Last: f.Last, Shifts: []Shift{f}}
	}
	first := cause(PromptChanged, 50*second, 100, 200)
	for _, x := range []struct {
		next Change
		want trace.Time
	}{
		{cause(CachedChanged, 120*second, 0.9, 0.2), 120 * second},
		{cause(CachedChanged, 120*second, 0.2, 0.9), 0}, // saves time
		{cause(CachedChanged, 54*second, 0.9, 0.2), 0},  // nearly at the same time
		{cause(AbortsChanged, 120*second, 0, 0.5), 0},   // a consequence
		{cause(OutputChanged, 20*second, 1, 5), 0},      // began earlier
		{cause(OutputChanged, 90*second, 1, 5), 90e9},
		{cause(ArrivalsChanged, 90*second, 1, 5), 0}, // clients that retry
	} {
		all := &Changes{From: 0, To: 200 * second, List: []Change{first, x.next}}
		if got := all.alone(&all.List[0]); got != x.want {
			t.Errorf("%+v: until %d, want %d", x.next.Shifts[0], got, x.want)
		}
	}
}

// When extra requests end, the mix of answers returns to its old length: that is no change by itself.
func TestLengthsComeBack(t *testing.T) {
	const second = trace.Time(1e9)
	fewer := Shift{Metric: ArrivalsChanged, Before: Level{Rate: 12}, After: Level{Rate: 4}, Time: 90 * second, First: 89 * second, Last: 91 * second, Back: true}
	longer := Shift{Metric: OutputChanged, Before: Level{Rate: 30}, After: Level{Rate: 80}, Time: 90 * second, First: 89 * second, Last: 91 * second}
	for _, back := range []bool{false, true} {
		if longer.Back = back; follows(&fewer, &longer, 4*second) != back {
			t.Errorf("back: %v", back)
		}
	}
}

// Slow transfers do not make steps longer. The pace of whole batches already
// includes the prefills in them, and other paces do not.
func TestBehind(t *testing.T) {
	all := &Changes{}
	for _, x := range []struct {
		shifts []Shift
		steps  bool
	}{
		{[]Shift{{Metric: MedianChanged, Stage: "decode_transferred", Means: request.Receiving}}, false},
		{[]Shift{{Metric: PaceChanged, Means: request.Answering, whole: true}}, false},
		{[]Shift{{Metric: PaceChanged, Means: request.Answering}}, true},
	} {
		of := all.behind(&Change{Shifts: x.shifts})
		if slices.Contains(of, cause.Interference) != x.steps || !slices.Contains(of, cause.Queue) {
			t.Errorf("%+v: %v", x.shifts, of)
		}
	}
}

// Load makes no rank late that was on time, since its peers have just as much to do. It may make a late rank later.
func TestLatenessAndLoad(t *testing.T) {
	lead := Shift{Metric: ArrivalsChanged, Time: 10e9, First: 8e9, Last: 12e9, Before: Level{Rate: 1}, After: Level{Rate: 2}}
	for before, want := range map[int64]bool{2_000: false, 1_000_000: true} {
		late := Shift{Metric: LatenessChanged, Stage: "decode_loop", Time: 10e9, First: 9e9, Last: 11e9, Before: Level{P50: before}, After: Level{P50: 3_000_000}}
		if got := follows(&lead, &late, 5e9); got != want {
			t.Errorf("late by %d ns before: a consequence of load: %v, want %v", before, got, want)
		}
	}
}

// If only some servers are slow, they do not claim the time of the others.
func TestOnlyThoseThatAreSlow(t *testing.T) {
	at := func(host string) place.Location { return place.Location{Scope: place.OneRank, Host: host} }
	f := Shift{Metric: PaceChanged, Ranks: []int32{1, 4}, Peers: 8, Steps: []PaceStep{{Location: at("b")}, {Location: at("e")}}}
	if got := f.only(); len(got) != 2 || got[0] != at("b") || got[1] != at("e") {
		t.Errorf("two of eight are %v", got)
	}
	if f.Peers = 2; f.only() != nil {
		t.Errorf("both are %v", f.only())
	}
	if f = (Shift{Metric: ArrivalsChanged}); f.only() != nil {
		t.Errorf("arrivals are of %v", f.only())
	}
}

// Where a router evens out what runs, it sends a rank more requests once its own are shorter; one that pins requests to a rank makes more run there.
func TestRouterThatEvensLoad(t *testing.T) {
	a, b := place.Location{Scope: place.OneRank, Host: "a"}, place.Location{Scope: place.OneRank, Host: "b"}
	w := &observer{ranks: &place.RankSet{Places: []place.Location{a, b}}}
	c := Change{Shifts: []Shift{{Metric: ShareChanged, Location: a, Before: Level{Share: 0.1}, After: Level{Share: 0.4}}}}
	for _, x := range []struct {
		before, after int64 // ns for which requests run on a; on b: 1000
		evens         bool
	}{{1000, 1100, true}, {1000, 700, true}, {300, 1000, false}, {0, 500, false}} {
		l := loads{byRank: [][]int64{{x.before, x.after}, {1000, 1000}}}
		if got := w.evens(&c, l, 0); got != x.evens {
			t.Errorf("from %d to %d ns: evens load: %v", x.before, x.after, got)
		}
	}
	c.Shifts = append(c.Shifts, Shift{Metric: MedianChanged, Location: a})
	if w.evens(&c, loads{byRank: [][]int64{{1, 1}, {1, 1}}}, 0) {
		t.Error("a change of latency is left out")
	}
}

// Decode steps that take 2 % longer don't explain why requests queue; half as long again does.
func TestSlightChanges(t *testing.T) {
	for after, want := range map[int64]bool{11_900_000: true, 17_500_000: false} {
		f := Shift{Metric: PaceChanged, Before: Level{P50: 11_700_000}, After: Level{P50: after}}
		if got := f.slight(); got != want {
			t.Errorf("from 11.7 ms to %d ns: slight: %v, want %v", after, got, want)
		}
	}
}
