package straggler

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
)

// A ranking is the order in which ranks arrived at the sync points [from, to). If all ranks are alike, each place in
// the order of a sync point is equally likely, however arrival times are distributed. Hence few sync points suffice if
// there are many ranks, and a single long step is no more than one last place.
type ranking struct {
	from, to int
	places   [][]float64 // of every rank, its place at each sync point: from 0, first, to 1, last
	here     [][]int     // of every rank, the number of ranks present at each of these
	// worth is the number of independent places that one place is worth, given the similarity of neighbors: the
	// median over the ranks.
	worth float64
}

// manyRanks is the number of ranks from which their places show how similar neighbors are. Of two ranks, one that
// drifts may always be last, and only its lateness shows that it drifts.
const manyRanks = 8

// orderIn returns the ranking at the sync points [from, to). It caches the last one, because most ranks are judged by
// all sync points.
func (g *SyncSamples) orderIn(from, to int) *ranking {
	if o := g.order; o != nil && o.from == from && o.to == to {
		return o
	}
	k := len(g.Names)
	series := make([][]float64, k) // of every rank, the values whose neighbors may be similar
	o := &ranking{from: from, to: to, places: make([][]float64, k), here: make([][]int, k)}
	sorted := make([]int64, 0, k)
	for i, m := range g.SyncPoints[from:to] {
		arrivals := g.arrivals[m.row : m.row+k]
		sorted = sorted[:0]
		for r, a := range arrivals {
			if a != NoArrival && !g.guilty[r] {
				sorted = append(sorted, a)
			}
		}
		slices.Sort(sorted)
		for r, a := range arrivals {
			if a != NoArrival && !g.guilty[r] && len(sorted) > 1 {
				before, _ := slices.BinarySearch(sorted, a)
				o.places[r] = append(o.places[r], float64(before)/float64(len(sorted)-1))
				o.here[r] = append(o.here[r], len(sorted))
				series[r] = append(series[r], float64(g.late[(from+i)*k+r]))
			}
		}
	}
	if k >= manyRanks {
		series = o.places
	}
	var worth []float64
	for _, x := range series {
		if len(x) >= minWorth {
			worth = append(worth, worthOf(x)/float64(len(x)))
		}
	}
	if len(worth) > 0 {
		o.worth = distribution.LowerMedian(worth)
	}
	g.order = o
	return o
}

// chance bounds the probability that any rank comes as late as this one, sync point after sync point, if all are
// alike, using Chernoff's bound on the sum of its places. Sync points close in time are similar, so worth reduces the
// number of independent ones.
func (o *ranking) chance(rank int) float64 {
	places, here := o.places[rank], slices.Sorted(slices.Values(o.here[rank]))
	if float64(len(places))*o.worth < minWorth {
		return 1
	}
	sum := order.Total(places)
	least := chernoff(sum, func(theta float64) float64 {
		exponent, one := 0.0, 0.0
		for i, n := range here {
			if i == 0 || n != here[i-1] {
				one = logMeanPlace(theta, n)
			}
			exponent += one
		}
		return exponent
	})
	return min(1, float64(len(o.places))*math.Exp(least*o.worth))
}

// worthOf returns the number of independent values that x is worth, as neighbors may be similar. If all values are
// equal, it is their number.
func worthOf(x []float64) float64 {
	if len(x) == 0 || slices.Min(x) == slices.Max(x) {
		return float64(len(x))
	}
	_, _, worth := changepoint.Mean(x)
	return min(worth, float64(len(x)))
}

// chernoff bounds the logarithm of the probability that a sum of independent values is at least sum, given the
// logarithm of the mean of exp(theta sum).
func chernoff(sum float64, logMean func(theta float64) float64) float64 {
	const first, last, factor = 0.25, 1024, 1.25
	least := 0.0
	for theta := first; theta <= last; theta *= factor {
		least = min(least, logMean(theta)-theta*sum)
	}
	return least
}

// logMeanPlace returns the logarithm of the mean of exp(theta v) over the places v = 0 to 1 in an order of n: a
// geometric series.
func logMeanPlace(theta float64, n int) float64 {
	step := theta / float64(n-1)
	return theta + math.Log(-math.Expm1(-step*float64(n))/-math.Expm1(-step)/float64(n))
}

// logMeanExp returns the logarithm of the mean of exp(theta v) over values v.
func logMeanExp(theta float64, values []float64) float64 {
	most, sum := slices.Max(values), 0.0
	for _, v := range values {
		sum += math.Exp(theta * (v - most))
	}
	return theta*most + math.Log(sum/float64(len(values)))
}

// If there are too few sync points for blocks of time, an exact test counts who came last. Among ranks that are
// alike, each is equally likely to be last, so the count is binomial. P is the probability of at least that count,
// times the number of ranks tested. The test treats sync points as independent, which neighbors are not. So its
// result is likely but never certain, and the others have to lose a far larger share of their time than with blocks.
const (
	// MinCounted is the fewest sync points that can show anything.
	MinCounted = 8
	// minSlow is the fewest sync points in the period in which a rank is slow, if that is not all the time, and
	// fewSlow limits that period to at least a quarter of all sync points: the start of a capture, or a short spell,
	// is not a lasting state.
	minSlow = 2 * MinCounted
	fewSlow = 4
	// fewShare is the share of their time that the others have to lose.
	fewShare = 0.25
)

// LikelyOfFew returns the rank that came last too often for chance, if there are too few sync points for the judge,
// in all or since the rank became slow. It returns nil if there is none. groups is the number of groups tested.
func (g *SyncSamples) LikelyOfFew(groups int) []Straggler {
	n := len(g.SyncPoints)
	if n < MinCounted {
		return nil
	}
	g.settle()
	var found []Straggler
	for rank := range g.Names {
		run, tests := slowRun{to: n}, groups
		if n >= FewestSyncPoints {
			slow, enough := g.slowest(rank, g.changes(rank), false, g.matters)
			if enough || slow.to-slow.from < max(minSlow, n/fewSlow) {
				continue
			}
			run, tests = slow, groups*slow.tried*n // the period may begin at any of them
		}
		if s, ok := g.count(rank, run, tests); ok {
			found = append(found, s)
		}
	}
	Sort(found)
	return found[:min(1, len(found))]
}

// count tests how often a rank came last in a run. tests is the number of ranges tested.
func (g *SyncSamples) count(rank int, run slowRun, tests int) (Straggler, bool) {
	s := g.straggler(rank, run)
	s.Counted, s.Blocks, s.LateBlocks, s.DelayLow, s.DelayHigh = true, 0, 0, math.NaN(), math.NaN()
	s.Delay = float64(s.Mean) / max(1, s.took)
	s.P = min(1, float64(tests)*g.chanceToBeLast(s.Last, s.SyncPoints))
	if s.P > LikelyLevel || s.LastMean < g.Floor || s.LostShare < fewShare || !g.costs(&s, run) {
		return s, false
	}
	s.Bulk = g.bulk(rank, run.from, run.to, nil)
	return s, true
}

// chanceToBeLast bounds the probability that any rank comes last at least last times in n sync points, if each rank
// present is equally likely to.
func (g *SyncSamples) chanceToBeLast(last, n int) float64 {
	if last == 0 {
		return 1
	}
	here := len(g.Names)
	for i := range g.SyncPoints {
		here = min(here, g.SyncPoints[i].here)
	}
	return float64(len(g.Names)) * significance.AtLeastOf(last, n, 1/float64(here))
}
