package change

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Ends are how requests ended, or what befell them, by the metric that counts it.
type ends struct{ list [3]outcomes }

// Outcomes are whether each request had one end.
type outcomes struct {
	metric Metric
	values []outcome
	n      int // that had it
}

// An outcome is when that was, or when it might have been.
type outcome struct {
	at trace.Time
	is bool
}

// add notes how a request ended: clients give up at its end, a queue is full at its start.
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

// searched returns those of which there are enough requests, and that any request had.
func (e *ends) searched() (list []*outcomes) {
	for k := range e.list {
		if o := &e.list[k]; len(o.values) >= Fewest && o.n > 0 {
			list = append(list, o)
		}
	}
	return list
}

// search finds when more or fewer requests ended that way.
func (o *outcomes) search(w *observer, level float64) []Shift {
	slices.SortStableFunc(o.values, func(a, b outcome) int { return cmp.Compare(a.at, b.at) })
	is := memory.Make[bool](len(o.values))
	for i, v := range o.values {
		is[i] = v.is
	}
	count := changepoint.Count(is)
	share := func(from, to int) Level {
		l := newLevel(to - from)
		l.Share = count.Share(from, to)
		return l
	}
	at := func(k int) trace.Time {
		return distribution.Midway(o.values, k, w.from, w.to, func(v outcome) trace.Time { return v.at })
	}
	changes := changepoint.Shares(is, changepoint.Options{Alpha: level, Keep: func(from, k, to int) bool {
		x, y := share(from, k).Share, share(k, to).Share
		return max(x-y, y-x) >= leastShare && factor(odds(x), odds(y)) >= leastOddsFactor
	}})
	return shifts(changes, at, share, Shift{Where: place.Where{Scope: place.Everywhere}, Metric: o.metric})
}
