package analyze

import (
	"github.com/sgtrace/sgtrace/internal/align"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// hostClocks relate the clocks of the hosts of a set, as far as its requests
// prove that they differ.
//
// What a request causes on one host comes before its effect on another: a
// server's span lies in the gateway's around it, the prefill server leaves its
// bootstrap after the decode server has entered its own, the KV cache is there
// after it has been computed. While the recorded times contradict none of that,
// nothing is moved; else the clocks are put where internal/align finds them.
type hostClocks struct {
	of     []int // clock, by proc
	fits   []align.ClockFit
	moved  bool
	bounds []align.Bound
}

// clockKey tells clocks apart. Spans without a host (gateways, containers without
// a machine id) have one clock per role.
type clockKey struct {
	host string
	role request.Role
}

func newHostClocks(s *request.Set) *hostClocks {
	c := &hostClocks{of: make([]int, len(s.Procs))}
	index := map[clockKey]int{}
	for p := range s.Procs {
		key := clockKey{host: s.Procs[p].Host}
		if key.host == "" {
			key.role = s.Procs[p].Role
		}
		if _, ok := index[key]; !ok {
			index[key] = len(index)
		}
		c.of[p] = index[key]
	}
	if len(index) < 2 {
		return c
	}
	for r := range s.Requests {
		if attributable(s, &s.Requests[r]) {
			c.addRequest(s, &s.Requests[r])
		}
	}
	if c.contradicted() {
		c.moved = true
		c.fits = align.Solve(align.Problem{Clocks: len(index), Bounds: c.bounds}).Clocks
	}
	c.bounds = nil
	return c
}

// contradicted tells whether more than a few bounds do not hold on the clocks as
// recorded. A few are requests that were joined wrongly.
func (c *hostClocks) contradicted() bool {
	const few = 100 // one in so many
	n := 0
	for _, b := range c.bounds {
		if b.Hi < -clockSlack {
			n++
		}
	}
	return n*few > len(c.bounds)
}

// before notes that the instant x of proc p was before the instant y of proc q.
func (c *hostClocks) before(p int, x trace.Time, q int, y trace.Time) {
	if p == request.None || q == request.None || c.of[p] == c.of[q] || !plausible(x, y) {
		return
	}
	c.bounds = append(c.bounds, align.Bound{A: c.of[p], B: c.of[q], At: int64(y), Lo: align.NoLo, Hi: int64(y - x)})
}

// addRequest notes what r says about clocks.
func (c *hostClocks) addRequest(s *request.Set, r *request.Request) {
	var prefill, decode *request.Part
	outer := outerSpan(s, r)
	for _, p := range r.Parts {
		part := &s.Parts[p]
		switch part.Role {
		case request.Prefill:
			prefill = part
		case request.Decode:
			decode = part
		case request.Unified:
		default:
			continue
		}
		c.addInside(s, part)
		if outer == request.None || part.Root == request.None || r.Flags&request.SharedGateway != 0 {
			continue
		}
		around, root := s.Dump.Span(outer), s.Dump.Span(part.Root)
		c.before(s.ProcOf(outer), around.Start, s.ProcOf(part.Root), root.Start)
		if p == s.Answering(r) {
			c.before(s.ProcOf(part.Root), root.End, s.ProcOf(outer), around.End)
		}
	}
	if prefill != nil && decode != nil {
		c.addHandover(s, prefill, decode)
	}
}

// addInside notes that the lead rank of a part, which may be on another host than
// its server, works on it after that has got the request and before it has
// answered.
func (c *hostClocks) addInside(s *request.Set, p *request.Part) {
	lead := s.Lead(p)
	if lead == request.None || p.Root == request.None || len(s.Threads[lead].Stages) == 0 {
		return
	}
	stages := s.Threads[lead].Stages
	server, rank := s.ProcOf(p.Root), s.Threads[lead].Proc
	c.before(server, p.Start, rank, s.Dump.Span(int(stages[0])).Start)
	c.before(rank, s.Dump.Span(int(stages[len(stages)-1])).End, server, p.End)
}

// addHandover notes what passes between the lead ranks of the halves of a
// request.
func (c *hostClocks) addHandover(s *request.Set, prefill, decode *request.Part) {
	p, d := s.Lead(prefill), s.Lead(decode)
	if p == request.None || d == request.None {
		return
	}
	own, other := s.Threads[p].Proc, s.Threads[d].Proc
	bootstrap, forward := lastStage(s, p, "prefill_bootstrap"), lastStage(s, p, "prefill_forward")
	connect, arrival := lastStage(s, d, "decode_bootstrap"), lastStage(s, d, "decode_transferred")
	if bootstrap != nil && connect != nil {
		c.before(other, connect.Start, own, bootstrap.End)
	}
	if forward != nil && arrival != nil {
		c.before(own, forward.End, other, arrival.End)
	}
}

// lastStage returns the last first-level stage of thread t with the given name,
// or nil.
func lastStage(s *request.Set, t int, name string) *otlpjson.Span {
	stages := s.Threads[t].Stages
	for k := len(stages) - 1; k >= 0; k-- {
		if i := int(stages[k]); s.Name(i) == name {
			return s.Dump.Span(i)
		}
	}
	return nil
}

// shift returns what has to be added, at about the given instant, to a time of
// proc p to have the time of proc q. It is the same for all of a request, so that
// no duration changes.
func (c *hostClocks) shift(p, q int, at trace.Time) trace.Time {
	if !c.moved || p == request.None || q == request.None || c.of[p] == c.of[q] {
		return 0
	}
	from, to := &c.fits[c.of[p]], &c.fits[c.of[q]]
	if from.Component != to.Component {
		return 0
	}
	return trace.Time(from.ToReference(int64(at)) - to.ToReference(int64(at)))
}
