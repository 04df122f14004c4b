package straggler

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/changepoint"
)

// A block sums up consecutive sync points.
type block struct {
	offset []float64 // mean by rank; NaN if it was absent
	sorted []float64 // offset of the ranks that were present
	took   float64   // ns: mean
}

// blocks divides the sync points [from, to) into as many blocks as possible.
func (g *SyncSamples) blocks(from, to int) []block {
	k := len(g.Names)
	list := make([]block, min(MaxBlocksJudged, (to-from)/MinInBlock))
	for b := range list {
		first, end := from+b*(to-from)/len(list), from+(b+1)*(to-from)/len(list)
		sums, counts := make([]float64, k), make([]float64, k)
		for i := first; i < end; i++ {
			for r, d := range g.offset[i*k : (i+1)*k] {
				if d != NoArrival {
					sums[r] += float64(d)
					counts[r]++
				}
			}
			list[b].took += float64(g.SyncPoints[i].Took) / float64(end-first)
		}
		for r := range sums {
			sums[r] = distribution.Ratio(sums[r], counts[r])
		}
		list[b].offset = sums
		list[b].sorted = slices.DeleteFunc(slices.Sorted(slices.Values(sums)), math.IsNaN)
	}
	return list
}

// excess returns how much later a rank was than the median of the others, in ns, or NaN if there are no others. The
// median of an even number is the mean of the middle two: with the nearest rank, each of three ranks would be late on
// average.
func (b *block) excess(rank int) float64 {
	own, n := b.offset[rank], len(b.sorted)-1
	if math.IsNaN(own) || n < 1 {
		return math.NaN()
	}
	at, _ := slices.BinarySearch(b.sorted, own)
	other := func(i int) float64 {
		if i >= at {
			i++
		}
		return b.sorted[i]
	}
	return own - (other((n-1)/2)+other(n/2))/2
}

// An effect is how late a rank is, block by block, in ns and as a fraction of the time. Tests and intervals use the
// fraction, because steps get longer and shorter with their batches while the rank stays equally slow.
type effect struct{ ns, part []float64 }

func effectOn(rank int, blocks []block) effect {
	var e effect
	for i := range blocks {
		if ns := blocks[i].excess(rank); !math.IsNaN(ns) {
			e.ns, e.part = append(e.ns, ns), append(e.part, ns/max(1, blocks[i].took))
		}
	}
	return e
}

// Lengthens reports whether sync points at which a straggler is late take longer, by at least half of its lateness.
// Where ranks run ahead of their devices, one may be late without making others wait. If it is late at nearly all or
// nearly none, that cannot be tested: Lengthens sets s.Slack and returns true.
func (g *SyncSamples) Lengthens(s *Straggler) bool {
	const fewest = 8 // of either
	g.settle()
	defer g.unsettle()
	var late, took [2][]int64 // index 0 where it is not late, 1 where it is
	for i := range g.SyncPoints {
		if d := g.late[i*len(g.Names)+s.Rank]; d != NoArrival {
			is := 0
			if 2*d >= s.LastMean {
				is = 1
			}
			late[is], took[is] = append(late[is], d), append(took[is], g.SyncPoints[i].Took)
		}
	}
	if s.Slack = len(late[0]) < fewest || len(late[1]) < fewest; s.Slack {
		return true
	}
	apart := func(of [2][]int64) int64 { return distribution.LowerMedian(of[1]) - distribution.LowerMedian(of[0]) }
	return 2*apart(took) >= apart(late)
}

// Matters returns, by rank, whether its lateness over all sync points is large enough to matter.
func (g *SyncSamples) Matters() []bool {
	g.settle()
	whole := g.blocks(0, len(g.SyncPoints))
	out := make([]bool, len(g.Names))
	for r := range out {
		out[r] = g.matters(effectOn(r, whole))
	}
	return out
}

// matters reports whether an effect is large enough: in most blocks, or on average if that is not chance, because a
// rank may be slow in some steps only.
func (g *SyncSamples) matters(e effect) bool {
	if len(e.ns) == 0 {
		return false
	}
	return g.large(distribution.LowerMedian(slices.Clone(e.ns)), distribution.LowerMedian(slices.Clone(e.part))) ||
		g.large(stat.Mean(e.ns, nil), stat.Mean(e.part, nil)) && g.probability(e) <= ErrorLevel
}

// large reports whether lateness, in ns and as a fraction of the time, exceeds what clocks and differences between
// devices may explain.
func (g *SyncSamples) large(ns, part float64) bool {
	return ns >= float64(g.Floor) && part >= g.Share
}

// lateBlocks counts the blocks in which an effect is large enough.
func (g *SyncSamples) lateBlocks(e effect) int {
	n := 0
	for i := range e.ns {
		if g.large(e.ns[i], e.part[i]) {
			n++
		}
	}
	return n
}

// probability bounds the probability of such an effect on any rank if all are alike.
func (g *SyncSamples) probability(e effect) float64 {
	mean, variance, worth := changepoint.Mean(e.part)
	switch {
	case mean <= 0 || worth < minWorth:
		return 1
	case variance == 0:
		return 0
	}
	t := distuv.StudentsT{Sigma: 1, Nu: worth - 1}
	return min(1, float64(len(g.Names))*t.Survival(mean/math.Sqrt(variance)))
}

// interval returns the 95 % confidence interval of the mean of an effect, as a fraction of the time.
func (e effect) interval() (low, high float64) {
	mean, variance, worth := changepoint.Mean(e.part)
	margin := distuv.StudentsT{Sigma: 1, Nu: max(1, worth-1)}.Quantile(0.975) * math.Sqrt(variance)
	return mean - margin, mean + margin
}
