package tail

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A SideRank is how a lead rank of the prefill or the decode side was used, by
// all parts of requests, whatever became of them.
type SideRank struct {
	Role     request.Role
	Proc     int // index into Set.Procs
	Requests int
	// Busy is how much of what it can do the rank did from the first request of the side
	// to the last, see [load.Busy].
	Busy float64
	// Waiting is how many requests waited for it at a time, on average over that
	// time; Most how many at worst, first at the instant At.
	Waiting  float64
	Waited   int64 // sum of the waits, ns
	Most     int
	At       trace.Time
	P50, P99 int64 // of a request's waits, ns
}

// A sideLoad collects what a lead rank had to do.
type sideLoad struct {
	role        request.Role
	busy, waits []request.Interval
	perRequest  []int64 // sum of the waits of each, ns
}

// sideRanks measures the lead ranks of both sides, in the order of Set.Procs.
func (t *Tail) sideRanks() []SideRank {
	s := t.set
	loads := make([]sideLoad, len(s.Procs))
	var during [request.Other + 1]request.Interval
	for p := range s.AllParts() {
		part := &s.Parts[p]
		lead := s.Lead(part)
		if part.Role != request.Prefill && part.Role != request.Decode || lead == request.None || part.Request == request.None ||
			!request.Plausible(part.Start, part.End) {
			continue
		}
		if d := &during[part.Role]; d.To == 0 {
			*d = request.Interval{From: part.Start, To: part.End}
		} else {
			d.From, d.To = min(d.From, part.Start), max(d.To, part.End)
		}
		loads[s.Threads[lead].Proc].add(s, part, lead)
	}
	var out []SideRank
	var most [request.Other + 1]int
	for proc := range loads {
		role := loads[proc].role
		most[role] = max(most[role], load.MostAtOnce(loads[proc].busy))
	}
	for proc := range loads {
		if side := &loads[proc]; len(side.perRequest) > 0 {
			out = append(out, side.measure(proc, during[side.role], most[side.role]))
		}
	}
	return out
}

// add adds part p: what it waited for, and what was computed for it.
func (l *sideLoad) add(s *request.Set, p *request.Part, lead int) {
	l.role = p.Role
	waited := int64(0)
	wait := func(from, to trace.Time) {
		if from < to && request.Plausible(from, to) {
			l.waits = memory.Append(l.waits, request.Interval{From: from, To: to})
			waited += int64(to - from)
		}
	}
	stages := s.StagesOf(lead)
	if sent := dispatched(s, p); sent != 0 && len(stages) > 0 && p.Role == request.Prefill {
		wait(sent, s.Row(int(stages[0])).Start)
	}
	for _, i := range stages {
		span := s.Row(int(i))
		switch span.Means {
		case request.Queueing, request.DecodeQueueing, request.ReceivePreparing, request.ReceiveConnecting:
			wait(span.Start, span.End)
		case request.Prefilling, request.PrefillingChunk, request.Answering, request.Stepping:
			if span.Start < span.End && request.Plausible(span.Start, span.End) {
				l.busy = memory.Append(l.busy, request.Interval{From: span.Start, To: span.End})
			}
		}
	}
	l.perRequest = memory.Append(l.perRequest, waited)
}

// dispatched returns when the first thread of a part was done that is no
// scheduler's; 0 if there is none.
func dispatched(s *request.Set, p *request.Part) trace.Time {
	var sent trace.Time
	for _, t := range s.ThreadsOf(p) {
		stages := s.StagesOf(t)
		if len(stages) == 0 || s.OnScheduler(t) {
			continue
		}
		if end := s.Row(int(stages[len(stages)-1])).End; sent == 0 || end < sent {
			sent = end
		}
	}
	return sent
}

// measure sums up the load of a rank over a time, given how many requests computed at once
// at most on a rank of its side.
func (l *sideLoad) measure(proc int, during request.Interval, most int) SideRank {
	r := SideRank{Role: l.role, Proc: proc, Requests: len(l.perRequest)}
	whole := float64(max(1, during.To-during.From))
	running := int64(0)
	for _, iv := range l.busy {
		running += int64(min(iv.To, during.To) - max(iv.From, during.From))
	}
	covered := request.NewCoverage(l.busy)
	r.Busy = load.Busy(l.role, float64(running)/whole, float64(covered.Overlap(during.From, during.To))/whole, most)
	edges := memory.Make[cause.LayerEdge](2 * len(l.waits))[:0]
	for _, iv := range l.waits {
		edges = append(edges, cause.LayerEdge{At: iv.From, Step: 1}, cause.LayerEdge{At: iv.To, Step: -1})
	}
	slices.SortFunc(edges, func(x, y cause.LayerEdge) int { return cmp.Or(cmp.Compare(x.At, y.At), cmp.Compare(x.Step, y.Step)) })
	now := 0
	for _, e := range edges {
		if now += int(e.Step); now > r.Most {
			r.Most, r.At = now, e.At
		}
	}
	w := distribution.Summarize(l.perRequest)
	r.Waiting, r.Waited, r.P50, r.P99 = float64(w.Total)/whole, w.Total, w.P50, w.P99
	return r
}
