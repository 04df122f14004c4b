package diff

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/diff/setup"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
)

// measureLoads adds the load that requests make. Requests that overlap end alike, and need long pieces; but when they
// arrive, and how long they are, doesn't depend on how long they take, so pieces for these loads may be short.
func (d *Collected) measureLoads(list []request.Request, overlapping *compare.Pieces, objectives []requests.Objective) {
	if len(list) == 0 {
		return
	}
	short := d.captures.Pieces(compare.CutRequests(list, compare.MaxPieces))
	n := max(short.N(), overlapping.N())
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
				d.addLoad(m, overlapping.At(a.Request.Start), n, sum, of)
			case ok:
				d.addLoad(m, short.At(a.Request.Start), n, sum, of)
			}
		}
	}
}

// addLoad adds to one piece of a load.
func (d *Collected) addLoad(m *metric.Metric, piece, pieces int, sum, of float64) {
	l := order.Memo(d.loads, m, func() *compare.Amount {
		return &compare.Amount{Name: m.Title, Pieces: make([]significance.Piece, pieces)}
	})
	l.Pieces[piece].Sum += sum
	l.Pieces[piece].Of += of
}

// compareLoads compares the metrics that both captures have.
func compareLoads(before, after *Collected, of []*metric.Metric) []compare.Load {
	var out []compare.Load
	for _, m := range of {
		b, a := before.loads[m], after.loads[m]
		if b == nil || a == nil {
			continue
		}
		if l := compare.Amounts(b, a, before.captures.Whole()); l.Before > 0 || l.After > 0 {
			out = append(out, l)
		}
	}
	return out
}

// addTokens adds the tokens per second that a rank computes in steps of each kind, if their
// names give the number of tokens, over the time that its devices took for them.
func (d *Collected) addTokens(served []gpu.RankSteps, pieces *compare.Pieces) {
	for i := range served {
		for k := range served[i].Steps {
			s := &served[i].Steps[k]
			tokens, ok := s.StepName.Tokens()
			if !ok || !s.Projected {
				continue
			}
			d.addLoad(metric.Speeds[s.StepName.Kind], pieces.At(s.Start), pieces.N(), float64(tokens), float64(distribution.Between(s.First, s.Last))/1e9)
		}
	}
}

// compareShares compares the share of requests that each rank worked on. Ranks that always work together get one row, a
// rank that works on all requests gets none, and deployments with different layouts have no ranks in common.
func compareShares(before, after *Collected) []compare.Load {
	if slices.ContainsFunc(setup.Compare(before.setup, after.setup), func(s setup.Setting) bool { return s.Name == setup.Layout }) {
		return nil
	}
	var out []compare.Load
	seen := map[string]bool{}
	for _, name := range before.ranksOfRequests(after) {
		b, a := before.share(name), after.share(name)
		l := compare.Amounts(&b, &a, before.captures.Whole())
		key := fmt.Sprint(b.Pieces, a.Pieces)
		if seen[key] || l.Before == 1 && l.After == 1 {
			continue
		}
		seen[key] = true
		out = append(out, l)
	}
	return out
}

// share returns the share of all requests that a rank worked on.
func (d *Collected) share(rank string) compare.Amount {
	l := compare.Amount{Name: "share of requests on " + rank, Pieces: make([]significance.Piece, len(d.requests[""]))}
	for i, n := range d.requests[""] {
		l.Pieces[i].Of = n
	}
	for i, n := range d.requests[rank] {
		l.Pieces[i].Sum = n
	}
	return l
}

// ranksOfRequests returns the sorted names of the ranks of both captures.
func (d *Collected) ranksOfRequests(o *Collected) []string {
	if min(d.side.Requests, o.side.Requests) <= 0 {
		return nil
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(d.requests)), maps.Keys(o.requests))
	return slices.DeleteFunc(order.Distinct(names), func(name string) bool { return !d.serving[name] && !o.serving[name] })
}
