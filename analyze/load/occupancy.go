package load

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An occupancy sums up, bucket by bucket, how long requests were in some state. An
// interval costs the same however many buckets it covers: it goes into the first
// and the last one, and for those between only the ends are noted.
type occupancy struct {
	start  trace.Time
	bucket int64
	inside []int64 // ns of intervals that begin or end in the bucket
	edges  []int64 // how many more intervals cover the bucket than the one before
}

func newOccupancy(start trace.Time, bucket int64, n int) *occupancy {
	return &occupancy{start: start, bucket: bucket, inside: make([]int64, n), edges: make([]int64, n+1)}
}

// add adds an interval that lies between the first and the last bucket.
func (o *occupancy) add(from, to trace.Time) {
	if to <= from {
		return
	}
	first, last := int64(from-o.start)/o.bucket, int64(to-o.start)/o.bucket
	if first == last {
		o.inside[first] += int64(to - from)
		return
	}
	o.inside[first] += o.bucket - (int64(from-o.start) - first*o.bucket)
	o.inside[last] += int64(to-o.start) - last*o.bucket
	o.edges[first+1]++
	o.edges[last]--
}

// totals returns the ns of every bucket.
func (o *occupancy) totals() []int64 {
	totals, open := make([]int64, len(o.inside)), int64(0)
	for b := range totals {
		open += o.edges[b]
		totals[b] = o.inside[b] + open*o.bucket
	}
	return totals
}

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

// union adds the time that at least one of the intervals covers. It sorts them.
func (o *occupancy) union(intervals []request.Interval) {
	slices.SortFunc(intervals, func(x, y request.Interval) int { return cmp.Compare(x.From, y.From) })
	for i := 0; i < len(intervals); {
		from, to := intervals[i].From, intervals[i].To
		for i++; i < len(intervals) && intervals[i].From <= to; i++ {
			to = max(to, intervals[i].To)
		}
		o.add(from, to)
	}
}
