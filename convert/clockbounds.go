package convert

import (
	"github.com/sgtrace/sgtrace/internal/align"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// clockBounds returns what requests that crossed hosts say about their clocks,
// clockOf being the clock of a proc. Requests that did not finish do not count:
// their spans end when somebody gives up.
func clockBounds(set *request.Set, clockOf func(proc int) int) []align.Bound {
	c := crossing{set: set, clockOf: clockOf}
	sending, _ := set.Dump.Syms.Lookup("Sending concurrent requests")
	for r := range set.Requests {
		q := &set.Requests[r]
		if q.Status != request.Finished {
			continue
		}
		var prefill, decode, router *request.Part
		for _, p := range q.Parts {
			switch part := &set.Parts[p]; part.Role {
			case request.Router:
				router = part
			case request.Prefill:
				prefill = part
			case request.Decode:
				decode = part
			}
		}
		switch {
		case q.Gateway != request.None && q.Flags&request.SharedGateway == 0:
			c.around(q, q.Gateway, sending)
		case router != nil && router.Root != request.None:
			c.around(q, router.Root, sending)
		}
		if prefill != nil && decode != nil {
			c.handover(prefill, decode)
		}
	}
	return c.bounds
}

// crossing collects inequalities between the clocks of hosts.
type crossing struct {
	set     *request.Set
	clockOf func(proc int) int
	bounds  []align.Bound
}

// before notes that the instant x of proc p was before the instant y of proc q.
func (c *crossing) before(p int, x trace.Time, q int, y trace.Time) {
	a, b := c.clockOf(p), c.clockOf(q)
	if a != b {
		c.bounds = append(c.bounds, align.Bound{A: a, B: b, At: int64(y), Lo: align.NoLo, Hi: int64(y - x)})
	}
}

// around notes that the request spans begin after the span of the gateway or
// router that is around them, or after it says that it sends them, and that the
// answering one ends before it.
func (c *crossing) around(q *request.Request, outer int, sending trace.Sym) {
	span := c.set.Dump.Span(outer)
	proc, sent := c.set.ProcOf(outer), span.Start
	for e := range c.set.Dump.Events(outer) {
		if sending != 0 && e.Name == sending && e.Time > sent && e.Time < span.End {
			sent = e.Time
		}
	}
	answering := c.set.Answering(q)
	for _, p := range q.Parts {
		part := &c.set.Parts[p]
		if part.Root == request.None || part.Root == outer || part.Role != request.Prefill && part.Role != request.Decode && part.Role != request.Unified {
			continue
		}
		root := c.set.Dump.Span(part.Root)
		own := c.set.ProcOf(part.Root)
		c.before(proc, sent, own, root.Start)
		if p == answering {
			c.before(own, root.End, proc, span.End)
		}
	}
}

// handover notes what passes between the halves of a request. The decode server
// tells where it wants the KV cache before the prefill server can leave its
// bootstrap, and has it after the prefill server has begun to send.
func (c *crossing) handover(prefill, decode *request.Part) {
	for _, t := range decode.Threads {
		own := c.set.Threads[t].Proc
		s := c.lastStages(t, "decode_bootstrap", "decode_transferred")
		if s[1] == request.None {
			continue
		}
		for _, u := range prefill.Threads {
			other := c.set.Threads[u].Proc
			if c.set.Procs[own].Rank.TP != c.set.Procs[other].Rank.TP {
				continue
			}
			o := c.lastStages(u, "prefill_bootstrap", "prefill_transfer_kv_cache")
			if o[1] != request.None {
				c.before(other, c.set.Dump.Span(o[1]).Start, own, c.set.Dump.Span(s[1]).End)
			}
			if s[0] != request.None && o[0] != request.None {
				c.before(own, c.set.Dump.Span(s[0]).Start, other, c.set.Dump.Span(o[0]).End)
			}
		}
	}
}

// lastStages returns the last first-level stages of thread t that have the given
// names, None for each that is missing.
func (c *crossing) lastStages(t int, names ...string) []int {
	found := make([]int, len(names))
	for k, name := range names {
		found[k] = request.None
		for _, i := range c.set.Threads[t].Stages {
			if c.set.Name(int(i)) == name {
				found[k] = int(i)
			}
		}
	}
	return found
}
