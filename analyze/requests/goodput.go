package requests

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
)

// A Count is the number of requests that meet an objective or miss it.
type Count struct{ Met, Missed, Undecided int64 }

// Add counts a request.
func (c *Count) Add(s State) {
	switch s {
	case Met:
		c.Met++
	case Missed:
		c.Missed++
	default:
		c.Undecided++
	}
}

// Judged returns the number of requests that are not undecided.
func (c *Count) Judged() int64 { return c.Met + c.Missed }

// Share returns the share of judged requests that meet the objective; NaN if there are none.
func (c *Count) Share() float64 { return distribution.Ratio(float64(c.Met), float64(c.Judged())) }

// A Goodput is the number of requests that meet all objectives.
type Goodput struct {
	Objectives []Objective
	All        Count
	Each       []Count // by objective
	Ranks      []Rank
	Seconds    float64 // from the start of the first request to the end of the last
	Causes     []Cause // see [Goodput.Blame]; sorted by number of requests, the most first

	set    *request.Set
	states []State // by request
}

// A Rank is a leading rank, with the outcomes of the requests that it worked on.
type Rank struct {
	Location place.Location
	Count
}

// MeasureGoodput judges all requests.
func MeasureGoodput(s *request.Set, objectives []Objective) *Goodput {
	bulk := load.BulkOf(s)
	g := &Goodput{Objectives: objectives, Each: make([]Count, len(objectives)), Seconds: float64(bulk.To-bulk.From) / 1e9,
		set: s, states: make([]State, len(s.Requests))}
	ranks := place.NewRankSet(s)
	counts := make([]Count, len(ranks.Places))
	for i := range s.AllRequests() {
		r := &s.Requests[i]
		g.states[i] = Judge(objectives, r)
		g.All.Add(g.states[i])
		for k := range objectives {
			g.Each[k].Add(objectives[k].Of(r))
		}
		for _, p := range s.PartsOf(r) {
			if part := &s.Parts[p]; part.Serves() {
				if rank := ranks.Route(part); rank != request.None {
					counts[rank].Add(g.states[i])
				}
			}
		}
	}
	for i, at := range ranks.Places {
		if ranks.Leads[i] {
			g.Ranks = append(g.Ranks, Rank{at, counts[i]})
		}
	}
	return g
}

// State returns the outcome of a request, by its index in the set.
func (g *Goodput) State(request int) State { return g.states[request] }

// PerSecond returns the number of requests per second that meet all objectives; NaN if the time is unknown.
func (g *Goodput) PerSecond() float64 { return g.perSecond(&g.All) }

func (g *Goodput) perSecond(c *Count) float64 {
	return distribution.Ratio(float64(c.Met), g.Seconds)
}

// Mark adds to each bucket of a timeline of the same requests how many of those that arrived in it meet all
// objectives.
func (g *Goodput) Mark(t *load.Timeline) {
	if t.N() == 0 {
		return
	}
	counts := make([]load.GoodCount, t.N())
	for i := range g.set.AllRequests() {
		if r := &g.set.Requests[i]; r.Start >= t.From && r.End <= t.To {
			switch at := t.At(r.Start); g.states[i] {
			case Met:
				counts[at].Met++
				counts[at].Judged++
			case Missed:
				counts[at].Judged++
			}
		}
	}
	t.Series[0].Good = counts
}
