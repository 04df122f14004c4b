package assembly

import (
	"strings"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// A foundThread is a span of a thread.
type foundThread struct {
	span, part, proc int32
	// like is the distance back to a thread whose span describes the same proc; 0 if there is none.
	like int32
}

// findThreads finds the threads among spans that are neither requests nor stages.
func (b *builder) findThreads(others []int32) {
	// They are collected first, since threads are large. The thread right above another may not have a part yet.
	threads := parallel.Gather(len(others), request.RowSize, func(list []foundThread, from, to int) []foundThread {
		first := map[procKey]int{}
		for _, span := range others[from:to] {
			if _, ok := b.threadLabel(int(span)); !ok {
				continue
			}
			t := foundThread{span: span, part: int32(b.partAbove(int(span)))}
			if t.part != request.None {
				key := b.procKeyOf(int(span), b.Parts[t.part].Role)
				if before, ok := first[key]; ok {
					t.like = int32(len(list) - before)
				} else {
					first[key] = len(list)
				}
			}
			list = append(list, t)
		}
		return list
	})
	for k := range memory.Each(len(threads), threadSize) {
		if t := &threads[k]; t.like != 0 {
			t.proc = threads[k-int(t.like)].proc
		} else {
			b.placeThread(t)
		}
	}
	b.Threads = memory.Make[request.Thread](len(threads))
	failed := parallel.Gather(len(threads), threadSize, func(list []int32, from, to int) []int32 {
		for k := from; k < to; k++ {
			t := &threads[k]
			b.Threads[k] = request.Thread{Row: int(t.span), Part: int(t.part), Proc: int(t.proc)}
			row := &b.Rows[t.span]
			row.Kind, row.Part, row.Thread = request.ThreadRow, t.part, int32(k)
			if b.dump.Identity(int(t.span)).Status == spantable.StatusError {
				list = append(list, int32(k))
			}
		}
		return list
	})
	for k := range memory.Each(len(failed), threadSize) {
		b.failThread(int(failed[k]))
	}
}

// placeThread determines the part and the proc of a thread.
func (b *builder) placeThread(t *foundThread) {
	i := int(t.span)
	if t.part == request.None {
		t.part = int32(b.partAbove(i))
	}
	if t.part == request.None {
		t.part = int32(b.headlessPart(i))
		label, _ := b.threadLabel(i)
		b.Parts[t.part].Role = roleOfHeadless(string(label), b.Parts[t.part].Role)
	}
	b.Rows[i].Part = t.part
	t.proc = int32(b.procOf(i, b.Parts[t.part].Role))
}

// roleOfHeadless returns the role of a part without a root, according to the label of one of its threads:
// stages of the other half of a request don't count.
func roleOfHeadless(label string, known request.Role) request.Role {
	if role := roleOfLabel(label, known); role == request.Decode || role == request.Prefill && !strings.HasPrefix(label, "mooncake") {
		return role
	}
	return known
}

// threadSize is roughly how many bytes the kernel maps for the data of a thread.
const threadSize = 4 << 10

// threadLabel returns the label of span i if it is a thread. A span that also has a module is a stage with
// its own identity (hicache).
func (b *builder) threadLabel(i int) (label []byte, ok bool) {
	for a := range b.dump.Args.All(b.Rows[i].Args) {
		switch a.Key {
		case b.keys.label:
			label, ok = a.Bytes(), true
		case b.keys.module:
			return nil, false
		}
	}
	return label, ok
}

// partAbove returns the part that span i lies in, or None.
func (b *builder) partAbove(i int) int {
	for j := b.tree.Parent(i); j != request.None; j = b.tree.Parent(j) {
		if b.Rows[j].Part != request.None {
			return int(b.Rows[j].Part)
		}
	}
	return request.None
}

// headlessPart returns the part for the missing request span above thread i.
func (b *builder) headlessPart(i int) int {
	key := spanKey{b.dump.TraceOf(i), b.dump.Identity(i).Parent}
	part, ok := b.headless[key]
	if !ok {
		part = b.newHeadless()
		b.headless[key] = part
		b.report(trace.RequestRootMissing, i, b.Name(i))
	}
	return part
}

func (b *builder) newHeadless() int {
	b.Parts = memory.Append(b.Parts, request.Part{
		Root: request.None, Role: request.Other, Gateway: request.None, Proc: request.None,
		TTFT: request.Unknown, E2E: request.Unknown, PromptTokens: request.Unknown, CompletionTokens: request.Unknown, CachedTokens: request.Unknown,
	})
	return len(b.Parts) - 1
}

// failThread sets how a thread whose span has an error status ended.
func (b *builder) failThread(t int) {
	reason := "error"
	for a := range b.dump.Args.All(b.Rows[b.Threads[t].Row].Args) {
		if a.Key == b.keys.reason || a.Key == b.keys.message {
			reason = string(a.Bytes())
		}
	}
	b.Fail(t, statusOfReason(reason), reason)
}
