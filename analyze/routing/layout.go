package routing

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/recorder"
)

// A layout is the placement of the experts of a layer.
type layout struct {
	names []int32 // logical expert of each counted expert; nil if they are the same
	at    [][]int // ranks of each counted expert; its tokens are divided evenly among them
}

// newLayout places experts: physical experts in order, the same number on each GPU.
func newLayout(rec *recorder.ExpertCounts, layer, gpus int) *layout {
	x := &layout{at: make([][]int, rec.Experts)}
	physical := slots(rec)
	own := max(1, physical/gpus)
	if rec.Map != nil && layer < len(rec.Map) && rec.Physical && len(rec.Map[layer]) == rec.Experts {
		x.names = rec.Map[layer]
	}
	if rec.Physical || rec.Map == nil || layer >= len(rec.Map) {
		for e := range x.at {
			x.at[e] = []int{min(e/own, gpus-1)}
		}
		return x
	}
	for p, e := range rec.Map[layer] {
		if int(e) < len(x.at) {
			x.at[e] = append(x.at[e], min(p/own, gpus-1))
		}
	}
	return x
}

// spread adds counts to the GPUs that the experts are on, and returns their sum.
func (x *layout) spread(counts []uint32, to []float64) (sum float64) {
	for e, c := range counts {
		if c == 0 {
			continue
		}
		sum += float64(c)
		for _, g := range x.at[e] {
			to[g] += float64(c) / float64(len(x.at[e]))
		}
	}
	return sum
}

// logical returns the number of an expert in the model.
func (x *layout) logical(e int) int {
	if x.names != nil {
		return int(x.names[e])
	}
	return e
}

// rankOf returns the rank that an expert is on; -1 if it is on several.
func (x *layout) rankOf(e int) int {
	if len(x.at[e]) != 1 {
		return -1
	}
	return x.at[e][0]
}

// place computes how long GPUs would wait with the placement that suits the counts of all passes: in each layer, it
// places the expert with the most tokens first, on the GPU with the fewest tokens so far.
func (s *Source) place() {
	rec := s.Recording
	var w waiting
	room := (rec.Experts + s.EP - 1) / s.EP
	loads := make([]float64, s.EP)
	for i := range s.ByLayer {
		x := &s.ByLayer[i]
		to := greedy(x.total, s.EP, room)
		for p := range rec.Passes {
			clear(loads)
			for e, c := range rec.Of(p, x.Layer) {
				loads[to[e]] += float64(c)
			}
			w.add(order.Total(loads)/float64(s.EP), slices.Max(loads), 0)
		}
	}
	s.Placed = min(w.waits(), s.waits())
}

// greedy returns the GPU of each expert.
func greedy(total []float64, gpus, room int) []int {
	loads, n, to := make([]float64, gpus), make([]int, gpus), make([]int, len(total))
	for _, e := range order.Sorted(len(total), func(a, b int) int { return cmp.Compare(total[b], total[a]) }) {
		best := -1
		for g := range loads {
			if n[g] < room && (best < 0 || loads[g] < loads[best]) {
				best = g
			}
		}
		loads[best] += total[e]
		n[best]++
		to[e] = best
	}
	return to
}
