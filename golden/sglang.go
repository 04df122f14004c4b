package golden

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// scribe writes the spans of one half as SGLang's tracing does.
type scribe struct {
	x      *exporter
	rng    *rand.Rand
	req    *request
	half   *half
	trace  traceID
	root   uint64
	parent uint64  // the gateway's span, or 0
	last   spanRef // the last slice of the sender, which the next thread links to
}

// request puts down the spans of a request. Its ids depend on nothing but the
// seed and its number.
func (x *exporter) request(number int, q *request) {
	rng := rand.New(rand.NewPCG(x.run.config.Seed, streamIDs|uint64(number+1)<<8))
	gateway := x.run.config.Mode == PDGateway
	var trace traceID
	var parent uint64
	if gateway {
		trace, parent = newTraceID(rng, true), newSpanID(rng)
		x.gateway(rng, q, trace, parent)
	}
	for _, h := range q.halves {
		if !gateway {
			trace = newTraceID(rng, false)
		}
		s := &scribe{x: x, rng: rng, req: q, half: h, trace: trace, root: newSpanID(rng), parent: parent}
		for _, t := range x.run.threads(h) {
			s.thread(&t)
		}
		s.endRoot()
	}
}

// thread writes the slices of a thread, then the thread itself.
func (s *scribe) thread(t *thread) {
	run := s.x.run
	p := &run.processes[t.process]
	clock := &run.hosts[p.host].clock
	id := newSpanID(s.rng)

	remote := t.process != run.instances[s.half.instance].tokenizer
	s.last.flags = flagLocal
	if remote {
		s.last.flags = flagRemote
	}
	spans := s.slices(t, clock, id)
	pending := t.events
	for _, i := range t.inOrderOfEnd() {
		if !t.stages[i].open {
			pending = s.attach(t, pending, &spans[i], clock)
		}
		s.x.end(t.process, t.stages[i].end, &spans[i])
	}

	out := span{trace: s.trace, id: id, parent: s.root, flags: flagLocal, name: threadName(run, p)}
	out.start, out.end = clock.at(t.start), clock.at(t.end)
	if remote {
		out.flags = flagRemote
	} else {
		out.start = grid(out.start)
	}
	if p.rank == noRank { // closed together with its last slice
		out.end = grid(out.end)
	}
	out.attributes = threadAttributes(run, p)
	if reason := s.reason(p); reason != "" && p.rank != noRank {
		out.attributes.text("reason", reason)
		out.failed = true
	}
	s.attachAll(t, pending, &out, clock)
	s.x.end(t.process, t.end, &out)
}

// slices makes the spans of the stages of a thread. Outer ones are linked in a
// chain that starts at the sender's last slice.
func (s *scribe) slices(t *thread, clock *clock, thread uint64) []span {
	spans := make([]span, len(t.stages))
	previous := s.last
	for i := range t.stages {
		st := &t.stages[i]
		out := &spans[i]
		*out = span{
			trace: s.trace, id: newSpanID(s.rng), parent: thread, flags: flagLocal,
			name: st.name(), start: grid(clock.at(st.start)), end: grid(clock.at(st.end)),
		}
		if st.open {
			out.end = clock.at(st.end) // closed by the thread, by another clock
		}
		if key := st.numbered(); key != "" {
			out.attributes.integer(key, int64(st.number))
		}
		if st.parent >= 0 {
			out.parent = spans[st.parent].id
			continue
		}
		if previous.id != 0 {
			link := previous
			out.link = &link
		}
		previous = spanRef{out.id, flagLocal}
	}
	if s.x.run.processes[t.process].rank == noRank {
		s.last = previous
	}
	return spans
}

// attach gives a slice that ends the pending events inside it, and returns the
// others. An event goes to the first slice around it to end; a slice that is
// closed by its thread gets none.
func (s *scribe) attach(t *thread, pending []event, to *span, clock *clock) []event {
	var inside, outside []event
	for _, e := range pending {
		if at := grid(clock.at(e.at)); to.start <= at && at < to.end {
			inside = append(inside, e)
		} else {
			outside = append(outside, e)
		}
	}
	if inside == nil {
		return pending
	}
	s.attachAll(t, inside, to, clock)
	return outside
}

// attachAll gives events to a span.
func (s *scribe) attachAll(t *thread, events []event, to *span, clock *clock) {
	run := s.x.run
	for _, e := range events {
		out := spanEvent{at: grid(clock.at(e.at)), name: "retract"}
		if e.step >= 0 {
			st := &run.steps[e.step]
			rank := run.processes[t.process].rank
			out.name = "schedule"
			out.attributes.text("bid", batchID(run, e.step, rank.pp*run.instances[st.instance].size.TP+rank.tp))
			out.attributes.integer("batch_size", int64(st.requests))
			out.attributes.text("forward_mode", string(st.mode))
		}
		to.events = append(to.events, out)
	}
}

// batchID returns the id that a rank gives to a step. Every rank makes its own.
func batchID(r *Run, step, rank int) string {
	return fmt.Sprintf("%08x", r.rankRand(step, rank).Uint32())
}

// endRoot writes the root. It carries gen_ai attributes only if the tokenizer
// was told how the request ended.
func (s *scribe) endRoot() {
	run, q, h := s.x.run, s.req, s.half
	in := &run.instances[h.instance]
	clock := &run.hosts[in.host].clock
	prefix := ""
	if in.role != roleUnified {
		prefix = string(in.role)
	}
	out := span{
		trace: s.trace, id: s.root, parent: s.parent, flags: flagLocal,
		name:  fmt.Sprintf("%s Req %.8s", prefix, h.rid),
		start: grid(clock.at(h.received)), end: grid(clock.at(h.end)),
	}
	if s.parent != 0 {
		out.flags = flagRemote
	}
	a := &out.attributes
	a.text("rid", h.rid)
	a.text("module", "sglang::request")
	if q.room != 0 {
		a.text("bootstrap_room", fmt.Sprintf("0x%x", q.room))
	}
	if h.finish != "" {
		a.integer("gen_ai.usage.completion_tokens", int64(h.tokens))
		a.integer("gen_ai.usage.prompt_tokens", int64(q.prompt))
		a.integer("gen_ai.usage.cached_tokens", 0)
		a.text("gen_ai.request.id", h.id)
		a.integer("gen_ai.request.max_tokens", int64(q.maxTokens))
		a.double("gen_ai.request.top_p", 0.95)
		if q.temperature != 0 {
			a.double("gen_ai.request.temperature", q.temperature)
		}
		a.text("gen_ai.response.model", run.config.Model)
		a.text("gen_ai.response.finish_reasons", `["`+h.finish+`"]`)
		a.double("gen_ai.latency.time_to_first_token", seconds(clock.span(h.received, h.firstToken)))
		a.double("gen_ai.latency.time_in_model_prefill", seconds(clock.span(h.dispatched, h.firstToken)))
	}
	s.x.end(in.tokenizer, h.end, &out)
}

// reason returns the text with which a rank closed its thread in error.
func (s *scribe) reason(p *process) string {
	switch s.half.ending {
	case endedQueueFull:
		return "The request queue is full."
	case endedDropped:
		return "have unclosed span, auto closed"
	case endedTransferFailed:
		run := s.x.run
		return fmt.Sprintf("Prefill transfer failed for request rank=%d req.rid='%s' req.bootstrap_room=%d"+
			" with exception KVTransferError(bootstrap_room=%[3]d): Failed to send kv chunk of %[3]d to %[4]s:41733",
			p.rank.tp, s.half.id, s.req.room, run.hosts[run.serving().host].address)
	}
	return ""
}

// threadName returns the name of a thread span. The double blanks are real.
func threadName(run *Run, p *process) string {
	var b strings.Builder
	b.WriteString(p.label)
	if p.rank != noRank {
		fmt.Fprintf(&b, " [TP %d]  [PP %d] ", p.rank.tp, p.rank.pp)
		if p.rank.dp >= 0 {
			fmt.Fprintf(&b, " [DP %d] ", p.rank.dp)
		}
	}
	fmt.Fprintf(&b, "(host:%.8s | pid:%d)", run.hosts[p.host].id, p.pid)
	return b.String()
}

func threadAttributes(run *Run, p *process) attributes {
	var a attributes
	if p.rank != noRank {
		a.integer("tp_rank", int64(p.rank.tp))
		a.integer("pp_rank", int64(p.rank.pp))
	}
	if p.rank.dp >= 0 {
		a.integer("dp_rank", int64(p.rank.dp))
	}
	a.text("host_id", run.hosts[p.host].id)
	a.integer("pid", int64(p.pid))
	a.text("thread_label", p.label)
	return a
}

// grid returns the time that SGLang writes for t: it goes through a float of
// seconds, which leaves multiples of 256 ns, less than that away from t.
func grid(t int64) int64 {
	s := float64(t/1e9) + float64(t%1e9)/1e9
	return int64(s * 1e9)
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
