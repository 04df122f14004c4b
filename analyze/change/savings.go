package change

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// What people call what saves work, and topics of findings.
const (
	CachedTokens = "share of cached tokens"
	Arrivals     = "arrivals per second"
	StepYield    = "tokens per decode step"
)

// Savings are work that requests are spared: tokens of the prompt that are cached, and tokens
// that come out of a decode step besides the first, as drafts of them were accepted.
type savings struct {
	metric Metric
	values []saving // by start of the request
}

// A saving is what one request is spared: n of all.
type saving struct {
	at     trace.Time
	n, all int64
}

// observeSavings notes what a request is spared.
func (w *observer) observeSavings(r *request.Request) {
	cached, yield := &w.savings[0], &w.savings[1]
	cached.metric, yield.metric = CachedChanged, YieldChanged
	if m := &r.Metrics; m.CachedTokens >= 0 && m.PromptTokens > 0 {
		cached.values = append(cached.values, saving{r.Start, min(m.CachedTokens, m.PromptTokens), m.PromptTokens})
	}
	if tokens, steps := r.Metrics.StepYield(); steps > 0 {
		yield.values = append(yield.values, saving{r.Start, tokens, steps})
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
		return s.metric == CachedChanged && v.n > 0 || s.metric == YieldChanged && v.n > v.all
	})
}

// search finds where less is spared than before. More of it explains nothing that anyone
// would ask about: caches fill.
func (s *savings) search(level float64) []Shift {
	values := make([]float64, len(s.values))
	for i, v := range s.values {
		values[i] = float64(v.n) / float64(v.all)
	}
	at := func(k int) trace.Time {
		return distribution.Midway(s.values, k, s.values[0].at, s.values[len(s.values)-1].at, func(v saving) trace.Time { return v.at })
	}
	changes := changepoint.Levels(values, changepoint.Options{Alpha: level, Keep: func(from, k, to int) bool {
		before, after := s.mean(from, k), s.mean(k, to)
		if s.metric == CachedChanged {
			return before-after >= leastCached && factor(odds(before), odds(after)) >= leastOddsFactor
		}
		return before >= leastYieldFactor*after
	}})
	return shifts(changes, len(values), at, s.level, Shift{Where: place.Where{Scope: place.Everywhere}, Metric: s.metric})
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
