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

// Changes are the moments at which load or latency shifted.
type Changes struct {
	Requests int // in the set, without those at stray times; below Fewest, nothing is searched
	// From and To bound the searched time. Before it is the ramp-up; after it, the drain, or
	// requests that the end of the dump cuts off; see steady.
	From, To trace.Time
	Series   int      // searched
	List     []Change // in order of time
	// Edges are rises soon after From, shifts that undo these, and falls shortly before To. Every
	// load test begins and ends like that, so they are not among the changes.
	Edges []Shift
	// Late are ranks that end their steps after their peers from beginning to end. That is not a
	// change, but whoever looks for one wants to know.
	Late []Shift
	// Stallings are lead ranks that stand still or are slow at equal intervals, or that stand still now and then, or once for long.
	Stallings []Stalling
}

// Times returns when load or latency changed.
func (c *Changes) Times() (list []trace.Time) {
	return order.EachRow(c.List, func(x *Change) trace.Time { return x.Time })
}

// A Change is a moment, with every shift that happened then.
type Change struct {
	// Time is when the first shift happened; First and Last are its 95 % confidence bounds.
	Time, First, Last trace.Time
	P                 float64 // of the first shift
	// Shifts begin with the one that may have caused the others: a share of the load before the
	// rate of arrivals, load before latency.
	Shifts []Shift
}

// A Shift is a series that changed.
type Shift struct {
	Location place.Location
	Name     string // of the place, as people call it: "decode DP1"
	Metric   Metric
	Stage    string          // of a duration: the name of a stage, "ttft", or "tpot"
	Means    request.Meaning // of the stage
	// Time is when it changed; First and Last are its 95 % confidence bounds.
	Time, First, Last trace.Time
	// Searched reports that a search of the series found the shift, rather than a comparison before and after another change.
	Searched bool
	// P bounds the probability that any series has such a change, anywhere, if nothing happened. Unless Searched, it is
	// the p-value of the difference in this series alone; NaN without a test.
	P             float64
	Before, After Level
	Limit         int64 // ns; durations beyond it are the tail
	// Back reports that the shift undoes an earlier one of the same series.
	Back bool

	// For a pace: Shape is its course; PerMinute is the fraction by which it lengthens per minute;
	// Full is when it has its final value, and Until when it was over (0: never). Ranks are those
	// that have it, out of Peers ranks; Steps is when each of them changed, if not all at once.
	Shape     changepoint.Shape
	PerMinute float64
	Full      trace.Time
	Until     trace.Time
	Ranks     []int32 // indexes into the observer's
	Peers     int
	Steps     []PaceStep
	// Sized marks a prefill duration of a rank whose pace is searched, too. The pace accounts for the size of the work;
	// the duration alone does not show that the server changed.
	Sized bool
	// Extra is how much longer each request took because of the shift, in ns, by request index; negative if shorter.
	Extra map[int]float64
	whole bool    // Extra includes the time that prefills hold up decoding
	off   float64 // standard error of the relative change of a pace
	// slowFrom is the start of a pace that was longer than later until Time, which is less than half of the searched time; 0 if it was not.
	slowFrom trace.Time
	// together is how many ranks of one engine have a pace.
	together int
	// Kept is for cached tokens: how often requests with a large cached share still arrive, relative to before; see work.Kept.
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
	Share    float64 // of a role's arrivals, of durations beyond the limit, of cached prompt tokens, or of requests with a certain end
	P50, P99 int64   // ns
}

// newLevel returns a level with n observations, and nothing else known.
func newLevel(n int) Level {
	return Level{N: n, Rate: math.NaN(), Share: math.NaN(), P50: request.Unknown, P99: request.Unknown}
}

// Metric is the property of a series that changed.
type Metric uint8

const (
	ShareChanged     Metric = iota // share of a role's requests that a rank gets
	ArrivalsChanged                // arrival rate
	RunningChanged                 // running requests
	CachedChanged                  // share of prompt tokens that are cached
	YieldChanged                   // tokens per decode step
	OutputChanged                  // tokens per answer
	PromptChanged                  // tokens per prompt
	AbortsChanged                  // share of requests that are given up
	RefusedChanged                 // share of requests that a full queue turns away
	RetractedChanged               // share of requests that a full KV cache evicts
	PaceChanged                    // time per piece of work, corrected for whatever else the server has to do
	LatenessChanged                // how much later than its peers a rank ends a step
	MedianChanged                  // median duration
	TailChanged                    // share of long durations
)

// String returns the word that reports print.
func (m Metric) String() string {
	return [...]string{"share", "arrivals", "running", "cached", "yield", "output", "prompt", "aborts", "refused", "retracted", "pace", "lateness", "p50", "tail"}[m]
}

// isLoad reports whether a metric is about how much there is to do.
func (m Metric) isLoad() bool {
	return m == ShareChanged || m == ArrivalsChanged || m == RunningChanged
}

// saves reports whether a metric is about work that is saved: if less is, there is more to do.
func (m Metric) saves() bool { return m == CachedChanged || m == YieldChanged }

// isLength reports whether a metric is the length of prompts or answers.
func (m Metric) isLength() bool { return m == OutputChanged || m == PromptChanged }

// isEnd reports whether a metric is about how requests end.
func (m Metric) isEnd() bool {
	return m == AbortsChanged || m == RefusedChanged || m == RetractedChanged
}

// alpha is the probability of finding any change, in any series, where there is none. loadPart is the share of it that
// arrivals and shares get: they are few series, and follow simple laws.
const (
	alpha    = 0.05
	loadPart = 0.8
)

// Find searches requests for changes of the arrival rate, of the share of requests that each rank gets, of what
// requests ask for, and of how long stages and work take on each rank. docs/METRICS.md explains how.
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

// edge reports whether f is part of the ramp-up or the drain, or undoes an earlier shift that is. How load is divided, how
// long and how well cached requests are, how they end, and how fast or late a rank is doesn't depend on the amount of load.
func (c *Changes) edge(f *Shift) bool {
	const part = 0.15 // of the searched time
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

// markReturns marks the shifts that take a series back to about where it was before its previous shift.
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

// sameSeries reports whether two shifts are about the same quantity at the same place. The
// median and the tail of a duration are one quantity.
func (f *Shift) sameSeries(g *Shift) bool {
	kind := func(m Metric) Metric {
		if m == TailChanged {
			return MedianChanged
		}
		return m
	}
	return f.Location == g.Location && f.Stage == g.Stage && kind(f.Metric) == kind(g.Metric)
}

// rises reports whether the level rose.
func (f *Shift) rises() bool { return f.After.value(f.Metric) > f.Before.value(f.Metric) }

// value returns the number that m measures.
func (l *Level) value(m Metric) float64 {
	switch m {
	case ShareChanged, TailChanged, CachedChanged, AbortsChanged, RefusedChanged, RetractedChanged:
		return l.Share
	case ArrivalsChanged, RunningChanged, YieldChanged, OutputChanged, PromptChanged:
		return l.Rate
	}
	return float64(l.P50)
}

// steady returns the time in which the deployment is in its steady state: after the ramp-up that
// fills it, and before it drains or the end of the dump cuts requests off. Either margin is the
// 90th percentile of E2E, but at most a tenth of the whole time. It also sets e2e and lag.
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

// odds returns the odds of a share: its probability, over that of the opposite.
func odds(share float64) float64 { return share / max(1-share, math.SmallestNonzeroFloat64) }
