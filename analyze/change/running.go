package change

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// loads is how long requests were running between moments: in request ns, of
// every stretch between two of them.
type loads struct {
	all    []int64
	byRank [][]int64
}

// measureLoads sums up for everything, and for the lead ranks, how long requests
// were running between each two of the times.
func (w *observer) measureLoads(times []trace.Time) loads {
	l := loads{all: make([]int64, len(times)-1), byRank: make([][]int64, len(w.byRank))}
	for _, r := range w.requests() {
		addStretch(l.all, times, r.Start, r.End)
		for _, p := range w.set.PartsOf(r) {
			part := &w.set.Parts[p]
			thread, rank := w.ranks.Lead(part)
			if thread == request.None || rank == request.None || !part.Serves() {
				continue
			}
			if l.byRank[rank] == nil {
				l.byRank[rank] = make([]int64, len(times)-1)
			}
			w.set.EachSelectedStage(w.set.StagesOf(thread), true, func(i int, outermost bool) {
				if span := w.set.Row(i); outermost && load.StateOf(span, part.Role) == load.StateRunning {
					addStretch(l.byRank[rank], times, span.Start, span.End)
				}
			})
		}
	}
	return l
}

// addStretch adds an interval to the stretches that it covers.
func addStretch(to []int64, times []trace.Time, from, end trace.Time) {
	for i := range to {
		to[i] += int64(max(0, min(end, times[i+1])-max(from, times[i])))
	}
}

// addRunning says how many requests were running before and after the i-th change
// of load: everywhere if it was that of all, and on the ranks that got another
// share.
func (c *Change) addRunning(w *observer, l loads, times []trace.Time, i int) {
	level := func(of []int64, k int) Level {
		mean := distribution.Ratio(float64(of[k]), float64(times[k+1]-times[k]))
		l := newLevel(0)
		l.Rate = mean
		return l
	}
	for _, f := range slices.Clone(c.Shifts) {
		var of []int64
		switch f.Metric {
		case ArrivalsChanged:
			of = l.all
		case ShareChanged:
			rank := slices.Index(w.ranks.Places, f.Where)
			of = l.byRank[rank]
		}
		if of == nil {
			continue
		}
		r := Shift{Where: f.Where, Name: f.Name, Metric: RunningChanged, Time: c.Time, First: c.Time, Last: c.Time, P: math.NaN(),
			Before: level(of, i), After: level(of, i+1)}
		if factor(r.Before.Rate, r.After.Rate) >= leastRateFactor {
			c.Shifts = append(c.Shifts, r)
		}
	}
}
