package assembly

import (
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// vllmRequest is the one span that vLLM writes per request (v1 engine,
// vllm/tracing): all of its times are attributes.
const vllmRequest = "llm_request"

// Names of vLLM's stages. The spans of #44402 have them; stages derived from the attributes of a request
// get the same names.
const (
	vllmQueue   = "vllm_queue"
	vllmPrefill = "vllm_prefill"
	vllmDecode  = "vllm_decode"
)

// vllmStages lists the stages of vLLM, from #44402 (2026-06). A preempted request has several of each.
var vllmStages = []stage{
	{"vllm_queue", 1, request.QueuePhase, request.Queueing, "vLLM: waiting to be scheduled"},
	{"vllm_async_kv_transfer", 1, request.TransferPhase, request.Receiving, "vLLM: waiting for the KV cache from elsewhere"},
	{"vllm_prefill", 1, request.PrefillPhase, request.Prefilling, "vLLM: from the first time it is scheduled to the first token"},
	{"vllm_decode", 1, request.DecodePhase, request.Answering, "vLLM: from the first token to the last"},
	{"vllm_step_execution", 3, request.DecodePhase, request.NoMeaning, "vLLM: one forward pass that the request is in"},
}

// addVLLMStages adds to a dump the stages that the attributes of vLLM's requests describe, as spans below
// those of the requests. Traces in which vLLM itself wrote stages need none.
func addVLLMStages(d *spantable.Table) {
	root, traced := d.Syms.Lookup(vllmRequest)
	if !traced {
		return // without a walk over all spans
	}
	keys, written := newAttrKeys(d.Syms), map[[2]uint64]bool{}
	names := [...]trace.Sym{d.Syms.Intern(vllmQueue), d.Syms.Intern(vllmPrefill), d.Syms.Intern(vllmDecode)}
	var requests []int
	for i := range d.Numbers() {
		switch s := d.Span(i); {
		case s.Name == root:
			requests = append(requests, i)
		case slices.Contains(names[:], s.Name):
			written[[2]uint64{s.TraceHi, s.TraceLo}] = true
		}
	}
	for _, i := range requests {
		s := d.Span(i)
		if written[[2]uint64{s.TraceHi, s.TraceLo}] {
			continue
		}
		for k, times := range vllmTimes(d, &keys, i) {
			if times.From < times.To {
				d.AddBelow(i, k, names[k], times.From, times.To)
			}
		}
	}
}

// vllmTimes returns when request span i was in the queue, in prefill, and in decode; a stage without
// attributes is empty. The attributes have the length of each, and when the first token reached the front
// end: prefill is assumed to end there, with the others adjacent. All are clipped to the request.
func vllmTimes(d *spantable.Table, keys *attrKeys, i int) [3]request.Interval {
	s := d.Span(i)
	queue, prefill, decode, ttft := int64(request.Unknown), int64(request.Unknown), int64(request.Unknown), int64(request.Unknown)
	for a := range d.Args.All(s.Args) {
		switch a.Key {
		case keys.inQueue:
			queue = argSeconds(a)
		case keys.inPrefill:
			prefill = argSeconds(a)
		case keys.inDecode:
			decode = argSeconds(a)
		case keys.ttft:
			ttft = argSeconds(a)
		}
	}
	if ttft == request.Unknown {
		ttft = max(0, queue) + max(0, prefill)
	}
	within := func(t trace.Time) trace.Time { return min(max(t, s.Start), s.End) }
	first := within(s.Start + trace.Time(ttft))
	scheduled := within(first - trace.Time(max(0, prefill)))
	queued := within(scheduled - trace.Time(max(0, queue)))
	return [3]request.Interval{{From: queued, To: scheduled}, {From: scheduled, To: first}, {From: first, To: within(first + trace.Time(max(0, decode)))}}
}

// findVLLMStages assigns the stages of vLLM's requests to threads without a span, one for each process.
// They are below the request or, if another process of the server wrote them, just in its trace.
func (b *builder) findVLLMStages() {
	if _, traced := b.Syms.Lookup(vllmRequest); !traced {
		return
	}
	type key struct{ part, proc int }
	threads, stages, parts := map[key]int{}, map[int][]uint32{}, map[spantable.TraceID]int{}
	sglang := false
	for p := range b.AllParts() {
		root := b.Parts[p].Root
		if root == request.None || b.classOf(root) != vllmName {
			sglang = true
			continue
		}
		parts[b.dump.TraceOf(root)] = p
	}
	if len(parts) == 0 {
		return
	}
	if !sglang {
		b.Stages = slices.Concat(vllmStageTable, stageTable) // the first stage with a meaning gives the name
	}
	for i := range b.All() {
		if b.Rows[i].Kind != request.Generic || !b.isVLLMStage(i) {
			continue
		}
		part := b.partOfVLLM(i, parts)
		if part == request.None {
			continue
		}
		at := key{part, b.serviceProc(i, request.Unified)}
		t := order.At(threads, &b.Threads, at, func() request.Thread { return request.Thread{Row: request.None, Part: part, Proc: at.proc} })
		b.markStages(i, t)
		stages[t] = append(stages[t], uint32(i))
	}
	b.addStages(stages)
}

// isVLLMStage reports whether span i is a stage of vLLM that is not inside another one.
func (b *builder) isVLLMStage(i int) bool {
	is := func(i int) bool {
		return slices.ContainsFunc(vllmStages, func(s stage) bool { return s.name == b.Name(i) })
	}
	above := b.tree.Parent(i)
	return b.classOf(i) == stageName && is(i) && (above == request.None || !is(above))
}

// partOfVLLM returns the request of stage i: the one above it, or else the last one in its trace; or None.
func (b *builder) partOfVLLM(i int, parts map[spantable.TraceID]int) int {
	for above := b.tree.Parent(i); above != request.None; above = b.tree.Parent(above) {
		if b.Rows[above].Kind == request.Root {
			return int(b.Rows[above].Part)
		}
	}
	if p, ok := parts[b.dump.TraceOf(i)]; ok {
		return p
	}
	return request.None
}

// vllmDurations reads the durations of a vLLM request into m.
func (b *builder) vllmDurations(root int, m *request.Metrics) {
	for a := range b.dump.Args.All(b.Rows[root].Args) {
		switch a.Key {
		case b.keys.inQueue:
			m.Queue = argSeconds(a)
		case b.keys.inPrefill:
			m.Prefill = argSeconds(a)
		case b.keys.inDecode:
			m.Decode = argSeconds(a)
		}
	}
}
