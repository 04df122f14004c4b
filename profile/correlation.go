package profile

import "math"

// A Join finds links by their correlation id. Profilers count ids up, so that a
// table of all of them is hardly larger than the links; where they do not, it is a
// map.
type Join struct {
	first int64
	dense []int32 // index of the link plus one
	index map[int64]int32
}

// NewJoin returns the join of the links of which wants says so. Of several with one
// id, the last counts.
func NewJoin(links []Link, wants func(*Link) bool) *Join {
	j := &Join{first: math.MaxInt64}
	last, n := int64(math.MinInt64), 0
	for i := range links {
		if l := &links[i]; wants(l) {
			j.first, last = min(j.first, l.Correlation), max(last, l.Correlation)
			n++
		}
	}
	const spread, small = 8, 1 << 12
	if n == 0 {
		return j
	}
	if size := uint64(last - j.first); size < spread*uint64(n)+small {
		j.dense = make([]int32, size+1)
	} else {
		j.index = make(map[int64]int32, n)
	}
	for i := range links {
		l := &links[i]
		switch {
		case !wants(l):
		case j.dense != nil:
			j.dense[l.Correlation-j.first] = int32(i) + 1
		default:
			j.index[l.Correlation] = int32(i) + 1
		}
	}
	return j
}

// Of returns the index of the link with the given id, -1 if there is none.
func (j *Join) Of(correlation int64) int32 {
	if j.dense == nil {
		return j.index[correlation] - 1
	}
	if at := uint64(correlation - j.first); at < uint64(len(j.dense)) {
		return j.dense[at] - 1
	}
	return -1
}
