package change

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Names of metrics, which are also subkinds of findings.
const (
	Arrivals     = "arrivals per second"
	OutputLength = "length of answers"
	PromptLength = "length of prompts"
	GivenUpShare = "share of requests that are given up"
)

// savings is one property of what requests ask for, or of what they are spared: the length of prompts or of answers, the
// share of prompt tokens that are cached, or the tokens per decode step, which are more than one if drafts are accepted.
type savings struct {
	metric Metric
	values []saving  // by at
	ranks  []int32   // by value, in the order in which they were added: the rank that spares a request anything
	at     []savings // by rank, if there are several
	place  place.Location
	cut    []trace.Time // starts of aborted requests, whose answers might have had any length
}

// A saving is the value of one request, n of all, which is about the time from at to until. The request has its first token at first.
type saving struct {
	at, first, until trace.Time
	n, all           int64
}

// observeSavings records what a request asks for, and what it is spared.
func (w *observer) observeSavings(r *request.Request) {
	m := &r.Metrics
	first := r.Start + trace.Time(max(0, m.TTFT))
	add := func(k int, of Metric, from, until trace.Time, n, all int64) *savings {
		s := &w.savings[k]
		s.metric = of
		s.values = memory.Append(s.values, saving{from, first, max(from, until), n, all})
		return s
	}
	if m.CachedTokens >= 0 && m.PromptTokens > 0 {
		s := add(0, CachedChanged, r.Start, first, min(m.CachedTokens, m.PromptTokens), m.PromptTokens)
		s.ranks = memory.Append(s.ranks, w.rankOf(r, request.Decode))
	}
	if tokens, steps := m.StepYield(); steps > 0 {
		s := add(1, YieldChanged, first, r.End, tokens, steps)
		s.ranks = memory.Append(s.ranks, w.rankOf(r, request.Prefill))
	}
	if m.CompletionTokens > 0 && r.Status == request.Finished { // others are cut short
		add(2, OutputChanged, r.Start, r.End, m.CompletionTokens, 1)
	}
	if m.PromptTokens > 0 {
		s := add(3, PromptChanged, r.Start, r.Start, m.PromptTokens, 1)
		s.ranks = memory.Append(s.ranks, w.rankOf(r, request.Decode))
	}
}

// rankOf returns the rank of any role but one that serves a request; request.None if unknown.
func (w *observer) rankOf(r *request.Request, not request.Role) int32 {
	for _, p := range w.set.PartsOf(r) {
		if part := &w.set.Parts[p]; part.Serves() && part.Role != not {
			return int32(w.ranks.Route(part))
		}
	}
	return request.None
}

// divide divides savings by rank: each rank has a cache of its own, and may have another draft model, or none.
func (w *observer) divide(s *savings) {
	if len(s.ranks) == 0 {
		return
	}
	by := make([]savings, len(w.ranks.Places))
	for i, rank := range s.ranks {
		if rank != request.None {
			by[rank].values = memory.Append(by[rank].values, s.values[i])
		}
	}
	for rank := range by {
		if by[rank].metric, by[rank].place = s.metric, w.ranks.Places[rank]; by[rank].searched() {
			s.at = append(s.at, by[rank])
		}
	}
	if len(s.at) < 2 {
		s.at = nil
	}
	for i := range s.at {
		s.at[i].sort()
	}
}

func (w *observer) sortSavings() {
	slices.Sort(w.cut)
	w.savings[2].cut = w.cut
	for i := range w.savings {
		w.divide(&w.savings[i])
		w.savings[i].sort()
	}
}

func (s *savings) sort() {
	slices.SortStableFunc(s.values, func(x, y saving) int { return cmp.Compare(x.at, y.at) })
}

// searched reports whether there are enough requests, and, except for lengths, any of them is spared anything.
func (s *savings) searched() bool {
	return len(s.values) >= Fewest && slices.ContainsFunc(s.values, func(v saving) bool {
		return s.metric.isLength() || s.metric == CachedChanged && v.n > 0 || s.metric == YieldChanged && v.n > v.all
	})
}

// search finds when requests ask for more or less than before, or are spared less: on single
// ranks if that happens on one, on less than half of several, or not on the others together, otherwise overall. The
// first answers that run away are found with an error probability of at most begins, everything else of level.
func (s *savings) search(level, begins float64) []Shift {
	var alone []Shift
	ranks, others := 0, savings{metric: s.metric}
	for i := range s.at {
		found := s.at[i].searchAll(level, begins)
		if len(found) == 0 {
			others.values = append(others.values, s.at[i].values...)
		}
		alone, ranks = append(alone, found...), ranks+min(1, len(found))
	}
	if ranks == 1 || ranks > 0 && 2*ranks < len(s.at) {
		return alone
	}
	if others.sort(); ranks > 0 && s.metric == YieldChanged && others.searched() && len(others.searchAll(level, begins)) == 0 {
		return alone
	}
	return s.searchAll(level, begins)
}

// searchAll searches all values. A larger share of cached tokens needs no explanation, as caches fill.
func (s *savings) searchAll(level, begins float64) []Shift {
	values := memory.Make[float64](len(s.values))
	for i, v := range s.values {
		values[i] = float64(v.n) / float64(v.all)
	}
	at := func(k int) trace.Time {
		return distribution.Midway(s.values, k, s.values[0].at, s.values[len(s.values)-1].at, func(v saving) trace.Time { return v.at })
	}
	longest := slices.Max(values)
	means := func(from, k, to int) (before, after float64) {
		// Aborted requests may have been as long as any. Count them so, as far as that evens out the two sides.
		most := func(from, to int, mean, other float64) float64 {
			cut, n := load.CountWithin(s.cut, at(from), at(to)), float64(to-from)
			return max(mean, min(other, distribution.Ratio(mean*n+longest*cut, n+cut)))
		}
		before, after = s.mean(from, k), s.mean(k, to)
		if s.metric == OutputChanged && after < before {
			before = max(after, before-2*(before-s.inTime(from, k, to))) // twice, as what is missing is known only roughly
		}
		return most(from, k, before, after), most(k, to, after, before)
	}
	changes := changepoint.Levels(values, changepoint.Options{Alpha: level, Keep: func(from, k, to int) bool {
		before, after := means(from, k, to)
		switch s.metric {
		case OutputChanged, PromptChanged:
			return factor(before, after) >= minLengthFactor
		case CachedChanged:
			return max(before-after, after-before) >= minCached && factor(odds(before), odds(after)) >= minOddsFactor
		}
		return before >= minYieldFactor*after
	}})
	like := Shift{Location: s.place, Metric: s.metric}
	found := shifts(changes, at, s.level, like)
	if len(found) == 0 && s.metric.isLength() { // requests of one tenant may be longer, and not most of them
		// A long prompt comes again with each turn of a chat, so a few more of them prove nothing.
		changes, limit := changepoint.Larger(values, s.metric == OutputChanged, level, begins, func(from, k, to int, few bool) bool {
			least := minMeanFactor
			if few {
				least = minRunaway
			}
			before, after := means(from, k, to)
			return factor(before, after) >= least
		})
		like.Limit = int64(limit)
		return shifts(changes, at, func(from, to int) Level {
			l := s.level(from, to)
			l.Share = changepoint.Beyond(values[from:to], limit)
			return l
		}, like)
	}
	if len(found) == 0 && s.metric == YieldChanged {
		return s.fade(values, level)
	}
	if s.metric == CachedChanged {
		for i := range found {
			c := &changes[i]
			found[i].Kept = work.Kept(values[c.From:c.At], values[c.At:c.To], float64(at(c.At)-at(c.From)), float64(at(c.To)-at(c.At)))
		}
	}
	date(found, changes, s.values[0].at, func(k int) changepoint.Observation {
		v, y := &s.values[k], values[k]
		switch s.metric {
		case OutputChanged, PromptChanged:
			y = math.Log(y)
		case YieldChanged:
			return observation(s.values[0].at, v.at, v.until, y)
		}
		return observation(s.values[0].at, v.at, v.at, y) // of an instant, not of a stretch of time
	})
	return falls(found)
}

// fade finds that values fall gradually, as drafts do that fit what people ask less and less.
func (s *savings) fade(values []float64, level float64) []Shift {
	begin, n := s.values[0].at, len(values)
	list := make([]changepoint.Observation, n)
	for k, v := range s.values {
		list[k] = observation(begin, v.at, v.until, values[k])
	}
	together, each := changepoint.Courses([][]changepoint.Observation{list})
	for _, c := range append(each[0], together) {
		if c.Shape == changepoint.Ramped {
			c.At, c.First, c.Last = 0, 0, 0
		}
		at := func(x float64) trace.Time { return begin + trace.Time(x*1e9) }
		until := order.Count(s.values, func(v saving) bool { return v.at < at(c.At) })
		few := max(Fewest/2, n/10)
		before, after := s.level(0, min(n, max(few, until))), s.level(max(0, n-few), n)
		if c.P <= level && isGradual(c.Shape) && before.Rate >= minYieldFactor*after.Rate {
			return []Shift{{Location: s.place, Metric: s.metric, Searched: true, Shape: c.Shape, P: c.P, Time: at(c.At), First: at(c.First), Last: at(c.Last), Before: before, After: after}}
		}
	}
	return nil
}

// falls drops the rises of cached tokens: a rise only ends the time in which fewer are cached.
func falls(found []Shift) (out []Shift) {
	for i, f := range found {
		switch {
		case f.Metric != CachedChanged || !f.rises():
			out = append(out, f)
		case i > 0 && !found[i-1].rises():
			out[len(out)-1].Until = f.Time
		}
	}
	return out
}

// mean returns the sum of n over the sum of all, for the values [from, to).
func (s *savings) mean(from, to int) float64 {
	n, all := int64(0), int64(0)
	for _, v := range s.values[from:to] {
		n, all = n+v.n, all+v.all
	}
	return distribution.Ratio(float64(n), float64(all))
}

// inTime returns how long the answers before k would be on average if they had come when those from k on did: each of those has
// only the time from its first token to the end of the files, and longer answers are not in them.
func (s *savings) inTime(from, k, to int) float64 {
	last, lengths, sums, sum := trace.Time(0), make([]int64, 0, k-from), make([]float64, 1, k-from+1), 0.0
	for i := range s.values {
		last = max(last, s.values[i].until)
	}
	for _, v := range s.values[from:k] {
		lengths = append(lengths, v.n)
	}
	slices.Sort(lengths)
	for _, n := range lengths {
		sums = append(sums, sums[len(sums)-1]+float64(n))
	}
	pace := order.Nth(order.EachRow(s.values[k:to], func(v *saving) int64 { return int64(v.until-v.first) / v.n }), (to-k)/2)
	for _, v := range s.values[k:to] {
		most, _ := slices.BinarySearch(lengths, int64(last-v.first)/max(1, pace)+1)
		sum += distribution.Ratio(sums[most], float64(max(1, most)))
	}
	return sum / float64(to-k)
}

func (s *savings) level(from, to int) Level {
	l := newLevel(to - from)
	if s.metric == CachedChanged {
		l.Share = s.mean(from, to)
	} else {
		l.Rate = s.mean(from, to)
	}
	return l
}
