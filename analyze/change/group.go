package change

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// cause ranks shifts that happened together by their place in the chain of cause and effect: the load of a rank, the
// total load, longer requests, work that is no longer saved, a late rank, server speed, then stages that compute, move
// data, or wait for either, how requests end, and last what users see of it.
func (f *Shift) cause() int {
	switch {
	case f.Sized: // larger prompts, or fuller batches
		return 14
	case f.Metric == ShareChanged && f.rises():
		return 0
	case f.Metric == ShareChanged: // because another rank's share rises
		return 1
	case f.Metric.isLoad():
		return 2
	case f.Metric.isLength():
		return 3
	case f.Metric.saves():
		return 4
	case f.Metric == LatenessChanged:
		return 5
	case f.Metric == PaceChanged:
		return 6
	case f.Metric.isEnd():
		return 12
	case f.Location.Scope == place.Everywhere:
		return 13
	}
	switch f.Means.Phase() {
	case request.PrefillPhase, request.DecodePhase:
		return 7
	case request.TransferPhase:
		return 8
	case request.QueuePhase:
		return 9
	case request.BootstrapPhase:
		return 10
	}
	return 11
}

// groupShifts groups shifts that happened together. What changes within lag ns after its cause is a consequence of it.
func groupShifts(found []Shift, lag int64) []Change {
	slices.SortStableFunc(found, func(x, y Shift) int {
		return cmp.Or(cmp.Compare(x.cause(), y.cause()), -cmp.Compare(math.Abs(x.extraTime()), math.Abs(y.extraTime())), cmp.Compare(x.P, y.P), cmp.Compare(x.Time, y.Time))
	})
	var changes []Change
	for _, f := range found {
		nearest, away := -1, trace.Time(0)
		for i := range changes {
			lead := &changes[i].Shifts[0]
			if changes[i].has(&f) || !follows(lead, &f, trace.Time(lag)) {
				continue
			}
			if d := max(f.Time-lead.Time, lead.Time-f.Time); nearest < 0 || d < away {
				nearest, away = i, d
			}
		}
		if nearest < 0 {
			changes = append(changes, Change{Time: f.Time, First: f.First, Last: f.Last, P: f.P, Shifts: []Shift{f}})
		} else {
			changes[nearest].Shifts = append(changes[nearest].Shifts, f)
		}
	}
	slices.SortStableFunc(changes, func(x, y Change) int { return cmp.Compare(x.Time, y.Time) })
	return changes
}

// stillMost is the least Kept at which prompts that were cached before still are, and other requests merely came in addition.
const stillMost = 0.7

// follows reports whether f may have happened with lead, or because of it.
func follows(lead, f *Shift, lag trace.Time) bool {
	early := lag / 4 // clocks of hosts differ, and onsets are estimates
	switch {
	case lead.Back && f.Back && lead.Metric == ArrivalsChanged && f.Metric.isLength():
		return f.around(lead, early) // the added requests are gone
	case lead.rises() && (f.Metric == CachedChanged && (lead.Metric == ShareChanged || lead.Metric == ArrivalsChanged) || f.Metric.isLength() && lead.Metric == ArrivalsChanged):
		// Added requests may differ from the others, and a cache holds less for each of more requests.
		// If load only returned to what it was, the cache is large enough.
		return f.around(lead, early) && (!lead.Back && f.work() < factor(lead.Before.value(lead.Metric), lead.After.value(lead.Metric)) ||
			f.Metric == CachedChanged && lead.Metric == ArrivalsChanged && f.Kept >= stillMost)
	case lead.Metric == PromptChanged && f.Metric == CachedChanged && lead.rises() && f.Kept >= stillMost:
		return !lead.Back && f.around(lead, early) // the longer prompts are additional, and not cached anywhere
	case f.Metric.saves() || f.Metric.isLength():
		return false // a cause of its own
	case f.Metric == PaceChanged && lead.Metric != PaceChanged && lead.Metric != LatenessChanged:
		return false // a pace is corrected for load
	case f.Metric == LatenessChanged && lead.Metric != LatenessChanged && f.Before.P50 < minLateness:
		return false // its peers do as much: load makes no rank late that was not late before
	case lead.Metric == PaceChanged && f.Metric == PaceChanged && lead.Location.Scope == place.OneRank && f.Location.Scope == place.OneRank && lead.Location != f.Location:
		return false // one slow server does not slow down another that has no more to do
	case lead.Metric == PaceChanged && f.Metric != PaceChanged && (lead.rises() != f.rises() || f.Metric.isLoad()):
		return false
	case lead.tooSlightFor(f):
		return false
	case isGradual(lead.Shape) && (lead.Metric == PaceChanged || f.isSeen()):
		return true // a gradual change may push a series over its threshold at any time
	case f.Metric.isLoad():
		return lead.Metric.isLoad() && f.around(lead, early)
	case lead.Metric == ArrivalsChanged && lead.rises() != f.rises():
		return false // more load makes nothing faster
	case lead.Metric == ShareChanged && lead.rises() && f.rises() && f.Location.Scope == place.OneRank && f.Location.Role == lead.Location.Role && f.Location != lead.Location:
		return false // more load on one server makes others of its role no slower: they get less
	}
	return f.First <= lead.Last+lag && f.Last >= lead.First-early
}

// around reports whether f may have changed at the same time as lead.
func (f *Shift) around(lead *Shift, early trace.Time) bool {
	return f.First <= lead.Last+early && f.Last >= lead.First-early
}

// work returns the factor by which the work per request grew; below 1, it shrank.
func (f *Shift) work() float64 {
	if f.Metric == CachedChanged {
		return distribution.Ratio(1-f.After.Share, 1-f.Before.Share)
	}
	return distribution.Ratio(f.After.Rate, f.Before.Rate)
}

// has reports whether c already has a shift of the same series.
func (c *Change) has(f *Shift) bool {
	return slices.ContainsFunc(c.Shifts, func(g Shift) bool { return g.sameSeries(f) })
}

// demandLevel is the error probability of the second search for arrivals, where requests wait.
const demandLevel = 0.01

// addDemand searches again for a rise of arrivals wherever requests wait longer, or users see that they do: only between the
// changes before and after. Such a search looks at fewer places than one of the whole time, so a smaller rise is significant.
func (w *observer) addDemand(c *Changes) {
	from := c.From
	for i := range c.List {
		change, until := &c.List[i], c.To
		if i+1 < len(c.List) {
			until = c.List[i+1].Time
		}
		begin := from
		if from = change.Time; !change.Shifts[0].waits() {
			continue
		}
		for _, f := range w.searchArrivals(begin, until, demandLevel) {
			if f.rises() && f.First <= change.Last && !c.edge(&f) {
				f.P = min(1, f.P*alpha/demandLevel)
				f.Name = f.name()
				change.Time, change.First, change.Last, change.P = f.Time, f.First, f.Last, f.P
				change.Shifts = slices.Insert(change.Shifts, 0, f)
				break
			}
		}
	}
	slices.SortStableFunc(c.List, func(x, y Change) int { return cmp.Compare(x.Time, y.Time) })
}

// waits reports whether requests wait longer, or users see a slowdown that waits may cause.
func (f *Shift) waits() bool {
	if f.Metric != MedianChanged && f.Metric != TailChanged || !f.rises() {
		return false
	}
	phase := f.Means.Phase()
	return f.Location.Scope == place.Everywhere || phase == request.QueuePhase || phase == request.BootstrapPhase
}

// explain adds to every change the series that differ before and after it, even if no search found that: from the
// previous change to this one, against from there to the next one.
func (w *observer) explain(c *Changes) {
	times := []trace.Time{c.From}
	for i := range c.List {
		times = append(times, c.List[i].Time)
	}
	times = append(times, c.To)
	loads := w.measureLoads(times)
	for i := range c.List {
		change := &c.List[i]
		change.addRunning(w, loads, times, i)
		compared := w.series()
		if change.Shifts[0].Metric == OutputChanged { // other changes show in TTFT and TPOT
			compared = append(compared, &w.whole)
		}
		shifts := make([]*Shift, len(compared))
		parallel.Each(len(compared), func(k int) { shifts[k] = compared[k].compare(times[i], times[i+1], times[i+2]) })
		for _, f := range shifts {
			if f != nil && !change.has(f) && !change.Shifts[0].tooSlightFor(f) {
				f.Name = f.name()
				change.Shifts = append(change.Shifts, *f)
			}
		}
		change.sort()
	}
	i := -1
	c.List = slices.DeleteFunc(c.List, func(change Change) bool {
		i++
		return w.evens(&change, loads, i)
	})
}

// evens reports whether all that the i-th change says is that a rank gets another share of the requests, while its share of those that run
// does not follow: a router that sends each request to where the fewest run gives a rank fewer while its own run for long.
func (w *observer) evens(c *Change, l loads, i int) bool {
	f := &c.Shifts[0]
	if slices.ContainsFunc(c.Shifts, func(g Shift) bool { return g.Metric != ShareChanged && g.Metric != RunningChanged }) {
		return false
	}
	odds := func(k int) float64 {
		own, others := 0.0, 0.0
		for rank, of := range l.byRank {
			switch at := &w.ranks.Places[rank]; {
			case of == nil || at.Role != f.Location.Role:
			case *at == f.Location:
				own += float64(of[k])
			default:
				others += float64(of[k])
			}
		}
		return distribution.Ratio(own, others)
	}
	before, after := odds(i), odds(i+1)
	if !f.rises() {
		before, after = after, before
	}
	return after < minOddsFactor*before
}

// sort orders the shifts after the first one: load, what users see, then stages by how many ns they changed.
func (c *Change) sort() {
	kind := func(f *Shift) int {
		switch {
		case f.Metric.isLoad():
			return 0
		case f.Location.Scope == place.Everywhere:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(c.Shifts[1:], func(x, y Shift) int {
		return cmp.Or(cmp.Compare(kind(&x), kind(&y)), -cmp.Compare(x.size(), y.size()))
	})
}

// size returns by how many ns a duration changed.
func (f *Shift) size() int64 {
	d := f.After.P50 - f.Before.P50
	if f.Metric == TailChanged {
		d = f.After.P99 - f.Before.P99
	}
	return max(d, -d)
}

// compare compares the durations that began in [from, at) and in [at, to); nil is no difference.
func (d *durations) compare(from, at, to trace.Time) *Shift {
	const (
		few    = 10   // fewer are not compared
		surely = 0.01 // probability of error
		medium = 0.33 // effect by Cliff's delta, as Romano et al. (2006) call it
	)
	place := func(t trace.Time) int {
		k, _ := slices.BinarySearchFunc(d.values, t, func(o observed, t trace.Time) int { return cmp.Compare(o.at, t) })
		return k
	}
	i, k, j := place(from), place(at), place(to)
	if k-i < few || j-k < few || !d.differ(i, k, j) {
		return nil
	}
	values := d.floats(i, j)
	p, delta := changepoint.Compare(values[:k-i], values[k-i:])
	if p > surely || math.Abs(delta) < medium {
		return nil
	}
	f := d.shift(d.metric)
	f.Time, f.First, f.Last, f.P = at, at, at, p
	f.Before, f.After = d.level(i, k), d.level(k, j)
	return &f
}

// alwaysLate returns the ranks that are late all the time: by a median of at least half a
// millisecond and a fiftieth of the step. It leaves out ranks whose lateness changed.
func (w *observer) alwaysLate(c *Changes) []Shift {
	const part = 50
	type series struct {
		*durations
		of int // stage
	}
	var all []series
	var shifts []Shift
	for rank := range w.late {
		for k, d := range w.late[rank] {
			if d == nil || len(d.values) < Fewest {
				continue
			}
			f := d.shift(LatenessChanged)
			if !slices.ContainsFunc(c.List, func(change Change) bool { return change.has(&f) }) {
				all, shifts = append(all, series{d, k}), append(shifts, f)
			}
		}
	}
	parallel.Each(len(all), func(i int) { shifts[i].After = all[i].level(0, len(all[i].values)) })
	typical := map[int]int64{} // by stage
	var late []Shift
	for i, f := range shifts {
		stage := all[i].of
		if f.After.P50 < minLateness || f.After.P50 < order.Memo(typical, stage, func() int64 { return w.typical(stage) })/part {
			continue
		}
		f.Before, f.Time, f.First, f.Last, f.P, f.Name = f.After, c.From, c.From, c.From, math.NaN(), f.name()
		late = append(late, f)
	}
	return late
}

// typical returns the median of a stage on all lead ranks, in ns.
func (w *observer) typical(stage int) int64 {
	var ns []int64
	for rank := range w.byRank {
		if d := w.byRank[rank][stage]; d != nil {
			for _, v := range d.values {
				ns = append(ns, v.ns)
			}
		}
	}
	if len(ns) == 0 {
		return 0
	}
	return distribution.LowerMedian(ns)
}
