package diff

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
)

// A Load is something about two captures that explains why they are slow or fast, or says it of
// the whole: how many requests there are, and how long; how many tokens steps compute.
type Load struct {
	Name          string
	Before, After float64 // NaN is unknown
	Change        Change
	follows       bool // from what is asked of servers, and what they take for it
}

// A diffLoad is one of them in one capture.
type diffLoad struct {
	name   string
	pieces []significance.Piece
}

// measureLoads adds the requests of a capture. Those that overlap end alike; but when
// they come and how long they are does not depend on how long they take, so that these
// pieces may be short.
func (d *Collected) measureLoads(list []request.Request, overlapping *diffPieces, objectives []requests.Objective) {
	if len(list) == 0 {
		return
	}
	short := d.pieces(cutRequests(list, maxPieces))
	n := max(short.n(), overlapping.n())
	for i := range list {
		a := metric.Arrival{Request: &list[i], Since: -1, SLO: objectives != nil}
		if i > 0 {
			a.Since = int64(list[i].Start - list[i-1].Start)
		}
		if a.SLO {
			state := requests.Judge(objectives, a.Request)
			a.Good, a.Judged = state == requests.Met, state != requests.Undecided
		}
		for _, m := range metric.Loads {
			sum, of, ok := m.Ratio(&a)
			switch {
			case ok && m.During:
				d.addLoad(m, overlapping.at(a.Request.Start), n, sum, of)
			case ok:
				d.addLoad(m, short.at(a.Request.Start), n, sum, of)
			}
		}
	}
}

// addLoad adds to a piece of a metric.
func (d *Collected) addLoad(m *metric.Metric, piece, pieces int, sum, of float64) {
	l := order.Memo(d.loads, m, func() *diffLoad { return &diffLoad{m.Title, make([]significance.Piece, pieces)} })
	l.pieces[piece].Sum += sum
	l.pieces[piece].Of += of
}

// compareLoads compares those of some metrics that both captures know.
func compareLoads(before, after *Collected, of []*metric.Metric) []Load {
	var out []Load
	for _, m := range of {
		b, a := before.loads[m], after.loads[m]
		if b == nil || a == nil {
			continue
		}
		if l := compareLoad(b, a, before.captures > 0); l.Before > 0 || l.After > 0 {
			out = append(out, l)
		}
	}
	return out
}

// addTokens adds how many tokens per second a rank computes in steps of each kind whose names
// tell, of the time that its devices took for them.
func (d *Collected) addTokens(served []gpu.RankSteps, pieces *diffPieces) {
	for i := range served {
		for k := range served[i].Steps {
			s := &served[i].Steps[k]
			tokens, ok := s.StepName.Tokens()
			if !ok || !s.Projected {
				continue
			}
			d.addLoad(metric.Speeds[s.StepName.Kind], pieces.at(s.Start), pieces.n(), float64(tokens), float64(distribution.Between(s.First, s.Last))/1e9)
		}
	}
}

// compareLoad compares one of them, whose pieces may be a capture each.
func compareLoad(before, after *diffLoad, captures bool) Load {
	b, a := before.sample(), after.sample()
	l := Load{Name: before.name, Before: b.Quantity.Value, After: a.Quantity.Value}
	l.Change.Change = howToCompare(before.pieces, after.pieces, captures).Compare(b, a)
	if (l.Before == 0) != (l.After == 0) {
		l.Change.Change.P = appeared(before.pieces, after.pieces)
	}
	return l
}

func (l *diffLoad) sample() significance.Sample {
	return significance.Sample{Quantity: significance.Apart.Mean(l.pieces), Pieces: l.pieces}
}

// howToCompare chooses the test for quantities that are made of such pieces.
func howToCompare(before, after []significance.Piece, captures bool) significance.How {
	switch {
	case captures:
		return significance.ByCapture
	case min(len(before), len(after)) < significance.Few:
		return significance.ByRanks
	}
	return significance.ByScatter
}

// compareShares compares which part of the requests each rank worked on. Ranks that always
// work together have one row, one that works on all requests has none, and deployments of
// different layouts have no ranks in common.
func compareShares(before, after *Collected) []Load {
	if slices.ContainsFunc(compareSetups(before.setup, after.setup), func(s Setting) bool { return s.Name == layoutSetting }) {
		return nil
	}
	var out []Load
	seen := map[string]bool{}
	for _, name := range before.ranksOfRequests(after) {
		b, a := before.share(name), after.share(name)
		l := compareLoad(&b, &a, before.captures > 0)
		key := fmt.Sprint(b.pieces, a.pieces)
		if seen[key] || l.Before == 1 && l.After == 1 {
			continue
		}
		seen[key] = true
		out = append(out, l)
	}
	return out
}

// share returns the part of all requests that a rank worked on.
func (d *Collected) share(rank string) diffLoad {
	l := diffLoad{name: "share of requests on " + rank, pieces: make([]significance.Piece, len(d.requests[""]))}
	for i, n := range d.requests[""] {
		l.pieces[i].Of = n
	}
	for i, n := range d.requests[rank] {
		l.pieces[i].Sum = n
	}
	return l
}

// ranksOfRequests returns the names of the ranks of either capture, in order.
func (d *Collected) ranksOfRequests(o *Collected) []string {
	if min(d.side.Requests, o.side.Requests) <= 0 {
		return nil
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(d.requests)), maps.Keys(o.requests))
	return slices.DeleteFunc(order.Distinct(names), func(name string) bool { return name == "" })
}

// appeared tells how likely it is that only one of two captures has something, if both are
// alike; NaN if they are too short to tell.
func appeared(before, after []significance.Piece) float64 {
	count := func(pieces []significance.Piece) (seen, all int) {
		for _, p := range pieces {
			if p.Of > 0 {
				all++
				if p.Sum > 0 {
					seen++
				}
			}
		}
		return seen, all
	}
	seenBefore, b := count(before)
	seenAfter, a := count(after)
	switch {
	case min(b, a) < significance.Enough:
		return math.NaN()
	case seenBefore == 0:
		return significance.Appeared(seenAfter, a, b)
	}
	return significance.Appeared(seenBefore, b, a)
}
