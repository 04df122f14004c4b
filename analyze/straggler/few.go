package straggler

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Where sync points are too few for blocks of time, an exact test counts who came last. Among
// ranks that are alike, everyone is as likely to be, so that the number of times is binomial;
// P is that of so many or more, times the number of ranks that are tested. It takes every sync point for
// independent, which neighbors are not. So what it shows is likely and never certain, and
// others have to lose far more of their time than where blocks tell.
const (
	// LeastCounted is how many sync points can show anything.
	LeastCounted = 8
	// fewShare is the part of their time that the others have to lose.
	fewShare = 0.25
)

// LikelyOfFew returns the rank that came last too often for chance, where there are too few
// sync points for the judge; nil is none. groups is how many are tested.
func (g *SyncSamples) LikelyOfFew(groups int) []Straggler {
	n := len(g.SyncPoints)
	if n < LeastCounted || n >= FewestSyncPoints {
		return nil
	}
	g.settle()
	var found []Straggler
	for rank := range g.Names {
		if s, ok := g.count(rank, groups); ok {
			found = append(found, s)
		}
	}
	Sort(found)
	return found[:min(1, len(found))]
}

// count tests how often a rank came last.
func (g *SyncSamples) count(rank, groups int) (Straggler, bool) {
	whole := slowRun{to: len(g.SyncPoints)}
	s := Straggler{
		Rank: rank, Name: g.Names[rank], Group: g.Group, What: g.What, Verb: g.Verb,
		Lateness: g.lateness(rank, whole.from, whole.to), Part: 1, Counted: true,
		DelayLow: math.NaN(), DelayHigh: math.NaN(),
	}
	s.took = g.meanTook(whole.from, whole.to)
	s.Delay = float64(s.Mean) / max(1, s.took)
	s.P = min(1, float64(groups)*g.chanceToBeLast(s.Last, s.SyncPoints))
	return s, s.P <= LikelyLevel && s.LastMean >= g.Floor && s.LostShare >= fewShare && g.costs(&s, whole)
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
	return float64(len(g.Names)) * atLeast(last, n, 1/float64(here))
}

// atLeast returns the probability that k or more of n events of probability p happen.
func atLeast(k, n int, p float64) float64 {
	return max(0, distuv.Binomial{N: float64(n), P: p}.Survival(float64(k-1)))
}
