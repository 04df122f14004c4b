package overtime

import (
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

// A queue counts the work that was launched and had not started.
type queue struct {
	grid   *Grid
	area   []int64 // ns that all work waited, by bucket
	whole  []int64 // by how much more work waits for the whole of a bucket than of the one before
	starts []trace.Time
	calls  []trace.Time // that launched them
}

func newQueue(g *Grid) *queue {
	return &queue{grid: g, area: make([]int64, g.N()), whole: make([]int64, g.N()+1)}
}

// add takes work in the order of its starts.
func (q *queue) add(launched, started trace.Time) {
	if started <= launched {
		return
	}
	q.calls, q.starts = append(q.calls, launched), append(q.starts, started)
	first, last := q.grid.from(launched), q.grid.from(started-1)
	if first == q.grid.N() {
		return
	}
	part := func(b int) {
		start := q.grid.Start(b)
		q.area[b] += max(0, int64(min(started, start+trace.Time(q.grid.Bucket))-max(launched, start)))
	}
	part(first)
	if last == first {
		return
	}
	if last < q.grid.N() {
		part(last)
	}
	q.whole[first+1]++
	q.whole[last]--
}

// finish returns how long all work waited in each bucket, and the most that waited at once.
func (q *queue) finish() (area []int64, most []int) {
	slices.Sort(q.calls)
	most = make([]int, q.grid.N())
	depth, call, start, waiting := 0, 0, 0, int64(0)
	for b := range most {
		waiting += q.whole[b]
		q.area[b] += waiting * q.grid.Bucket
		from := q.grid.Start(b)
		to := from + trace.Time(q.grid.Bucket)
		for call < len(q.calls) || start < len(q.starts) {
			at := q.starts[start] // the last start is behind all calls
			if call < len(q.calls) {
				at = min(at, q.calls[call])
			}
			if at >= to {
				break
			}
			if at > from {
				most[b] = max(most[b], depth)
			}
			for call < len(q.calls) && q.calls[call] == at {
				call, depth = call+1, depth+1
			}
			for start < len(q.starts) && q.starts[start] == at {
				start, depth = start+1, depth-1
			}
			if at >= from {
				most[b] = max(most[b], depth)
			}
		}
		most[b] = max(most[b], depth)
	}
	return q.area, most
}
