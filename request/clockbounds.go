package request

import (
	"slices"

	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// ClockBounds returns the bounds on clock offsets from requests that crossed hosts: a cause on one host
// precedes its effect on another. clockOf returns the clock of a proc. Requests that did not finish are
// ignored: their spans end when somebody gives up.
func (s *Set) ClockBounds(clockOf func(proc int) int) []align.Bound {
	clocks := make([]int, len(s.Procs))
	for p := range clocks {
		clocks[p] = clockOf(p)
	}
	if len(slices.Compact(slices.Clone(clocks))) < 2 {
		return nil // there is only one clock
	}
	return parallel.Gather(len(s.Requests), RequestSize, func(list []align.Bound, from, to int) []align.Bound {
		c := crossing{set: s, clocks: clocks, bounds: list}
		for r := from; r < to; r++ {
			c.add(&s.Requests[r])
		}
		return c.bounds
	})
}

// crossing collects bounds between the clocks of hosts.
type crossing struct {
	set    *Set
	clocks []int // by proc
	bounds []align.Bound
}

// add collects the bounds of a request.
func (c *crossing) add(q *Request) {
	if q.Status != Finished {
		return
	}
	var prefill, decode, router *Part
	for _, p := range c.set.PartsOf(q) {
		part := &c.set.Parts[p]
		switch part.Role {
		case Router:
			router = part
			continue
		case Prefill:
			prefill = part
		case Decode:
			decode = part
		case Unified:
		default:
			continue
		}
		c.inside(part)
	}
	switch {
	case q.Gateway != None && q.Flags&SharedGateway == 0:
		c.around(q, q.Gateway)
	case router != nil && router.Root != None:
		c.around(q, router.Root)
	}
	if prefill != nil && decode != nil {
		c.handover(prefill, decode)
	}
}

// before records that instant x of proc p preceded instant y of proc q. Times beyond Farthest are ignored.
func (c *crossing) before(p int, x trace.Time, q int, y trace.Time) {
	a, b := c.clocks[p], c.clocks[q]
	if a != b && max(x, y) <= Farthest && min(x, y) >= -Farthest {
		c.bounds = memory.Append(c.bounds, align.Bound{A: a, B: b, At: int64(y), Lo: align.NoLo, Hi: int64(y - x)})
	}
}

// inside records that the ranks of a part, which may be on other hosts than its server, start on it after
// the server has received the request, and that the lead rank, whose tokens are the answer, ends before the
// server does.
func (c *crossing) inside(p *Part) {
	if p.Root == None {
		return
	}
	root, server, lead := c.set.Row(p.Root), c.set.ProcOf(p.Root), c.set.Lead(p)
	for _, t := range c.set.ThreadsOf(p) {
		th := &c.set.Threads[t]
		stages := c.set.StagesOf(t)
		if c.clocks[th.Proc] == c.clocks[server] || len(stages) == 0 {
			continue
		}
		c.before(server, root.Start, th.Proc, c.set.Row(int(stages[0])).Start)
		if t == lead {
			c.before(th.Proc, c.set.Row(int(stages[len(stages)-1])).End, server, root.End)
		}
	}
}

// around records that request spans start after the gateway's or router's span around them, or after it
// says that it sends them, and that the answering one ends before it.
func (c *crossing) around(q *Request, outer int) {
	span := c.set.Row(outer)
	proc, sent := c.set.ProcOf(outer), span.Start
	for _, e := range c.set.InstantsOf(outer) {
		if e.Kind == HandedOn && e.Time > sent && e.Time < span.End {
			sent = e.Time
		}
	}
	answering := c.set.Answering(q)
	for _, p := range c.set.PartsOf(q) {
		part := &c.set.Parts[p]
		if part.Root == None || part.Root == outer || part.Role != Prefill && part.Role != Decode && part.Role != Unified {
			continue
		}
		root := c.set.Row(part.Root)
		own := c.set.ProcOf(part.Root)
		c.before(proc, sent, own, root.Start)
		if p == answering {
			c.before(own, root.End, proc, span.End)
		}
	}
}

// handover records what passes between the two halves of a request. The decode server says where it wants
// the KV cache before the prefill server can leave bootstrap, and has the cache only after the prefill
// server has begun to send it or, if that is unknown, has computed it.
func (c *crossing) handover(prefill, decode *Part) {
	for _, t := range c.set.ThreadsOf(decode) {
		own := c.set.Threads[t].Proc
		connect, arrival := c.set.LastStage(t, ReceiveConnecting), c.set.LastStage(t, Receiving)
		if arrival == nil {
			continue
		}
		for _, u := range c.set.ThreadsOf(prefill) {
			other := c.set.Threads[u].Proc
			if c.set.Procs[own].Rank.TP != c.set.Procs[other].Rank.TP {
				continue
			}
			if send := c.set.LastStage(u, Sending); send != nil {
				c.before(other, send.Start, own, arrival.End)
			} else if forward := c.set.LastStage(u, Prefilling); forward != nil {
				c.before(other, forward.End, own, arrival.End)
			}
			if bootstrap := c.set.LastStage(u, SendConnecting); connect != nil && bootstrap != nil {
				c.before(own, connect.Start, other, bootstrap.End)
			}
		}
	}
}
