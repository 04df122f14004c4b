package change

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Changes are the moments at which load or latency became another one.
type Changes struct {
	Requests int // of the set; with too few nothing is searched
	// From and To bound what was searched. What is before is the ramp-up, what is
	// after the drain, or cut off by the end of the dump; see steady.
	From, To trace.Time
	Series   int      // searched
	List     []Change // in order of time
	// Edges are rises soon after From, what undoes them, and falls shortly before
	// To. The beginning and the end of a load test look like that; they are not
	// among the changes.
	Edges []Shift
	// Late are ranks that end their steps after their peers from the beginning to
	// the end. That is no change, but whoever looks for one wants to know.
	Late []Shift
	// Stallings are lead ranks that stand still again and again, at equal intervals.
	Stallings []Stalling
}

// Times returns when load or latency changed.
func (c *Changes) Times() (list []trace.Time) {
	return order.EachRow(c.List, func(x *Change) trace.Time { return x.Time })
}

// A Change is a moment, with everything that happened then.
type Change struct {
	// Time is when the first shift happened, and First and Last bound it with a
	// confidence of 95 %.
	Time, First, Last trace.Time
	P                 float64 // of the first shift
	// Shifts begin with the one that may have caused the others: a share of the
	// load before the rate of arrivals, load before latency.
	Shifts []Shift
}

// A Shift is a series that changed.
type Shift struct {
	Location place.Location
	Name     string // of the place, as people call it: "decode DP1"
	Metric   Metric
	Stage    string          // of a duration: a stage, "ttft" or "tpot"
	Means    request.Meaning // of the stage
	// Time is when it changed, and First and Last bound it with a confidence of
	// 95 %.
	Time, First, Last trace.Time
	// Searched tells that the change was found by itself, and not by looking at a
	// time at which something else changed.
	Searched bool
	// P bounds the probability that there is such a change in any of the series,
	// anywhere, if nothing happened. Unless Searched it is the probability of the
	// difference, for this series alone; NaN if there is no test.
	P             float64
	Before, After Level
	Limit         int64 // ns, which durations of the tail exceed
	// Back tells that the change undoes an earlier one of the same series.
	Back bool

	// Of a pace: Shape is how it goes on, PerMinute by which part it becomes longer in a
	// minute, Full from when on it is no longer than that, and Until when it was over, 0 is never. Ranks are those that have it, of as many
	// Peers, and Steps is when each of them changed, if not all at one time.
	Shape     changepoint.Shape
	PerMinute float64
	Full      trace.Time
	Until     trace.Time
	Ranks     []int32 // indexes into the observer's
	Peers     int
	Steps     []PaceStep
	// Sized tells of a duration of a stage that the pace of its rank is searched for, whatever
	// the size of the work: that it changed alone is nothing that a server does.
	Sized bool
	// Extra is by how much longer requests took for it, ns, by index; less is negative.
	Extra map[int]float64
	whole bool    // Extra has what prefills hold up
	off   float64 // the part by which a pace changed may be off by, as a standard deviation
	// Kept is, of cached tokens, what part of the requests that had most of them there still have.
	Kept float64
}

// A PaceStep is when one of several servers became slower or faster.
type PaceStep struct {
	Location          place.Location
	Time, First, Last trace.Time
}

// A Level is what a series was like before or after a change.
type Level struct {
	N        int
	Rate     float64 // arrivals per s; requests running on average; tokens per step
	Share    float64 // of the arrivals of a role; of the durations beyond the limit; of prompts that is cached
	P50, P99 int64   // ns
}

// newLevel returns a level of which only the number of observations is known.
func newLevel(n int) Level {
	return Level{N: n, Rate: math.NaN(), Share: math.NaN(), P50: request.Unknown, P99: request.Unknown}
}

// Metric is the property of a series that changed.
type Metric uint8

const (
	ShareChanged     Metric = iota // how many of the requests of a role a rank gets
	ArrivalsChanged                // of requests
	RunningChanged                 // how many requests run
	CachedChanged                  // how much of the prompts is cached
	YieldChanged                   // how many tokens come out in a step
	OutputChanged                  // how many tokens answers have
	PromptChanged                  // how many tokens prompts have
	AbortsChanged                  // how many requests are given up
	RefusedChanged                 // how many requests are turned away from a full queue
	RetractedChanged               // how many requests are thrown out of a full KV cache
	PaceChanged                    // how long a server takes for a piece of work, whatever there is to do beside it
	LatenessChanged                // by how much a rank ends a step after its peers
	MedianChanged                  // of durations
	TailChanged                    // how many durations are long
)

// String returns the word that reports print.
func (m Metric) String() string {
	return [...]string{"share", "arrivals", "running", "cached", "yield", "output", "prompt", "aborts", "refused", "retracted", "pace", "lateness", "p50", "tail"}[m]
}

// isLoad reports whether a metric is about how much there is to do.
func (m Metric) isLoad() bool {
	return m == ShareChanged || m == ArrivalsChanged || m == RunningChanged
}

// saves reports whether a metric is about work that need not be done: less of it is why
// there is more to do.
func (m Metric) saves() bool { return m == CachedChanged || m == YieldChanged }

// isLength reports whether a metric is about how long prompts and answers are.
func (m Metric) isLength() bool { return m == OutputChanged || m == PromptChanged }

// isEnd reports whether a metric is about how requests end.
func (m Metric) isEnd() bool {
	return m == AbortsChanged || m == RefusedChanged || m == RetractedChanged
}

// alpha is the probability of a change where there is none, over all series, and
// loadPart the part of it that goes to arrivals and shares: these are few series
// that follow simple laws.
const (
	alpha    = 0.05
	loadPart = 0.8
)

// Find searches requests for changes of the rate of arrivals, of
// the share of the requests that a rank gets, and of the time that stages take on
// a rank. docs/METRICS.md says how.
func Find(peers *place.Groups) *Changes {
	w := newObserver(peers)
	c := &Changes{Requests: len(w.set.Requests) - w.bulk.Outside}
	c.From, c.To = w.steady()
	if c.To <= c.From {
		return c
	}
	w.observe(c.From, c.To)
	c.Stallings = w.findStallings()
	loads, latencies := w.tests()
	c.Series = loads + latencies
	byLoad, byLatency := alpha*loadPart/float64(max(1, loads)), alpha*(1-loadPart)/float64(max(1, latencies))
	found := w.search(byLoad, byLatency)
	markReturns(found)
	var inside []Shift
	for _, f := range found {
		level := byLatency
		if f.Metric.isLoad() {
			level = byLoad
		}
		f.P = min(1, f.P*alpha/level)
		if c.edge(&f) {
			c.Edges = append(c.Edges, f)
		} else {
			inside = append(inside, f)
		}
	}
	c.List = groupShifts(inside, w.lag)
	w.addDemand(c)
	w.explain(c)
	c.Late = w.alwaysLate(c)
	return c
}

// edge reports whether f is part of the ramp-up or of the drain, or undoes what was.
// How load is divided, what is saved, and which rank is late does not depend on how much
// load there is.
func (c *Changes) edge(f *Shift) bool {
	const part = 0.15 // of the time that is searched
	margin := trace.Time(part * float64(c.To-c.From))
	switch {
	case f.Metric == ShareChanged || f.Metric.saves() || f.Metric.isLength() || f.Metric.isEnd() || f.Metric == LatenessChanged || f.Metric == PaceChanged:
		return false
	case f.Back && slices.ContainsFunc(c.Edges, func(g Shift) bool { return g.sameSeries(f) }):
		return true
	case f.rises():
		return f.Time < c.From+margin
	}
	return f.Time > c.To-margin
}

// markReturns finds the changes after which a series is about what it was before
// the last one.
func markReturns(found []Shift) {
	const about = 1.5
	for i := range found {
		for k := range found[:i] {
			f, earlier := &found[i], &found[k]
			if earlier.sameSeries(f) {
				f.Back = f.rises() != earlier.rises() &&
					factor(f.After.value(f.Metric), earlier.Before.value(f.Metric)) <= about
				if f.Back && f.Metric.isLength() && earlier.rises() {
					earlier.Until = f.Time
				}
			}
		}
	}
}

// sameSeries reports whether two shifts are about one thing. The median and the
// tail of durations are.
func (f *Shift) sameSeries(g *Shift) bool {
	kind := func(m Metric) Metric {
		if m == TailChanged {
			return MedianChanged
		}
		return m
	}
	return f.Location == g.Location && f.Stage == g.Stage && kind(f.Metric) == kind(g.Metric)
}

// rises reports whether what f is about became more.
func (f *Shift) rises() bool { return f.After.value(f.Metric) > f.Before.value(f.Metric) }

// value returns the number that a metric is about.
func (l *Level) value(m Metric) float64 {
	switch m {
	case ShareChanged, TailChanged, CachedChanged, AbortsChanged, RefusedChanged, RetractedChanged:
		return l.Share
	case ArrivalsChanged, RunningChanged, YieldChanged, OutputChanged, PromptChanged:
		return l.Rate
	}
	return float64(l.P50)
}

// steady returns the time in which the deployment works as it does. Before, an
// empty deployment fills up; after, it empties, or the requests are missing that
// the end of the dump cuts off. Either takes as long as nine of ten requests do,
// but no more than a tenth of all the time.
func (w *observer) steady() (from, to trace.Time) {
	if len(w.requests()) < Fewest {
		return 0, 0
	}
	var e2e []int64
	last, end := w.bulk.From, w.bulk.To
	for _, r := range w.requests() {
		last = max(last, r.Start)
		if r.Metrics.E2E >= 0 {
			e2e = append(e2e, r.Metrics.E2E)
		}
	}
	from = w.bulk.From
	margin := int64(end-from) / 10
	if len(e2e) > 0 {
		slices.Sort(e2e)
		w.e2e = request.NearestRank(e2e, 90)
		margin = min(margin, w.e2e)
	}
	w.lag = max(margin, int64(end-from)/50)
	return from + trace.Time(margin), min(last, end-trace.Time(margin))
}

// factor returns by how much the larger of two numbers exceeds the other.
func factor(x, y float64) float64 { return max(x, y) / max(min(x, y), math.SmallestNonzeroFloat64) }

// odds returns how likely a share is, over how likely it is not.
func odds(share float64) float64 { return share / max(1-share, math.SmallestNonzeroFloat64) }
