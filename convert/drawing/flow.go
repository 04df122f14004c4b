package drawing

import (
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// findEdges collects the arrows between spans: the links that the producer
// recorded, gateway to server, prefill to decode, server to transfer worker, and
// calls between services.
func (l *layout) findEdges(b *trace.Builder) {
	add := func(from, to int, name trace.Sym) {
		if from != request.None && to != request.None && from != to && l.drawn(from) && l.drawn(to) {
			l.edges = memory.Append(l.edges, edge{int32(from), int32(to), name})
		}
	}
	next, call, route := b.Intern("next"), b.Intern("call"), b.Intern("route")
	links := l.set.Links
	for i := range l.set.All() {
		for ; len(links) > 0 && int(links[0].To) == i; links = links[1:] {
			add(int(links[0].From), i, next)
		}
		if !l.drawn(i) {
			continue
		}
		p := l.set.Tree.Parent(i)
		switch {
		case p == request.None || l.set.ProcOf(p) == l.set.ProcOf(i):
		case l.set.Kind(i) == request.Generic:
			add(p, i, call)
		case l.set.Kind(i) == request.Root:
			add(p, i, route)
		}
	}
	transfer, send := b.Intern("kv transfer"), b.Intern("kv send")
	for r := range l.set.AllRequests() {
		l.handovers(&l.set.Requests[r], func(from, to int) { add(from, to, transfer) }, func(from, to int) { add(from, to, send) })
	}
}

// handovers finds where the KV cache goes from one thread to another: rank by
// rank from the prefill to the decode server, and from the scheduler that
// computed it to the transfer it queued.
func (l *layout) handovers(r *request.Request, transfer, send func(from, to int)) {
	byRole := map[request.Role]*request.Part{}
	for _, p := range l.set.PartsOf(r) {
		part := &l.set.Parts[p]
		if part.Role == request.Sender {
			for _, t := range l.set.ThreadsOf(part) {
				if prefill := byRole[request.Prefill]; prefill != nil {
					send(l.stage(l.threadOn(prefill, l.set.Threads[t].Proc), request.Prefilling), l.stage(t, request.SendQueueing))
				}
			}
			continue
		}
		byRole[part.Role] = part
	}
	prefill, decode := byRole[request.Prefill], byRole[request.Decode]
	if prefill == nil || decode == nil {
		return
	}
	for _, t := range l.set.ThreadsOf(decode) {
		to := l.afterTransfer(t)
		if to == request.None {
			continue
		}
		from := l.threadOfTP(prefill, l.set.Procs[l.set.Threads[t].Proc].Rank.TP)
		transfer(l.stage(from, request.Sending), to)
	}
}

// afterTransfer returns the stage that begins on thread t when the KV cache has
// arrived, or None. The wait for it begins before the
// transfer does, so that an arrow to it would point backward.
func (l *layout) afterTransfer(t int) int {
	arrived := false
	for _, i := range l.set.StagesOf(t) {
		if arrived {
			return int(i)
		}
		arrived = l.set.Row(int(i)).Means == request.Receiving
	}
	return request.None
}

// stage returns the last first-level stage of thread t that means m.
func (l *layout) stage(t int, m request.Meaning) int {
	found := request.None
	if t == request.None {
		return found
	}
	for _, i := range l.set.StagesOf(t) {
		if l.set.Row(int(i)).Means == m {
			found = int(i)
		}
	}
	return found
}

func (l *layout) threadOn(p *request.Part, proc int) int {
	for _, t := range l.set.ThreadsOf(p) {
		if l.set.Threads[t].Proc == proc {
			return t
		}
	}
	return request.None
}

// threadOfTP returns the scheduler thread of the given TP rank, else the lead.
func (l *layout) threadOfTP(p *request.Part, tp int16) int {
	for _, t := range l.set.ThreadsOf(p) {
		if l.set.Procs[l.set.Threads[t].Proc].Rank.TP == tp && l.stage(t, request.Sending) != request.None {
			return t
		}
	}
	return l.set.Lead(p)
}

// edgeSize is about how many bytes [drawing.link] looks at for each edge, or the kernel maps for it:
// the slices of its ends lie apart.
const edgeSize = 256

// link draws the edges whose ends are in this view.
func (d *drawing) link() {
	for i := range memory.Each(len(d.edges), edgeSize) {
		e := d.edges[i]
		if from, to := d.slice[e.from], d.slice[e.to]; from != 0 && to != 0 {
			d.b.Flow(trace.Flow{From: from, To: to, Name: e.name})
		}
	}
}
