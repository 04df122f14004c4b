package rank

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Load is the work of a rank. Counts are request.Unknown, and numbers NaN, if the dump does not contain them.
type Load struct {
	Location place.Location
	// Lead says that the rank stands for all ranks that do the same work.
	Lead     bool
	Requests int64 // requests that it worked for
	// Prompt is the number of prompt tokens that were computed, without cached ones, and Output the number of tokens
	// generated.
	Prompt, Output int64
	// Busy is the share of its capacity that the rank used, see [load.Busy], and Running the mean number of requests
	// that it computed at a time.
	Busy, Running float64
	// Queue is how long a request waited for a batch, memory, or its other half, on average; ns.
	Queue int64
	ends
	// Step is the median duration of a request's decode step, ns.
	Step int64

	// Shares among the lead ranks of a group of peers; NaN for other ranks, and if a group has only one.
	Share, TokenShare, QueueShare float64

	group  int32   // group of peers
	queued float64 // ns: waits of all requests
}

// ends counts how requests ended on a rank, and when they arrived.
type ends struct {
	Aborted, Failed, Retractions int64

	arrivals []trace.Time // sorted
	threads  int          // threads that worked for requests
}

// measureLoads takes the loads from a timeline with a single bucket, and counts what a timeline does not contain.
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
		r.notes = append(r.notes, words.Counted(unknown, "time")+", a rank that works for a request is left out: its role is unknown")
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
		l.Output = request.Unknown // the first token is the decode side's
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

// countEnds counts, for every rank, how requests ended, and their retractions. unrouted is the number of parts on an
// unknown rank, by role.
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

// divideLoads sets the shares of the lead ranks in each group of peers.
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

// peerLeads returns the lead ranks of each group of peers.
func (r *Ranks) peerLeads() [][]*Load {
	groups := make([][]*Load, r.peers.Len())
	for i := range r.Loads {
		if l := &r.Loads[i]; l.Lead {
			groups[l.group] = append(groups[l.group], l)
		}
	}
	return slices.DeleteFunc(groups, func(leads []*Load) bool { return len(leads) == 0 })
}

// ofGroup says in a sentence what the peers of a rank have in common, or returns "" if they are all servers of its
// role.
func (r *Ranks) ofGroup(l *Load) string {
	name := r.peers.Name(l.group)
	if name == "" {
		return ""
	}
	return " of " + name
}

// tokens returns the number of tokens that a rank computed, as far as known.
func (l *Load) tokens() int64 { return max(0, l.Prompt) + max(0, l.Output) }
