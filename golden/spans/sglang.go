package spans

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// scribe writes the spans of one half as SGLang's tracing does.
type scribe struct {
	x      *exporter
	rng    *rand.Rand
	req    *simulator.Request
	half   *simulator.Half
	trace  traceID
	root   uint64
	parent uint64  // the gateway's span, or 0
	last   spanRef // the last slice of the sender, which the next thread links to
}

// request puts down the spans of a request. Its ids depend on nothing but the
// seed and its number.
func (x *exporter) request(number int, q *simulator.Request) {
	rng := rand.New(rand.NewPCG(x.run.Config.Seed, simulator.StreamIDs|uint64(number+1)<<8))
	gateway := x.run.Config.Mode == simulator.PDGateway
	var trace traceID
	var parent uint64
	if gateway {
		trace, parent = newTraceID(rng, true), newSpanID(rng)
		x.gateway(rng, q, trace, parent)
	}
	for _, h := range q.Halves {
		if !gateway {
			trace = newTraceID(rng, false)
		}
		s := &scribe{x: x, rng: rng, req: q, half: h, trace: trace, root: newSpanID(rng), parent: parent}
		for _, t := range x.run.Threads(h) {
			s.thread(&t)
		}
		if h.End != 0 {
			s.endRoot()
		}
	}
}

// thread writes the slices of a thread, then the thread itself. What hangs never ends, and
// is not written.
func (s *scribe) thread(t *simulator.Thread) {
	run := s.x.run
	p := &run.Processes[t.Process]
	clock := &run.Hosts[p.Host].Clock
	id := newSpanID(s.rng)

	remote := t.Process != run.Instances[s.half.Instance].Tokenizer
	s.last.flags = flagLocal
	if remote {
		s.last.flags = flagRemote
	}
	spans := s.slices(t, clock, id)
	pending := t.Events
	for _, i := range t.InOrderOfEnd() {
		if !t.Stages[i].Open {
			pending = s.attach(t, pending, &spans[i], clock)
		} else if t.End == 0 {
			continue
		}
		s.x.end(t.Process, t.Stages[i].End, &spans[i])
	}
	if t.End == 0 {
		return
	}

	out := span{trace: s.trace, id: id, parent: s.root, flags: flagLocal, name: threadName(run, p)}
	out.start, out.end = clock.At(t.Start), clock.At(t.End)
	if remote {
		out.flags = flagRemote
	} else {
		out.start = grid(out.start)
	}
	if p.Rank == simulator.NoRank { // closed together with its last slice
		out.end = grid(out.end)
	}
	out.attributes = threadAttributes(run, p)
	if reason := s.reason(p); reason != "" && p.Rank != simulator.NoRank {
		out.attributes.text("reason", reason)
		out.failed = true
	}
	for _, e := range pending {
		out.events = append(out.events, s.event(t, e, grid(clock.At(e.At))))
	}
	s.x.end(t.Process, t.End, &out)
}

// slices makes the spans of the stages of a thread. Outer ones are linked in a
// chain that starts at the sender's last slice.
func (s *scribe) slices(t *simulator.Thread, clock *simulator.Clock, thread uint64) []span {
	spans := make([]span, len(t.Stages))
	previous := s.last
	for i := range t.Stages {
		st := &t.Stages[i]
		out := &spans[i]
		*out = span{
			trace: s.trace, id: newSpanID(s.rng), parent: thread, flags: flagLocal,
			name: st.Name(), start: grid(clock.At(st.Start)), end: grid(clock.At(st.End)),
		}
		if st.Open {
			out.end = clock.At(st.End) // closed by the thread, by another clock
		}
		if key := st.NumberKey(); key != "" {
			out.attributes.integer(key, int64(st.Number))
		}
		if st.Parent >= 0 {
			out.parent = spans[st.Parent].id
			continue
		}
		if previous.id != 0 {
			link := previous
			out.link = &link
		}
		previous = spanRef{out.id, flagLocal}
	}
	if s.x.run.Processes[t.Process].Rank == simulator.NoRank {
		s.last = previous
	}
	return spans
}

// attach gives a slice that ends the pending events inside it, and returns the
// others, in the place of all. An event goes to the first slice around it to end; a slice
// that is closed by its thread gets none.
func (s *scribe) attach(t *simulator.Thread, pending []simulator.Event, to *span, clock *simulator.Clock) []simulator.Event {
	outside := pending[:0]
	for _, e := range pending {
		if at := grid(clock.At(e.At)); to.start <= at && at < to.end {
			to.events = append(to.events, s.event(t, e, at))
		} else {
			outside = append(outside, e)
		}
	}
	return outside
}

// event makes an event of a thread, at a time on the clock of its host.
func (s *scribe) event(t *simulator.Thread, e simulator.Event, at int64) spanEvent {
	out := spanEvent{at: at, name: "retract"}
	if e.Step >= 0 {
		run := s.x.run
		st := &run.Steps[e.Step]
		rank := run.Processes[t.Process].Rank
		out.name = "schedule"
		out.attributes.text("bid", batchID(run, e.Step, rank.PP*run.Instances[st.Instance].Size.TP+rank.TP))
		out.attributes.integer("batch_size", int64(st.Requests))
		out.attributes.text("forward_mode", string(st.Mode))
	}
	return out
}

// batchID returns the id that a rank gives to a step. Every rank makes its own.
func batchID(r *simulator.Run, step, rank int) string {
	return fmt.Sprintf("%08x", r.RankRand(step, rank).Uint32())
}

// endRoot writes the root. It carries gen_ai attributes only if the tokenizer
// was told how the request ended.
func (s *scribe) endRoot() {
	run, q, h := s.x.run, s.req, s.half
	in := &run.Instances[h.Instance]
	clock := &run.Hosts[in.Host].Clock
	prefix := ""
	if in.Role != simulator.RoleUnified {
		prefix = string(in.Role)
	}
	out := span{
		trace: s.trace, id: s.root, parent: s.parent, flags: flagLocal,
		name:  fmt.Sprintf("%s Req %.8s", prefix, h.RID),
		start: grid(clock.At(h.Received)), end: grid(clock.At(h.End)),
	}
	if s.parent != 0 {
		out.flags = flagRemote
	}
	a := &out.attributes
	a.text("rid", h.RID)
	a.text("module", "sglang::request")
	if q.Room != 0 {
		a.text("bootstrap_room", fmt.Sprintf("0x%x", q.Room))
	}
	if q.Tenant != "" {
		a.text("http.request.header.x-tenant-id", q.Tenant)
	}
	if h.Finish != "" {
		a.integer("gen_ai.usage.completion_tokens", int64(h.Tokens))
		a.integer("gen_ai.usage.prompt_tokens", int64(q.Prompt))
		a.integer("gen_ai.usage.cached_tokens", int64(q.Cached))
		a.text("gen_ai.request.id", h.ID)
		a.integer("gen_ai.request.max_tokens", int64(q.MaxTokens))
		a.double("gen_ai.request.top_p", 0.95)
		if q.Temperature != 0 {
			a.double("gen_ai.request.temperature", q.Temperature)
		}
		a.text("gen_ai.response.model", run.Config.Model)
		a.text("gen_ai.response.finish_reasons", `["`+h.Finish+`"]`)
		a.double("gen_ai.latency.time_to_first_token", seconds(clock.Length(h.Received, h.FirstToken)))
		a.double("gen_ai.latency.time_in_model_prefill", seconds(clock.Length(h.Dispatched, h.FirstToken)))
	}
	s.x.end(in.Tokenizer, h.End, &out)
}

// reason returns the text with which a rank closed its thread in error.
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

// threadName returns the name of a thread span. The double blanks are real.
func threadName(run *simulator.Run, p *simulator.Process) string {
	var b strings.Builder
	b.WriteString(p.Label)
	if p.Rank != simulator.NoRank {
		fmt.Fprintf(&b, " [TP %d]  [PP %d] ", p.Rank.TP, p.Rank.PP)
		if p.Rank.DP >= 0 {
			fmt.Fprintf(&b, " [DP %d] ", p.Rank.DP)
		}
	}
	fmt.Fprintf(&b, "(host:%.8s | pid:%d)", run.Hosts[p.Host].ID, p.PID)
	return b.String()
}

func threadAttributes(run *simulator.Run, p *simulator.Process) attributes {
	var a attributes
	if p.Rank != simulator.NoRank {
		a.integer("tp_rank", int64(p.Rank.TP))
		a.integer("pp_rank", int64(p.Rank.PP))
	}
	if p.Rank.DP >= 0 {
		a.integer("dp_rank", int64(p.Rank.DP))
	}
	a.text("host_id", run.Hosts[p.Host].ID)
	a.integer("pid", int64(p.PID))
	a.text("thread_label", p.Label)
	return a
}

// grid returns the time that SGLang writes for t: it goes through a float of
// seconds, which leaves multiples of 256 ns, less than that away from t.
func grid(t int64) int64 {
	s := float64(t/1e9) + float64(t%1e9)/1e9
	return int64(s * 1e9)
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
