package request

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/trace"
)

// adoptOrphans gives the stages whose thread is missing a thread without a
// span, so that they are drawn and counted. Which part and rank that was is
// taken from what is left: the trace, the stage's name, the process instance.
func (b *builder) adoptOrphans() {
	threads := map[spanKey]int{}
	var parts map[[2]uint64][]int
	for i := range b.Dump.Len() {
		if b.kinds[i] != Generic || !b.isOrphanStage(i) {
			continue
		}
		if parts == nil {
			parts = b.partsByTrace()
		}
		s := b.Dump.Span(i)
		key := spanKey{s.TraceHi, s.TraceLo, s.Parent}
		if s.Parent == 0 {
			key.id = s.ID
		}
		t, ok := threads[key]
		if !ok {
			t = b.orphanThread(i, parts)
			threads[key] = t
			if s.Parent != 0 {
				b.report(trace.DataLoss, "thread-span-missing", i,
					fmt.Sprintf("stage %q lies in a span that is not in the dump; its rank is known only if its process is", b.Name(i)))
			}
		}
		b.markStages(i, t)
		b.Threads[t].Stages = append(b.Threads[t].Stages, uint32(i))
	}
	for _, t := range threads {
		b.sortStages(t)
	}
}

// isOrphanStage tells whether span i is a stage of SGLang with nothing above it.
func (b *builder) isOrphanStage(i int) bool {
	if b.Tree.Parent(i) != None {
		return false
	}
	if b.classOf(i) == stageName {
		return true
	}
	return b.Tree.Orphan(i) && strings.HasPrefix(b.symName(b.Dump.Resource(b.Dump.Span(i)).Service), "sglang")
}

func (b *builder) partsByTrace() map[[2]uint64][]int {
	m := map[[2]uint64][]int{}
	add := func(span, part int) {
		s := b.Dump.Span(span)
		key := [2]uint64{s.TraceHi, s.TraceLo}
		m[key] = append(m[key], part)
	}
	seen := make([]bool, len(b.Parts))
	for p := range b.Parts {
		if b.Parts[p].Root != None {
			add(b.Parts[p].Root, p)
			seen[p] = true
		}
	}
	for t := range b.Threads {
		if p := b.Threads[t].Part; !seen[p] {
			add(b.Threads[t].Span, p)
			seen[p] = true
		}
	}
	return m
}

// orphanThread makes the thread for the orphan stage i.
func (b *builder) orphanThread(i int, parts map[[2]uint64][]int) int {
	s := b.Dump.Span(i)
	role := Unified
	switch name := b.Name(i); {
	case strings.HasPrefix(name, "mooncake"):
		role = Sender
	case name == "prefill_prepare" || name == "prefill_bootstrap" || name == "prefill_transfer_kv_cache":
		role = Prefill
	case name == "decode_prepare" || name == "decode_bootstrap" || name == "decode_transferred" || name == "fake_output":
		role = Decode
	}
	key := [2]uint64{s.TraceHi, s.TraceLo}
	part := None
	for _, p := range parts[key] {
		if r := b.Parts[p].Role; len(parts[key]) == 1 || r == role || r == Other {
			part = p
			break
		}
	}
	if part == None {
		part = b.newHeadless()
		b.Parts[part].Role = role
		parts[key] = append(parts[key], part)
	}
	proc := None
	if label, ok := b.Dump.Args.Find(s.Args, b.keys.label); ok {
		proc = b.procOf(i, label.Bytes(), Other)
	} else {
		proc = b.serviceProc(i, b.Parts[part].Role)
	}
	b.Threads = append(b.Threads, Thread{Span: None, Part: part, Proc: proc})
	return len(b.Threads) - 1
}

func (b *builder) sortStages(t int) {
	slices.SortFunc(b.Threads[t].Stages, func(x, y uint32) int { return b.Tree.Compare(int(x), int(y)) })
}

// reportGaps counts what is missing without leaving an orphan: requests of which
// nothing but the outermost span is there, and links to spans that are not.
func (b *builder) reportGaps() {
	for p := range b.Parts {
		part := &b.Parts[p]
		// An aborted Mooncake transfer has none, nor has what a gateway rejected.
		if part.Root != None && len(part.Threads) == 0 && part.Role != Sender && part.Role != Router && b.Name(part.Root) != vllmRequest {
			b.report(trace.DataLoss, "request-threads-missing", part.Root,
				fmt.Sprintf("request span %q has no thread spans below it; the file lacks them or its processes do not trace", b.Name(part.Root)))
		}
	}
	for i := range b.Dump.Len() {
		if b.kinds[i] == Stage && slices.Contains(b.LinkTargets(i), None) {
			b.report(trace.DataLoss, "link-target-missing", i,
				fmt.Sprintf("stage %q follows a span that is not in the dump", b.Name(i)))
		}
	}
}

// resolveLinks finds the targets of all links.
func (b *builder) resolveLinks() {
	b.firstTarget = make([]uint32, 1, b.Dump.Len()+1)
	b.targets = make([]int32, 0, b.Dump.LinkCount())
	for i := range b.Dump.Len() {
		for l := range b.Dump.Links(i) {
			b.targets = append(b.targets, int32(b.Tree.Find(l.TraceHi, l.TraceLo, l.ID)))
		}
		b.firstTarget = append(b.firstTarget, uint32(len(b.targets)))
	}
}
