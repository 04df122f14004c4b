package change

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// What people call what saves work, and topics of findings.
const (
	CachedTokens = "share of cached tokens"
	Arrivals     = "arrivals per second"
	StepYield    = "tokens per decode step"
	OutputLength = "length of answers"
	PromptLength = "length of prompts"
)

// Savings are what requests ask for, and what of it they are spared: how long prompts and
// answers are, tokens of the prompt that are cached, and tokens that come out of a decode step
// besides the first, as drafts of them were accepted.
type savings struct {
	metric Metric
	values []saving // by at
}

// A saving is what one request has: n of all. What it says is about the time from at to until.
type saving struct {
	at, until trace.Time
	n, all    int64
}

// observeSavings notes what a request is spared.
func (w *observer) observeSavings(r *request.Request) {
	add := func(k int, of Metric, from, until trace.Time, n, all int64) {
		s := &w.savings[k]
		s.metric = of
		s.values = memory.Append(s.values, saving{from, max(from, until), n, all})
	}
	m := &r.Metrics
	first := r.Start + trace.Time(max(0, m.TTFT))
	if m.CachedTokens >= 0 && m.PromptTokens > 0 {
		add(0, CachedChanged, r.Start, first, min(m.CachedTokens, m.PromptTokens), m.PromptTokens)
	}
	if tokens, steps := m.StepYield(); steps > 0 {
		add(1, YieldChanged, first, r.End, tokens, steps)
	}
	if m.CompletionTokens > 0 {
		add(2, OutputChanged, r.Start, r.Start, m.CompletionTokens, 1)
	}
	if m.PromptTokens > 0 {
		add(3, PromptChanged, r.Start, r.Start, m.PromptTokens, 1)
	}
}

func (w *observer) sortSavings() {
	for i := range w.savings {
		slices.SortStableFunc(w.savings[i].values, func(x, y saving) int { return cmp.Compare(x.at, y.at) })
	}
}

// searched reports whether there are enough requests to search, and any is spared anything.
func (s *savings) searched() bool {
	return len(s.values) >= Fewest && slices.ContainsFunc(s.values, func(v saving) bool {
		return s.metric.isLength() || s.metric == CachedChanged && v.n > 0 || s.metric == YieldChanged && v.n > v.all
	})
}

// search finds where requests ask for more or less than before, or less of it is spared. More
// of that explains nothing that anyone would ask about: caches fill.
func (s *savings) search(level float64) []Shift {
	values := memory.Make[float64](len(s.values))
	for i, v := range s.values {
		values[i] = float64(v.n) / float64(v.all)
	}
	at := func(k int) trace.Time {
		return distribution.Midway(s.values, k, s.values[0].at, s.values[len(s.values)-1].at, func(v saving) trace.Time { return v.at })
	}
	changes := changepoint.Levels(values, changepoint.Options{Alpha: level, Keep: func(from, k, to int) bool {
		before, after := s.mean(from, k), s.mean(k, to)
		switch s.metric {
		case OutputChanged, PromptChanged:
			return factor(before, after) >= leastLengthFactor
		case CachedChanged:
			return before-after >= leastCached && factor(odds(before), odds(after)) >= leastOddsFactor
		}
		return before >= leastYieldFactor*after
	}})
	like := Shift{Where: place.Where{Scope: place.Everywhere}, Metric: s.metric}
	found := shifts(changes, at, s.level, like)
	if len(found) == 0 && s.metric.isLength() { // those of one tenant may be longer, and not most
		limit := changepoint.Limit(values)
		long := func(from, to int) float64 {
			n := 0
			for _, v := range values[from:to] {
				if v >= limit {
					n++
				}
			}
			return distribution.Ratio(float64(n), float64(to-from))
		}
		return shifts(changepoint.Excesses(values, limit, changepoint.Options{Alpha: level, Keep: func(from, k, to int) bool {
			return factor(odds(long(from, k)), odds(long(k, to))) >= leastTailFactor && factor(s.mean(from, k), s.mean(k, to)) >= leastMeanFactor
		}}), at, s.level, like)
	}
	date(found, changes, s.values[0].at, func(k int) changepoint.Observation {
		v, y := &s.values[k], values[k]
		switch s.metric {
		case OutputChanged, PromptChanged:
			y = math.Log(y)
		case CachedChanged: // a request has one share, and not that of part of its time
			return observation(s.values[0].at, v.at, v.at, y)
		}
		return observation(s.values[0].at, v.at, v.until, y)
	})
	return found
}

// mean is what the requests [from, to) are spared, of all of it.
func (s *savings) mean(from, to int) float64 {
	n, all := int64(0), int64(0)
	for _, v := range s.values[from:to] {
		n, all = n+v.n, all+v.all
	}
	return distribution.Ratio(float64(n), float64(all))
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
