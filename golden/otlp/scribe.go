package otlp

import (
	"fmt"
	"math/rand/v2"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// scribe writes the spans of one half as SGLang's tracing does.
type scribe struct {
	x      *writer
	rng    *rand.Rand
	req    *simulator.Request
	half   *simulator.Half
	trace  TraceID
	root   uint64
	parent uint64 // the gateway's span, or 0
	last   Ref    // last slice of the sender, which the next thread links to
}

// request writes the spans of a request. Its ids depend only on the seed and its number.
func (x *writer) request(number int, q *simulator.Request) {
	rng := rand.New(rand.NewPCG(x.run.Config.Seed, simulator.StreamIDs|uint64(number+1)<<8))
	gateway := x.run.Config.Mode == simulator.PDGateway
	var trace TraceID
	var parent uint64
	if gateway {
		trace, parent = NewTraceID(rng, true), NewSpanID(rng)
		x.gateway(rng, q, trace, parent)
	}
	for _, h := range q.Halves {
		if !gateway {
			trace = NewTraceID(rng, false)
		}
		s := &scribe{x: x, rng: rng, req: q, half: h, trace: trace, root: NewSpanID(rng), parent: parent}
		for _, t := range x.run.Threads(h) {
			s.thread(&t)
		}
		if h.End != 0 {
			s.endRoot()
		}
	}
}

// thread writes the slices of a thread, and then the thread itself. Spans that hang never end, and are not written.
func (s *scribe) thread(t *simulator.Thread) {
	run := s.x.run
	p := &run.Processes[t.Process]
	clock := &run.Hosts[p.Host].Clock
	who := Process{
		Label: p.Label, HostID: run.Hosts[p.Host].ID, TP: p.Rank.TP, PP: p.Rank.PP, DP: p.Rank.DP, PID: p.PID,
	}
	id := NewSpanID(s.rng)

	remote := t.Process != run.Instances[s.half.Instance].Tokenizer
	s.last.Flags = FlagLocal
	if remote {
		s.last.Flags = FlagRemote
	}
	spans := s.slices(t, clock, id)
	pending := t.Events
	for _, i := range t.InOrderOfEnd() {
		if !t.Stages[i].Open {
			pending = s.attach(t, pending, &spans[i], clock)
		} else if t.End == 0 {
			continue
		}
		s.x.Exporter.End(t.Process, t.Stages[i].End, &spans[i])
	}
	if t.End == 0 {
		return
	}

	out := Span{Trace: s.trace, ID: id, Parent: s.root, Flags: FlagLocal, Name: who.ThreadName()}
	out.Start, out.End = clock.At(t.Start), clock.At(t.End)
	if remote {
		out.Flags = FlagRemote
	} else {
		out.Start = Grid(out.Start)
	}
	if p.Rank == simulator.NoRank { // closed together with its last slice
		out.End = Grid(out.End)
	}
	out.Attributes = who.ThreadAttributes()
	if reason := s.reason(p); reason != "" && p.Rank != simulator.NoRank {
		out.Attributes.Text("reason", reason)
		out.Failed = true
	}
	for _, e := range pending {
		out.Events = append(out.Events, s.event(t, e, Grid(clock.At(e.At))))
	}
	s.x.Exporter.End(t.Process, t.End, &out)
}

// slices makes the spans of the stages of a thread. Outer ones are linked in a chain that starts at the sender's last
// slice.
func (s *scribe) slices(t *simulator.Thread, clock *simulator.Clock, thread uint64) []Span {
	spans := make([]Span, len(t.Stages))
	previous := s.last
	for i := range t.Stages {
		st := &t.Stages[i]
		out := &spans[i]
		*out = Span{
			Trace: s.trace, ID: NewSpanID(s.rng), Parent: thread, Flags: FlagLocal,
			Name: st.Name(), Start: Grid(clock.At(st.Start)), End: Grid(clock.At(st.End)),
		}
		if st.Open {
			out.End = clock.At(st.End) // closed by the thread, on another clock
		}
		if key := st.NumberKey(); key != "" {
			out.Attributes.Integer(key, int64(st.Number))
		}
		if st.Parent >= 0 {
			out.Parent = spans[st.Parent].ID
			continue
		}
		if previous.ID != 0 {
			link := previous
			out.Link = &link
		}
		previous = Ref{ID: out.ID, Flags: FlagLocal}
	}
	if s.x.run.Processes[t.Process].Rank == simulator.NoRank {
		s.last = previous
	}
	return spans
}

// attach gives the pending events inside a slice that ends to that slice, and returns the others, reusing pending. An event
// goes to the first slice around it to end; a slice that is closed by its thread gets none.
func (s *scribe) attach(t *simulator.Thread, pending []simulator.Event, to *Span, clock *simulator.Clock) []simulator.Event {
	outside := pending[:0]
	for _, e := range pending {
		if at := Grid(clock.At(e.At)); to.Start <= at && at < to.End {
			to.Events = append(to.Events, s.event(t, e, at))
		} else {
			outside = append(outside, e)
		}
	}
	return outside
}

// event makes an event of a thread, at a time on the clock of its host.
func (s *scribe) event(t *simulator.Thread, e simulator.Event, at int64) Event {
	out := Event{At: at, Name: "retract"}
	if e.Step >= 0 {
		run := s.x.run
		st := &run.Steps[e.Step]
		rank := run.Processes[t.Process].Rank
		out.Name = "schedule"
		out.Attributes.Text("bid", batchID(run, e.Step, rank.PP*run.Instances[st.Instance].Size.TP+rank.TP))
		out.Attributes.Integer("batch_size", int64(st.Requests))
		out.Attributes.Text("forward_mode", string(st.Mode))
	}
	return out
}

// batchID returns the id that a rank gives to a step. Every rank makes its own.
func batchID(r *simulator.Run, step, rank int) string {
	return fmt.Sprintf("%08x", r.RankRand(step, rank).Uint32())
}

// endRoot writes the root. It has gen_ai attributes only if the tokenizer learned how the request ended.
func (s *scribe) endRoot() {
	run, q, h := s.x.run, s.req, s.half
	in := &run.Instances[h.Instance]
	clock := &run.Hosts[in.Host].Clock
	prefix := ""
	if in.Role != simulator.RoleUnified {
		prefix = string(in.Role)
	}
	out := Span{
		Trace: s.trace, ID: s.root, Parent: s.parent, Flags: FlagLocal,
		Name:  fmt.Sprintf("%s Req %.8s", prefix, h.RID),
		Start: Grid(clock.At(h.Received)), End: Grid(clock.At(h.End)),
	}
	if s.parent != 0 {
		out.Flags = FlagRemote
	}
	about := Root{RID: h.RID, Room: q.Room, Tenant: q.Tenant}
	if h.Finish != "" {
		about.Answer = &Answer{
			ID: h.ID, Completion: h.Tokens, Prompt: q.Prompt, Cached: q.Cached, Max: q.MaxTokens, Temperature: q.Temperature,
			Model: run.Config.Model, Finish: h.Finish,
			FirstToken: clock.Length(h.Received, h.FirstToken), Prefilling: clock.Length(h.Dispatched, h.FirstToken),
		}
	}
	out.Attributes = about.Attributes()
	s.x.Exporter.End(in.Tokenizer, h.End, &out)
}

// reason returns the error text with which a rank closed its thread.
func (s *scribe) reason(p *simulator.Process) string {
	switch s.half.Ending {
	case simulator.EndedQueueFull:
		return "The request queue is full."
	case simulator.EndedDropped:
		return "have unclosed span, auto closed"
	case simulator.EndedTransferFailed:
		run := s.x.run
		return fmt.Sprintf("Prefill transfer failed for request rank=%d req.rid='%s' req.bootstrap_room=%d"+
			" with exception KVTransferError(bootstrap_room=%[3]d): Failed to send kv chunk of %[3]d to %[4]s:41733",
			p.Rank.TP, s.half.ID, s.req.Room, run.Hosts[run.Serving().Host].Address)
	}
	return ""
}
