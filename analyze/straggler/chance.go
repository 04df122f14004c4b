package straggler

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
)

// A ranking is who came after whom at the sync points [from, to). If all ranks are alike,
// each place in the order of a sync point is as likely, however their times are distributed.
// So few sync points are enough where there are many ranks, and a single long step is no
// more than the last place.
type ranking struct {
	from, to int
	places   [][]float64 // of every rank, where it was: from 0, the first one, to 1
	here     [][]int     // of every rank: how many ranks were there
	// worth is how many independent places tell as much as one, by how much neighbors are
	// alike: the median of the ranks.
	worth float64
}

// manyRanks have so many places that these show how much neighbors are alike. Of two ranks,
// one that drifts may always be the last, and only its lateness shows that.
const manyRanks = 8

// orderIn returns the order at the sync points [from, to). It keeps the last one: most
// ranks are judged by all of them.
func (g *SyncSamples) orderIn(from, to int) *ranking {
	if o := g.order; o != nil && o.from == from && o.to == to {
		return o
	}
	k := len(g.Names)
	series := make([][]float64, k) // of every rank, that neighbors may be alike in
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

// chance bounds the probability that any of the ranks comes as late as one, sync point after
// sync point, if all are alike: that of such a sum of places, by Chernoff's inequality.
// Sync points close in time are alike, so each counts for as many independent ones as worth says.
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

// worthOf returns how many independent numbers tell as much as those, of which neighbors
// may resemble each other; where all are equal, there is nothing to resemble.
func worthOf(x []float64) float64 {
	if len(x) == 0 || slices.Min(x) == slices.Max(x) {
		return float64(len(x))
	}
	_, _, worth := changepoint.Mean(x)
	return min(worth, float64(len(x)))
}

// chernoff bounds the logarithm of the probability that a sum of independent numbers is as
// large, given the logarithm of the mean of exp(theta sum).
func chernoff(sum float64, logMean func(theta float64) float64) float64 {
	const first, last, factor = 0.25, 1024, 1.25
	least := 0.0
	for theta := first; theta <= last; theta *= factor {
		least = min(least, logMean(theta)-theta*sum)
	}
	return least
}

// logMeanPlace returns the logarithm of the mean of exp(theta v) of the places v = 0 to 1 in
// an order of n: a geometric series.
func logMeanPlace(theta float64, n int) float64 {
	step := theta / float64(n-1)
	return theta + math.Log(-math.Expm1(-step*float64(n))/-math.Expm1(-step)/float64(n))
}

// logMeanExp returns the logarithm of the mean of exp(theta v).
func logMeanExp(theta float64, values []float64) float64 {
	most, sum := slices.Max(values), 0.0
	for _, v := range values {
		sum += math.Exp(theta * (v - most))
	}
	return theta*most + math.Log(sum/float64(len(values)))
}

// Where sync points are too few for blocks of time, an exact test counts who came last. Among
// ranks that are alike, everyone is as likely to be, so that the number of times is binomial;
// P is that of so many or more, times the number of ranks that are tested. It takes every sync point for
// independent, which neighbors are not. So what it shows is likely and never certain, and
// others have to lose far more of their time than where blocks tell.
const (
	// MinCounted is how many sync points can show anything.
	MinCounted = 8
	// minSlow is how many can show it of a rank that is slow for a part of the time, and fewSlow which part of all sync
	// points they are at least, one in so many: a start is no state, nor is a spell.
	minSlow = 2 * MinCounted
	fewSlow = 4
	// fewShare is the part of their time that the others have to lose.
	fewShare = 0.25
)

// LikelyOfFew returns the rank that came last too often for chance, where there are too few
// sync points for the judge, in all or since a rank is slow; nil is none. groups is how many are tested.
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
			run, tests = slow, groups*slow.tried*n // it may begin at any of them
		}
		if s, ok := g.count(rank, run, tests); ok {
			found = append(found, s)
		}
	}
	Sort(found)
	return found[:min(1, len(found))]
}

// count tests how often a rank came last in a run, which is one of so many that are tested.
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

// chanceToBeLast bounds the probability that any rank comes last in so many of n sync points
// or more, if all are alike: at each, one of those that are there does.
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
