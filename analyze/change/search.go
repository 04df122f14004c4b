package change

import (
	"cmp"
	"math"
	"slices"
	"unsafe"

	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// The smallest changes worth reporting, however significant.
const (
	minRateFactor   = 1.3
	minOddsFactor   = 1.5 // of a share
	minShare        = 0.02
	minMedianFactor = 1.2
	minTailFactor   = 1.5       // of the p99, and of the odds of being beyond the limit
	minStep         = 1_000_000 // ns
	minTokenStep    = 200_000   // ns, of what every token takes
	minLateness     = 500_000   // ns
	minCached       = 0.05      // of the tokens of prompts
	minYieldFactor  = 1.2
	minLengthFactor = 1.1  // of prompts and answers
	minMeanFactor   = 1.5  // of the mean, where only the long ones are longer
	minRunaway      = 1.25 // of the mean, where a few answers are far longer
)

// Fewest is how many observations a search needs.
const Fewest = work.Fewest

// tests returns the number of searches of load, and of everything else.
func (w *observer) tests() (loads, latencies int) {
	if len(w.arrivals) >= Fewest {
		loads++
	}
	for _, r := range w.routes {
		loads += len(leadRanks(r))
	}
	for i := range w.savings {
		if w.savings[i].searched() {
			latencies += 1 + len(w.savings[i].at)
			if w.savings[i].metric.isLength() {
				latencies++ // their tail
			}
			if w.savings[i].metric == OutputChanged {
				latencies, loads = latencies+changepoint.Tails, loads+1
			}
		}
	}
	latencies += len(w.ends.searched()) + len(w.paces.Decode) + len(w.paces.Prefill)
	for _, d := range w.series() {
		if len(d.values) < Fewest {
			continue
		}
		latencies++
		if d.metric == MedianChanged {
			latencies++ // its tail
		}
	}
	return loads, latencies
}

// maxShared limits how many ranks of a role have their share of the load searched: every search looks at all requests
// of the role, and with more ranks, a share is too small to matter.
const maxShared = 256

// leadRanks returns the ranks that requests are routed to, if there are at least two; of more
// than maxShared, those that get the most requests.
func leadRanks(routes []route) []int32 {
	if len(routes) < Fewest {
		return nil
	}
	counts := map[int32]int{}
	for _, r := range routes {
		counts[r.rank]++
	}
	if len(counts) < 2 {
		return nil
	}
	ranks := order.Largest(counts)
	ranks = ranks[:min(len(ranks), maxShared)]
	slices.Sort(ranks)
	return ranks
}

// search searches every series, each with an error probability of at most load or latency.
func (w *observer) search(load, latency float64) []Shift {
	searches := []func() []Shift{func() []Shift { return w.searchArrivals(w.from, w.to, load) }}
	for _, routes := range w.routes {
		for _, rank := range leadRanks(routes) {
			searches = append(searches, func() []Shift { return w.searchShare(routes, rank, load) })
		}
	}
	for i := range w.savings {
		if s := &w.savings[i]; s.searched() {
			searches = append(searches, func() []Shift { return s.search(latency, load) })
		}
	}
	for _, e := range w.ends.searched() {
		searches = append(searches, func() []Shift { return e.search(w, latency) })
	}
	for _, d := range w.series() {
		if len(d.values) >= Fewest {
			searches = append(searches, func() []Shift { return d.search(w, latency) })
		}
	}
	found := searchAll(searches)
	w.demands = order.Only(found, func(f Shift) bool { return f.Metric.isLoad() || f.Metric.isLength() })
	found = append(found, searchAll(w.paceSearches(latency))...) // these searches need the changes of demand
	for i := range found {
		f := &found[i]
		f.Name = f.name()
		f.Sized = f.Location.Scope == place.OneRank && f.Means == request.Prefilling && (f.Metric == MedianChanged || f.Metric == TailChanged) &&
			slices.ContainsFunc(w.paces.Prefill, func(p work.Pace) bool { return w.isOf(&p, &f.Location) })
	}
	return found
}

// isOf reports whether a pace is that of a rank, or of the engine that it belongs to.
func (w *observer) isOf(p *work.Pace, at *place.Location) bool {
	rank, ok := w.ranks.At[*at]
	return ok && w.ranks.Engine[rank] == p.Rank
}

// searchAll runs searches in parallel, and returns what they find in their order.
func searchAll(searches []func() []Shift) []Shift {
	each := make([][]Shift, len(searches))
	parallel.Each(len(searches), func(i int) { each[i] = searches[i]() })
	return slices.Concat(each...)
}

// searchArrivals finds the changes of the arrival rate between two times that are there with and without the arrivals in doubt.
func (w *observer) searchArrivals(from, to trace.Time, level float64) []Shift {
	found := w.searchRate(w.arrivals, from, to, level)
	if len(found) == 0 || len(w.doubt.Arrivals) == 0 {
		return found
	}
	all := slices.Concat(w.arrivals, w.doubt.Arrivals)
	slices.Sort(all)
	again := w.searchRate(all, from, to, level)
	return slices.DeleteFunc(found, func(f Shift) bool { return !slices.ContainsFunc(again, f.agrees) })
}

// agrees reports whether another search found the same change.
func (f *Shift) agrees(g Shift) bool {
	return f.rises() == g.rises() && f.First <= g.Last && g.First <= f.Last
}

// searchRate finds changes of the arrival rate between two times; arrivals are sorted.
func (w *observer) searchRate(arrivals []trace.Time, from, to trace.Time, level float64) []Shift {
	first, _ := slices.BinarySearch(arrivals, from)
	behind, _ := slices.BinarySearch(arrivals, to)
	if arrivals = arrivals[first:behind]; len(arrivals) < Fewest {
		return nil
	}
	times := memory.Make[float64](len(arrivals))
	defer memory.Free(times)
	for i, t := range arrivals {
		times[i] = float64(t - from)
	}
	at := func(k int) trace.Time {
		return distribution.Midway(arrivals, k, from, to, func(t trace.Time) trace.Time { return t })
	}
	rate := func(from, to int) Level {
		l := newLevel(to - from)
		l.Rate = distribution.Ratio(float64(to-from), float64(at(to)-at(from))/1e9)
		return l
	}
	changes := changepoint.Rates(times, 0, float64(to-from), changepoint.Options{Alpha: level,
		Keep: func(from, k, to int) bool {
			return load.LeastFactor(w.doubt.RateOf(k-from, at(from), at(k)), w.doubt.RateOf(to-k, at(k), at(to))) >= minRateFactor
		}})
	return withoutBursts(shifts(changes, at, rate, Shift{Location: place.Location{Scope: place.Everywhere}, Metric: ArrivalsChanged}), w.lag)
}

// withoutBursts merges a rise of the rate with the fall after it if the level in between lasted no longer than lag, in ns, and the rate then
// settles above what it was: workers that all start at the same time are not a rate.
func withoutBursts(found []Shift, lag int64) []Shift {
	for i := 0; i+1 < len(found); i++ {
		f, next := &found[i], &found[i+1]
		if f.rises() && !next.rises() && next.Time-f.Time <= trace.Time(lag) && next.After.Rate >= minRateFactor*f.Before.Rate {
			f.After = next.After
			found = slices.Delete(found, i+1, i+2)
		}
	}
	return found
}

// shifts turns the changes of a series into shifts that are otherwise like the given one.
func shifts(changes []changepoint.Change, at func(k int) trace.Time, level func(from, to int) Level, like Shift) []Shift {
	var out []Shift
	for _, c := range changes {
		f := like
		f.Time, f.First, f.Last = at(c.At), at(c.First), at(c.Last)
		f.P, f.Searched = c.P, true
		f.Before, f.After = level(c.From, c.At), level(c.At, c.To)
		out = append(out, f)
	}
	return out
}

// date refines the times of shifts: an observation counts by how much of its duration lies
// after the shift. It uses only observations between the changes before and after.
func date(found []Shift, changes []changepoint.Change, origin trace.Time, of func(k int) changepoint.Observation) {
	for i := range found {
		from, to := changes[i].From, changes[i].To
		list := memory.Make[changepoint.Observation](to - from)[:0]
		for k := from; k < to; k++ {
			list = memory.Append(list, of(k))
		}
		if at, first, last, ok := changepoint.Date(list); ok {
			time := func(s float64) trace.Time { return origin + trace.Time(s*1e9) }
			found[i].Time, found[i].First, found[i].Last = time(at), time(first), time(last)
		}
		memory.Free(list)
	}
}

// observation returns the value y from one time to another, in seconds since origin.
func observation(origin, from, to trace.Time, y float64) changepoint.Observation {
	return changepoint.Observation{From: float64(from-origin) / 1e9, To: float64(to-origin) / 1e9, Value: y, Weight: 1}
}

// sharesOf returns for which rows of holds, the counts of these, and share, which returns the
// level of the rows [from, to): the share of them for which it holds.
func sharesOf[R any](rows []R, of func(R) bool) (is []bool, count changepoint.Trues, share func(from, to int) Level) {
	is = memory.Make[bool](len(rows))
	for i, r := range rows {
		is[i] = of(r)
	}
	count = changepoint.Count(is)
	return is, count, func(from, to int) Level {
		l := newLevel(to - from)
		l.Share = count.Share(from, to)
		return l
	}
}

func (w *observer) searchShare(routes []route, rank int32, level float64) []Shift {
	is, count, share := sharesOf(routes, func(r route) bool { return r.rank == rank })
	at := func(k int) trace.Time {
		return distribution.Midway(routes, k, w.from, w.to, func(r route) trace.Time { return r.at })
	}
	changes := changepoint.Shares(is, changepoint.Options{Alpha: level, Keep: func(from, k, to int) bool {
		bounds := func(from, to int) [2]float64 {
			return w.doubt.ShareOf(w.ranks.Places[rank].Role, count.In(from, to), to-from, at(from), at(to))
		}
		return sharesDiffer(bounds(from, k), bounds(k, to))
	}})
	return shifts(changes, at, share, Shift{Location: w.ranks.Places[rank], Metric: ShareChanged})
}

// search finds changes of the level of durations, and of their tail.
func (d *durations) search(w *observer, level float64) []Shift {
	values := d.floats(0, len(d.values))
	defer memory.Free(values)
	changes := changepoint.Levels(values, changepoint.Options{Alpha: level, Keep: func(from, k, to int) bool {
		return d.differ(from, k, to) && d.lasts(w, from, k) && d.lasts(w, k, to)
	}})
	found := shifts(changes, d.time, d.level, d.shift(d.metric))
	if d.metric == LatenessChanged {
		return found
	}
	limit := int64(changepoint.TailLimit(values))
	beyond := func(from, to int) Level {
		l := d.level(from, to)
		l.Share = d.beyond(from, to, limit)
		return l
	}
	like := d.shift(TailChanged)
	like.Limit = limit
	changes = changepoint.Excesses(values, float64(limit), changepoint.Options{Alpha: level, Keep: func(from, k, to int) bool {
		b, a := beyond(from, k), beyond(k, to)
		return factor(odds(b.Share), odds(a.Share)) >= minTailFactor && d.step(b.P99, a.P99, minTailFactor) &&
			d.lasts(w, from, k) && d.lasts(w, k, to)
	}})
	return append(found, shifts(changes, d.time, beyond, like)...)
}

func (d *durations) shift(m Metric) Shift {
	return Shift{Location: d.location, Metric: m, Stage: d.stage, Means: d.means}
}

// floats returns the durations [from, to).
func (d *durations) floats(from, to int) []float64 {
	values := memory.Make[float64](to - from)[:0]
	for _, v := range d.values[from:to] {
		values = memory.Append(values, float64(v.ns))
	}
	return values
}

func (d *durations) time(k int) trace.Time {
	first, last := d.values[0].at, d.values[len(d.values)-1].at
	return distribution.Midway(d.values, k, first, last, func(o observed) trace.Time { return o.at })
}

// level describes the durations [from, to).
func (d *durations) level(from, to int) Level {
	memory.Touch((to - from) * int(unsafe.Sizeof(observed{})))
	ns := memory.Make[int64](to - from)[:0]
	for _, v := range d.values[from:to] {
		ns = memory.Append(ns, v.ns)
	}
	l := newLevel(len(ns))
	if len(ns) > 0 {
		l.P50, l.P99 = distribution.Percentile(ns, 50), distribution.Percentile(ns, 99)
	}
	memory.Free(ns)
	return l
}

// beyond returns the share of the durations [from, to) that reach limit.
func (d *durations) beyond(from, to int, limit int64) float64 {
	n := order.Count(d.values[from:to], func(v observed) bool { return v.ns >= limit })
	return distribution.Ratio(float64(n), float64(to-from))
}

// differ reports whether the median at k changes by enough to matter.
func (d *durations) differ(from, k, to int) bool {
	b, a := d.level(from, k).P50, d.level(k, to).P50
	if d.metric == LatenessChanged {
		return max(a-b, b-a) >= minLateness
	}
	return d.step(b, a, minMedianFactor)
}

// lasts reports whether the durations [from, to) cover a time in which at least eight groups of requests could have
// waited one after the other. Requests that wait at the same time wait because of each other: that is a busy spell, not
// a new state. Steps depend on the requests that run together. Lateness is exempt, as a rank is late on its own.
func (d *durations) lasts(w *observer, from, to int) bool {
	const peerGroups = 8
	if d.metric == LatenessChanged {
		return true
	}
	peerGroup := w.e2e
	if !d.perToken() && d.stage != "ttft" { // the first token waits for shared steps, too
		ns := memory.Make[int64](to - from)[:0]
		for _, v := range d.values[from:to] {
			ns = memory.Append(ns, v.ns)
		}
		peerGroup = distribution.Percentile(ns, 90)
		memory.Free(ns)
	}
	return int64(d.time(to)-d.time(from)) >= peerGroups*peerGroup
}

// perToken reports whether every token takes the duration.
func (d *durations) perToken() bool { return d.means == request.Stepping || d.stage == "tpot" }

// step reports whether two durations differ by at least a factor, and by a noticeable time.
func (d *durations) step(x, y int64, by float64) bool {
	least := int64(minStep)
	if d.perToken() {
		least = minTokenStep
	}
	return max(x-y, y-x) >= least && factor(float64(max(1, x)), float64(max(1, y))) >= by
}

// ends are how requests ended, or what befell them, by metric.
type ends struct{ list [3]outcomes }

// outcomes are whether each request had one such end.
type outcomes struct {
	metric Metric
	values []outcome
	n      int // that had it
}

// An outcome is whether a request had an end, and when it had, or would have had it.
type outcome struct {
	at trace.Time
	is bool
}

// add records how a request ended: clients give up at the end of a request, a full queue turns it away at its start.
func (e *ends) add(s *request.Set, r *request.Request) {
	if r.Status == request.Unfinished {
		return
	}
	refused := s.TurnedAway(r)
	for k, o := range [...]struct {
		metric Metric
		at     trace.Time
		is     bool
	}{
		{AbortsChanged, r.End, r.Status == request.Aborted && !refused},
		{RefusedChanged, r.Start, refused},
		{RetractedChanged, r.Start, r.Metrics.Retractions > 0},
	} {
		list := &e.list[k]
		list.metric = o.metric
		list.values = memory.Append(list.values, outcome{o.at, o.is})
		if o.is {
			list.n++
		}
	}
}

// searched returns the ends for which there are enough requests, and that any request had.
func (e *ends) searched() (list []*outcomes) {
	for k := range e.list {
		if o := &e.list[k]; len(o.values) >= Fewest && o.n > 0 {
			list = append(list, o)
		}
	}
	return list
}

// search finds when the share of requests that had this end changed.
func (o *outcomes) search(w *observer, level float64) []Shift {
	slices.SortStableFunc(o.values, func(a, b outcome) int { return cmp.Compare(a.at, b.at) })
	is, _, share := sharesOf(o.values, func(v outcome) bool { return v.is })
	at := func(k int) trace.Time {
		return distribution.Midway(o.values, k, w.from, w.to, func(v outcome) trace.Time { return v.at })
	}
	changes := changepoint.Shares(is, changepoint.Options{Alpha: level, Keep: func(from, k, to int) bool {
		x, y := share(from, k).Share, share(k, to).Share
		return max(x-y, y-x) >= minShare && factor(odds(x), odds(y)) >= minOddsFactor
	}})
	return shifts(changes, at, share, Shift{Location: place.Location{Scope: place.Everywhere}, Metric: o.metric})
}

// sharesDiffer reports whether two shares, each given by its bounds, differ by enough to matter.
func sharesDiffer(before, after [2]float64) bool {
	away := max(after[0]-before[1], before[0]-after[1])
	between := load.LeastFactor([2]float64{odds(before[0]), odds(before[1])}, [2]float64{odds(after[0]), odds(after[1])})
	return between >= minOddsFactor && !math.IsNaN(away) && away >= minShare
}
