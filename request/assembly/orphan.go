package assembly

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// adoptOrphans assigns the stages without a parent to the thread that they came from, or to a thread
// without a span, so that they are drawn and counted. Their part and rank are derived from the rest: the
// process instance, the trace, the stage's name.
func (b *builder) adoptOrphans() {
	threads, stages := map[spanKey]int{}, map[int][]uint32{}
	var homes *orphanHomes
	orphans := parallel.Gather(b.Len(), request.RowSize, func(list []int32, from, to int) []int32 {
		for i := from; i < to; i++ {
			if b.Rows[i].Kind == request.Generic && b.isOrphanStage(i) {
				list = append(list, int32(i))
			}
		}
		return list
	})
	for _, row := range orphans {
		i := int(row)
		if homes == nil {
			homes = b.newOrphanHomes(orphans)
		}
		s := b.dump.Identity(i)
		key := spanKey{b.dump.TraceOf(i), s.Parent}
		if s.Parent == 0 {
			key.id = s.ID
		}
		t, ok := threads[key]
		if !ok {
			t = b.orphanThread(i, homes)
			threads[key] = t
			if s.Parent != 0 {
				b.report(trace.ThreadSpanMissing, i, b.Name(i))
			}
		}
		b.markStages(i, t)
		stages[t] = append(stages[t], uint32(i))
	}
	b.addStages(stages)
}

// orphanHomes are the parts and procs where orphaned stages may belong.
type orphanHomes struct {
	parts   map[spantable.TraceID][]int // by trace
	threads map[partProc]int
	workers []int       // by part, a proc that has a thread in it; None is unknown
	servers order.Union // groups of procs that work on the same parts
}

// A partProc identifies a thread: a part has one thread per proc.
type partProc struct{ part, proc int }

// newOrphanHomes finds the homes in the traces of orphans.
func (b *builder) newOrphanHomes(orphans []int32) *orphanHomes {
	h := &orphanHomes{parts: map[spantable.TraceID][]int{}, threads: map[partProc]int{}, workers: slices.Repeat([]int{request.None}, len(b.Parts)), servers: order.NewUnion(len(b.Procs))}
	for _, i := range orphans {
		h.parts[b.dump.TraceOf(int(i))] = nil
	}
	near := b.addPartsByTrace(h.parts)
	for t := range b.AllThreads() {
		part, proc := b.Threads[t].Part, b.Threads[t].Proc
		if near[part] {
			h.threads[partProc{part, proc}] = t
		}
		if b.Procs[proc].Role == request.Encoder {
			continue // it may work for several servers
		}
		if h.workers[part] == request.None {
			h.workers[part] = proc
		}
		h.servers.Join(h.workers[part], proc)
	}
	return h
}

// server returns the procs that work on a part, or on other parts of the same server.
func (h *orphanHomes) server(part int) (procs []int) {
	if part >= len(h.workers) || h.workers[part] == request.None {
		return nil
	}
	of := h.servers.Find(h.workers[part])
	for proc := range h.servers {
		if h.servers.Find(proc) == of {
			procs = append(procs, proc)
		}
	}
	return procs
}

// isOrphanStage reports whether span i is a stage of SGLang without a parent.
func (b *builder) isOrphanStage(i int) bool {
	if b.tree.Parent(i) != request.None {
		return false
	}
	if b.classOf(i) == stageName {
		return true
	}
	return b.tree.Orphan(i) && strings.HasPrefix(b.symName(b.resource(i).Service), "sglang")
}

// addPartsByTrace adds the parts of the traces in m to m, and returns which ones were added.
func (b *builder) addPartsByTrace(m map[spantable.TraceID][]int) (added []bool) {
	added = make([]bool, len(b.Parts))
	add := func(span, part int) {
		id := b.dump.TraceOf(span)
		if before, wanted := m[id]; wanted {
			m[id], added[part] = append(before, part), true
		}
	}
	for p := range b.AllParts() {
		if b.Parts[p].Root != request.None {
			add(b.Parts[p].Root, p)
		}
	}
	for t := range b.AllThreads() {
		if p := b.Threads[t].Part; b.Parts[p].Root == request.None && !added[p] {
			add(b.Threads[t].Row, p)
		}
	}
	return added
}

// orphanThread returns the thread for orphaned stage i: its process's thread in its part, or else a new
// one.
func (b *builder) orphanThread(i int, homes *orphanHomes) int {
	of, role := b.orphanProcs(i)
	trace := b.dump.TraceOf(i)
	part := b.orphanPart(homes.parts[trace], role, b.Rows[i].Phase)
	if part == request.None {
		part = b.newHeadless()
		b.Parts[part].Role = role
		homes.parts[trace] = append(homes.parts[trace], part)
	}
	near := of
	if len(of) == 0 {
		near = homes.server(part)
		of = b.writersOf(i, near)
	}
	if len(of) > 1 { // each has one thread in a part
		of = order.Only(of, func(proc int) bool { _, has := homes.threads[partProc{part, proc}]; return !has })
	}
	if len(of) == 1 {
		return order.At(homes.threads, &b.Threads, partProc{part, of[0]}, func() request.Thread { return request.Thread{Row: request.None, Part: part, Proc: of[0]} })
	}
	key := partProc{part, b.nameless(i, b.Parts[part].Role, near)}
	thread := func() request.Thread { return request.Thread{Row: request.None, Part: part, Proc: key.proc} }
	if b.dump.Identity(i).Parent == 0 {
		return order.At(homes.threads, &b.Threads, key, thread)
	}
	b.Threads = append(b.Threads, thread()) // another parent is another thread, whichever rank's it is
	return len(b.Threads) - 1
}

// orphanProcs returns the procs that may have written orphaned stage i, nil if neither the stage nor its
// instance says, and their role, or else the role that the stage's name suggests.
func (b *builder) orphanProcs(i int) (of []int, role request.Role) {
	if _, ok := b.dump.Args.Find(b.Rows[i].Args, b.keys.label); ok {
		return []int{b.procOf(i, request.Other)}, roleOfOrphan(b.Name(i))
	}
	of = b.writersOf(i, b.instances[b.symName(b.resource(i).Instance)])
	if len(of) == 0 || strings.HasPrefix(b.Name(i), "mooncake") {
		return of, roleOfOrphan(b.Name(i))
	}
	role = b.Procs[of[0]].Role
	if role == request.Other || slices.ContainsFunc(of, func(proc int) bool { return b.Procs[proc].Role != role }) {
		role = roleOfOrphan(b.Name(i))
	}
	return of, role
}

// writersOf returns the procs that write stages like i. An instance has several procs with SGLANG_TRACE_ASYNC=1: one process
// of a server exports the spans of all.
func (b *builder) writersOf(i int, procs []int) []int {
	return order.Only(procs, func(proc int) bool { return strings.Contains(b.Procs[proc].Label, writerOf(b.Name(i))) })
}

// roleOfOrphan returns the role that a stage's name suggests.
func roleOfOrphan(name string) request.Role {
	switch {
	case strings.HasPrefix(name, "mooncake"):
		return request.Sender
	case name == "prefill_prepare" || name == "prefill_bootstrap" || name == "prefill_transfer_kv_cache":
		return request.Prefill
	case name == "decode_prepare" || name == "decode_bootstrap" || name == "decode_transferred" || name == "fake_output":
		return request.Decode
	}
	return request.Unified
}

// orphanPart chooses the part of a trace that a stage with a role belongs to; None if there is none. If
// only the stage's name suggests the role, its phase decides.
func (b *builder) orphanPart(parts []int, role request.Role, phase request.Phase) int {
	for _, p := range parts {
		if r := b.Parts[p].Role; len(parts) == 1 && (r == role || role == request.Unified || r == request.Unified) || r == role || r == request.Other {
			return p
		}
	}
	if role != request.Unified {
		return request.None
	}
	switch phase {
	case request.PrefillPhase:
		return b.orphanPart(parts, request.Prefill, phase)
	case request.DecodePhase:
		return b.orphanPart(parts, request.Decode, phase)
	}
	return request.None
}

// addStages adds first-level stages to those of threads.
func (b *builder) addStages(of map[int][]uint32) {
	for t, added := range of {
		stages := slices.Concat(b.StagesOf(t), added)
		slices.SortFunc(stages, func(x, y uint32) int { return b.compare(int(x), int(y)) })
		b.SetStages(t, stages)
	}
}

// reportGaps reports losses that leave no orphan: requests with nothing but the outermost span, links to missing
// spans, and impossible counts of tokens.
func (b *builder) reportGaps() {
	slices.Sort(b.miscounts.rows)
	for _, i := range b.miscounts.rows {
		b.report(trace.TokensImpossible, int(i), b.Name(int(i)))
	}
	for p := range b.AllParts() {
		part := &b.Parts[p]
		// An aborted Mooncake transfer has no threads, nor has a request that a gateway rejected.
		if part.Root != request.None && len(b.ThreadsOf(part)) == 0 && part.Role != request.Sender && part.Role != request.Router && b.Name(part.Root) != vllmRequest {
			b.report(trace.RequestThreadsMissing, part.Root, b.Name(part.Root))
		}
	}
	last := request.None
	for _, l := range b.Links {
		if i := int(l.To); l.From == request.None && i != last && b.Rows[i].Kind == request.Stage {
			last = i
			b.report(trace.LinkTargetMissing, i, b.Name(i))
		}
	}
}

// resolveStrays moves threads of procs with an unknown role, whose request span is missing, to the proc
// that is equal except for the role. If there is none, a scheduler gets the role of all other schedulers,
// if they share one. Everything else that an instance wrote then belongs to that proc, too.
func (b *builder) resolveStrays() {
	known := map[request.Proc]int{}
	only, several := request.Other, false
	for i := range b.Procs {
		p := b.Procs[i]
		if p.Role == request.Other {
			continue
		}
		if p.Schedules {
			several = several || only != request.Other && only != p.Role
			only = p.Role
		}
		p.Role = request.Other
		known[p] = i
	}
	if several {
		only = request.Other
	}
	same := make([]int, len(b.Procs)) // by proc, the proc that it equals
	clear(b.instances)
	for i := range b.Procs {
		same[i] = i
		if p := &b.Procs[i]; p.Role == request.Other {
			if k, ok := known[*p]; ok {
				same[i] = k
			} else if p.Schedules {
				p.Role = only
			}
		}
		b.noteInstance(b.Procs[i].Instance, same[i])
	}
	for t := range b.AllThreads() {
		b.Threads[t].Proc = same[b.Threads[t].Proc]
	}
}
