package load

import (
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

// A Queue counts the work that was launched and had not started.
type Queue struct {
	grid   *Grid
	area   *Area // how long all work waited
	starts []trace.Time
	calls  []trace.Time // their launches
}

// Add adds a piece of work. They come in order of their starts.
func (q *Queue) Add(launched, started trace.Time) {
	if started > launched {
		q.calls, q.starts = append(q.calls, launched), append(q.starts, started)
		q.area.Add(launched, started)
	}
}

// Finish returns how long all work waited in each bucket, and the most that waited at once.
func (q *Queue) Finish() (area []int64, most []int) {
	slices.Sort(q.calls)
	most = make([]int, q.grid.N())
	depth, call, start := 0, 0, 0
	for b := range most {
		from := q.grid.Start(b)
		to := from + trace.Time(q.grid.Bucket)
		for call < len(q.calls) || start < len(q.starts) {
			at := q.starts[start] // in range: no call is later than the last start
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
	return q.area.Totals(), most
}

// NewQueue returns an empty queue in the buckets of a grid.
func NewQueue(grid *Grid) *Queue { return &Queue{grid: grid, area: NewArea(grid)} }
