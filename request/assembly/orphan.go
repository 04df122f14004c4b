package assembly

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// adoptOrphans gives the stages whose thread is missing a thread without a
// span, so that they are drawn and counted. Which part and rank that was is
// taken from the rest: the trace, the stage's name, the process instance.
func (b *builder) adoptOrphans() {
	threads := map[spanKey]int{}
	var parts map[[2]uint64][]int
	for i := range b.dump.Len() {
		if b.Rows[i].Kind != request.Generic || !b.isOrphanStage(i) {
			continue
		}
		if parts == nil {
			parts = b.partsByTrace()
		}
		s := b.dump.Span(i)
		key := spanKey{s.TraceHi, s.TraceLo, s.Parent}
		if s.Parent == 0 {
			key.id = s.ID
		}
		t, ok := threads[key]
		if !ok {
			t = b.orphanThread(i, parts)
			threads[key] = t
			if s.Parent != 0 {
				b.report(trace.ThreadSpanMissing, i, b.Name(i))
			}
		}
		b.markStages(i, t)
		b.Threads[t].Stages = append(b.Threads[t].Stages, uint32(i))
	}
	for _, t := range threads {
		b.sortStages(t)
	}
}

// isOrphanStage reports whether span i is a stage of SGLang with nothing above it.
func (b *builder) isOrphanStage(i int) bool {
	if b.tree.Parent(i) != request.None {
		return false
	}
	if b.classOf(i) == stageName {
		return true
	}
	return b.tree.Orphan(i) && strings.HasPrefix(b.symName(b.dump.Resource(b.dump.Span(i)).Service), "sglang")
}

func (b *builder) partsByTrace() map[[2]uint64][]int {
	m := map[[2]uint64][]int{}
	add := func(span, part int) {
		s := b.dump.Span(span)
		key := [2]uint64{s.TraceHi, s.TraceLo}
		m[key] = append(m[key], part)
	}
	seen := make([]bool, len(b.Parts))
	for p := range b.Parts {
		if b.Parts[p].Root != request.None {
			add(b.Parts[p].Root, p)
			seen[p] = true
		}
	}
	for t := range b.Threads {
		if p := b.Threads[t].Part; !seen[p] {
			add(b.Threads[t].Row, p)
			seen[p] = true
		}
	}
	return m
}

// orphanThread makes the thread for the orphan stage i.
func (b *builder) orphanThread(i int, parts map[[2]uint64][]int) int {
	s := b.dump.Span(i)
	role := request.Unified
	switch name := b.Name(i); {
	case strings.HasPrefix(name, "mooncake"):
		role = request.Sender
	case name == "prefill_prepare" || name == "prefill_bootstrap" || name == "prefill_transfer_kv_cache":
		role = request.Prefill
	case name == "decode_prepare" || name == "decode_bootstrap" || name == "decode_transferred" || name == "fake_output":
		role = request.Decode
	}
	key := [2]uint64{s.TraceHi, s.TraceLo}
	part := request.None
	for _, p := range parts[key] {
		if r := b.Parts[p].Role; len(parts[key]) == 1 || r == role || r == request.Other {
			part = p
			break
		}
	}
	if part == request.None {
		part = b.newHeadless()
		b.Parts[part].Role = role
		parts[key] = append(parts[key], part)
	}
	proc := request.None
	if label, ok := b.dump.Args.Find(s.Args, b.keys.label); ok {
		proc = b.procOf(i, label.Bytes(), request.Other)
	} else {
		proc = b.serviceProc(i, b.Parts[part].Role)
	}
	b.Threads = append(b.Threads, request.Thread{Row: request.None, Part: part, Proc: proc})
	return len(b.Threads) - 1
}

func (b *builder) sortStages(t int) {
	slices.SortFunc(b.Threads[t].Stages, func(x, y uint32) int { return b.tree.Compare(int(x), int(y)) })
}

// reportGaps counts what is missing without leaving an orphan: requests of which
// nothing but the outermost span is there, and links to spans that are not.
func (b *builder) reportGaps() {
	for p := range b.Parts {
		part := &b.Parts[p]
		// An aborted Mooncake transfer has none, nor has what a gateway rejected.
		if part.Root != request.None && len(part.Threads) == 0 && part.Role != request.Sender && part.Role != request.Router && b.Name(part.Root) != vllmRequest {
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
