package rank

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Load is what a rank had to do. Counts are request.Unknown and numbers NaN
// where the dump does not tell.
type Load struct {
	Location place.Location
	// Lead tells that the rank stands for those that do the same work beside it.
	Lead     bool
	Requests int64 // that it worked for
	// Prompt are the tokens of prompts that were computed, those in the cache not
	// among them; Output the tokens that came out.
	Prompt, Output int64
	// Busy is how much of what it can do it did, see [load.Busy], and Running for how many
	// requests it computed at once, on average.
	Busy, Running float64
	// Queue is for how long a request waited for a batch, memory, or its other half,
	// on average; ns.
	Queue int64
	ends
	// Step is how long a decode step of a request takes: median, ns.
	Step int64

	// Shares of what all lead ranks of its group of peers have; NaN for others, and where
	// there is one.
	Share, TokenShare, QueueShare float64

	group  int32   // of its peers
	queued float64 // ns, of all its requests together
}

// ends are how requests came to a rank, and how they ended there.
type ends struct {
	Aborted, Failed, Retractions int64

	arrivals []trace.Time // in order
	threads  int          // that worked for them
}

// measureLoads takes from a timeline of one bucket what goes on in it, and counts
// what a timeline does not.
func (r *Ranks) measureLoads(of *place.RankSet, all load.Bulk) {
	var whole *load.Timeline
	var ends []ends
	parallel.All(
		func() { whole = load.Whole(of, all) },
		func() { ends, r.unrouted = countEnds(of, all) })
	index := map[place.Location]*Load{}
	r.Loads = make([]Load, 0, len(whole.Series))
	for i := range whole.Series {
		if s := &whole.Series[i]; s.Location.Scope == place.OneRank {
			r.Loads = append(r.Loads, newRankLoad(whole, s))
			l := &r.Loads[len(r.Loads)-1]
			l.group = r.peers.Group(of.At[s.Location])
			index[s.Location] = l
		}
	}
	r.notes = whole.Notes()
	unknown := 0
	for i, place := range of.Places {
		if l := index[place]; l != nil {
			l.ends = ends[i]
		} else {
			unknown += ends[i].threads
		}
	}
	if unknown > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%d times, a rank that works for a request is left out: its role is unknown", unknown))
	}
	r.divideLoads()
}

func newRankLoad(t *load.Timeline, s *load.Series) Load {
	p := &s.Points[0]
	l := Load{
		Location: s.Location, Lead: s.Lead, Requests: p.Arrivals, Prompt: p.Prefill, Output: p.Output,
		Busy: p.Busy, Running: p.Running, Queue: request.Unknown, Step: request.Unknown, Share: math.NaN(), TokenShare: math.NaN(), QueueShare: math.NaN(),
	}
	if s.Location.Role == request.Prefill {
		l.Output = request.Unknown // the first token is that of the decode side
	}
	if length := t.To - t.From; !math.IsNaN(p.Queued) && p.Arrivals > 0 {
		l.queued = p.Queued * float64(length)
		l.Queue = int64(math.Round(l.queued / float64(p.Arrivals)))
	}
	for k, means := range request.Watched {
		if of := s.Stages[k]; means == request.Stepping && of != nil && of[0].N > 0 {
			l.Step = of[0].P50
		}
	}
	return l
}

// countEnds counts on every rank how requests ended, and their retractions; and how many parts
// of each role nobody knows a rank of.
func countEnds(of *place.RankSet, all load.Bulk) (list []ends, unrouted [request.Other + 1]int) {
	s := of.Set
	list = make([]ends, len(of.Places))
	for i := range s.AllRequests() {
		req := &s.Requests[i]
		if !all.Holds(req) {
			continue
		}
		for _, p := range s.PartsOf(req) {
			part := &s.Parts[p]
			if !part.Serves() {
				continue
			}
			if of.Route(part) == request.None {
				unrouted[part.Role]++
			}
			if thread, rank := of.Lead(part); thread == request.None && rank != request.None {
				list[rank].count(part, req.Status)
			}
			for _, t := range s.ThreadsOf(part) {
				if rank := of.Of[s.Threads[t].Proc]; rank != request.None {
					list[rank].count(part, req.Status)
					list[rank].Retractions += s.Retractions(t)
					list[rank].threads++
				}
			}
		}
	}
	return list, unrouted
}

func (e *ends) count(part *request.Part, status request.Status) {
	e.arrivals = memory.Append(e.arrivals, part.Start)
	switch status {
	case request.Aborted:
		e.Aborted++
	case request.Failed:
		e.Failed++
	}
}

// divideLoads tells the lead ranks of every group of peers their shares.
func (r *Ranks) divideLoads() {
	for _, leads := range r.peerLeads() {
		if len(leads) < 2 {
			continue
		}
		var requests, tokens, queued float64
		for _, l := range leads {
			requests += float64(l.Requests)
			tokens += float64(l.tokens())
			queued += l.queued
		}
		for _, l := range leads {
			l.Share = distribution.Ratio(float64(l.Requests), requests)
			l.TokenShare = distribution.Ratio(float64(l.tokens()), tokens)
			l.QueueShare = distribution.Ratio(l.queued, queued)
		}
	}
}

// peerLeads returns the lead ranks, those of one group of peers together.
func (r *Ranks) peerLeads() [][]*Load {
	groups := make([][]*Load, r.peers.Len())
	for i := range r.Loads {
		if l := &r.Loads[i]; l.Lead {
			groups[l.group] = append(groups[l.group], l)
		}
	}
	return slices.DeleteFunc(groups, func(leads []*Load) bool { return len(leads) == 0 })
}

// ofGroup says of what kind the peers of a rank are, in a sentence; "" if all servers of its
// role are.
func (r *Ranks) ofGroup(l *Load) string {
	name := r.peers.Name(l.group)
	if name == "" {
		return ""
	}
	return " of " + name
}

// tokens returns those that a rank computed, as far as that is known.
func (l *Load) tokens() int64 { return max(0, l.Prompt) + max(0, l.Output) }
