package profile

import (
	"github.com/sgtrace/sgtrace/internal/order"
	"math"
)

// A Join finds rows of a table by their correlation id. Profilers count ids up, so that a
// table of all of them is hardly larger than the rows; where they do not, it is a map.
type Join struct {
	first int64
	dense []int32 // index of the row plus one
	index map[int64]int32
}

// NewJoin returns the join of n rows, of which of returns the ids; 0 leaves a row out. Of several
// with one id, the last counts.
func NewJoin(n int, of func(i int) int64) *Join {
	j := &Join{first: math.MaxInt64}
	last, count := int64(math.MinInt64), 0
	for i := range n {
		if id := of(i); id != 0 {
			j.first, last = min(j.first, id), max(last, id)
			count++
		}
	}
	const spread, small = 8, 1 << 12
	if count == 0 {
		return j
	}
	if size := uint64(last - j.first); size < spread*uint64(count)+small {
		j.dense = make([]int32, size+1)
	} else {
		j.index = make(map[int64]int32, count)
	}
	for i := range n {
		id := of(i)
		switch {
		case id == 0:
		case j.dense != nil:
			j.dense[id-j.first] = int32(i) + 1
		default:
			j.index[id] = int32(i) + 1
		}
	}
	return j
}

// JoinLaunches returns the join of the calls among the events that are on the given rows.
func (p *Profile) JoinLaunches(on func(r *Row) bool) *Join {
	rows := order.EachRow(p.Rows, on)
	return NewJoin(len(p.Events), func(i int) int64 {
		if e := &p.Events[i]; e.IsLaunch() && rows[e.Place.Row()] {
			return e.Correlation
		}
		return 0
	})
}

// Of returns the index of the row with the given id, -1 if there is none.
func (j *Join) Of(correlation int64) int32 {
	if j.dense == nil {
		return j.index[correlation] - 1
	}
	if at := uint64(correlation - j.first); at < uint64(len(j.dense)) {
		return j.dense[at] - 1
	}
	return -1
}
