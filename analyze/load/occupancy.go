package load

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/curves"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// MostAtOnce is the largest number of intervals that overlap. Empty ones overlap none.
func MostAtOnce(intervals []request.Interval) int {
	var starts, ends []trace.Time
	for _, iv := range intervals {
		if iv.From < iv.To {
			starts, ends = append(starts, iv.From), append(ends, iv.To)
		}
	}
	slices.Sort(starts)
	slices.Sort(ends)
	most, over := 0, 0
	for i, at := range starts {
		for ends[over] <= at {
			over++
		}
		most = max(most, i+1-over)
	}
	return most
}

// Busy is how much of what a place can do it does: with requests running on average, and
// one or more for some part of the time. A server that prefills is busy while it does. One
// that decodes can do more the more requests run, so that it is busy as far as as many run
// as ever did at once on a place like it; NaN if that was never more than one.
func Busy(role request.Role, running, covered float64, most int) float64 {
	switch {
	case role == request.Prefill || role == request.Encoder:
		return covered
	case most < 2:
		return math.NaN()
	}
	return running / float64(most)
}

// addUnion adds the time that at least one of the intervals covers. It sorts them.
func addUnion(area *curves.Area, intervals []request.Interval) {
	slices.SortFunc(intervals, func(x, y request.Interval) int { return cmp.Compare(x.From, y.From) })
	for i := 0; i < len(intervals); {
		from, to := intervals[i].From, intervals[i].To
		for i++; i < len(intervals) && intervals[i].From <= to; i++ {
			to = max(to, intervals[i].To)
		}
		area.Add(from, to)
	}
}
