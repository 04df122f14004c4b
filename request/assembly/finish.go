package assembly

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
)

// finishParts derives the data of parts from their threads.
func (b *builder) finishParts() {
	parallel.Rows(len(b.Threads), threadSize, func(from, to int) {
		for t := from; t < to; t++ {
			b.boundThread(t)
		}
	})
	b.OwnThreads(func(threads []int) { slices.SortFunc(threads, b.compareThreads) })
	alone := parallel.Gather(len(b.Parts), threadSize, func(list []int32, from, to int) []int32 {
		for i := from; i < to; i++ {
			if b.finishPart(&b.Parts[i]); b.Parts[i].Proc == request.None && b.Parts[i].Root != request.None {
				list = append(list, int32(i))
			}
		}
		return list
	})
	for _, i := range alone {
		p := &b.Parts[i]
		p.Proc = b.serviceProc(p.Root, p.Role)
	}
}

// finishPart does so for one part. It leaves the proc unset if no thread names one.
func (b *builder) finishPart(p *request.Part) {
	p.Trace = b.traceOf(p)
	if p.Role == request.Unified {
		p.Role = b.roleOfThreads(p)
	}
	if p.Root == request.None {
		b.finishHeadless(p)
		return
	}
	if b.Implausible(p.Root) && len(b.ThreadsOf(p)) > 0 {
		b.boundByThreads(p)
	}
	p.Proc = b.rootProc(p)
}

// traceOf returns the trace ID of a part.
func (b *builder) traceOf(p *request.Part) [2]uint64 {
	i := p.Root
	if i == request.None && len(b.ThreadsOf(p)) > 0 {
		if i = b.Threads[b.ThreadsOf(p)[0]].Row; i == request.None {
			i = int(b.StagesOf(b.ThreadsOf(p)[0])[0])
		}
	}
	if i == request.None {
		return [2]uint64{}
	}
	return b.dump.TraceOf(i)
}

// roleOfThreads returns the role according to a part's threads, for roots that do not say: in the v1a
// layout, all of them are named "Req".
func (b *builder) roleOfThreads(p *request.Part) request.Role {
	for _, t := range b.ThreadsOf(p) {
		if role := b.Procs[b.Threads[t].Proc].Role; role == request.Prefill || role == request.Decode {
			return role
		}
	}
	return p.Role
}

// compareThreads orders threads by start and proc.
func (b *builder) compareThreads(x, y int) int {
	return cmp.Or(cmp.Compare(b.Threads[x].Start, b.Threads[y].Start), compareProcs(&b.Procs[b.Threads[x].Proc], &b.Procs[b.Threads[y].Proc]), cmp.Compare(x, y))
}

// boundThread sets the bounds of a thread; if its own span is missing or implausible, by its stages.
func (b *builder) boundThread(t int) {
	th, stages := &b.Threads[t], b.StagesOf(t)
	if th.Row != request.None && (!b.Implausible(th.Row) || len(stages) == 0) {
		row := b.Row(th.Row)
		th.Start, th.End = row.Start, row.End
		return
	}
	for k, i := range stages {
		row := b.Row(int(i))
		if k == 0 || row.Start < th.Start {
			th.Start = row.Start
		}
		if k == 0 || row.End > th.End {
			th.End = row.End
		}
	}
}

// boundByThreads sets the bounds of a part by its threads.
func (b *builder) boundByThreads(p *request.Part) {
	for k, t := range b.ThreadsOf(p) {
		from, to := b.Threads[t].Start, b.Threads[t].End
		if k == 0 || from < p.Start {
			p.Start = from
		}
		if k == 0 || to > p.End {
			p.End = to
		}
	}
}

// finishHeadless sets the bounds and role of a part without a root by its threads.
func (b *builder) finishHeadless(p *request.Part) {
	b.boundByThreads(p)
	for _, t := range b.ThreadsOf(p) {
		if role := b.Procs[b.Threads[t].Proc].Role; role != request.Other {
			p.Role = role
		}
	}
	if p.Role == request.Other && slices.ContainsFunc(b.ThreadsOf(p), func(t int) bool { return isScheduler(b.Procs[b.Threads[t].Proc].Label) }) {
		p.Role = request.Unified
	}
	if len(b.ThreadsOf(p)) > 0 {
		p.Proc = b.Threads[b.ThreadsOf(p)[0]].Proc
	}
}
