package assembly

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// join builds requests from parts. Parts belong together if they are in one envelope (v1), if they have the
// same bootstrap room, or, without a room, if a trace has exactly one prefill and one decode part. A room
// with several prefill, decode, or unified parts joins only parts of the same trace.
func (b *builder) join() {
	g := order.NewUnion(len(b.Parts))
	flags := memory.Make[request.Flags](len(b.Parts))
	b.joinEnvelopes(g)
	b.joinRooms(g, flags)
	b.joinTraces(g)
	b.joinRetries(g)
	b.ReserveRequests(g.Groups(), len(b.Parts))
	for parts := range g.All() {
		b.AddRequest(request.Request{Gateway: request.None}, parts...)
	}
	parallel.Rows(len(b.Requests), threadSize, func(from, to int) {
		texts := b.KeepTexts()
		defer texts.Release()
		for r := from; r < to; r++ {
			b.sortParts(b.PartsOf(&b.Requests[r]))
			b.readRequest(&b.Requests[r], flags, texts)
		}
	})
	b.sortRequests()
	b.Own()
	b.flagCollisions()
}

func (b *builder) joinEnvelopes(g order.Union) {
	envelope := func(p int) int {
		if root := b.Parts[p].Root; root != request.None {
			if e := b.tree.Parent(root); e != request.None && b.Rows[e].Kind == request.Envelope {
				return e
			}
		}
		return request.None
	}
	for parts := range sharing(len(b.Parts), func(p int) (uint64, bool) { return uint64(envelope(p)), envelope(p) != request.None },
		func(p, q int) bool { return envelope(p) == envelope(q) }) {
		g.Join(parts...)
	}
}

// joinRooms joins the parts of each bootstrap room.
func (b *builder) joinRooms(g order.Union, flags []request.Flags) {
	for parts := range b.sameText(len(b.Parts), func(p int) request.Text { return b.Parts[p].Room }) {
		if b.count(parts, request.Prefill) <= 1 && b.count(parts, request.Decode) <= 1 && b.count(parts, request.Unified) <= 1 {
			g.Join(parts...)
			continue
		}
		byTrace := map[[2]uint64][]int{}
		for _, p := range parts {
			id := b.Parts[p].Trace
			byTrace[id] = append(byTrace[id], p)
		}
		for _, same := range byTrace {
			if b.count(same, request.Prefill) <= 1 && b.count(same, request.Decode) <= 1 && b.count(same, request.Unified) <= 1 {
				g.Join(same...)
			}
		}
		for _, p := range parts {
			flags[p] |= request.RoomCollision
		}
		b.report(trace.RoomCollision, b.Parts[parts[0]].Root, b.Text(b.Parts[parts[0]].Room))
	}
}

func (b *builder) count(parts []int, role request.Role) int {
	return order.Count(parts, func(p int) bool { return b.Parts[p].Role == role })
}

// joinTraces joins prefill and decode parts without a room.
func (b *builder) joinTraces(g order.Union) {
	half := func(p int) (uint64, bool) {
		part := &b.Parts[p]
		return part.Trace[1], (part.Role == request.Prefill || part.Role == request.Decode) && part.Trace != [2]uint64{}
	}
	for parts := range sharing(len(b.Parts), half, func(p, q int) bool { return b.Parts[p].Trace == b.Parts[q].Trace }) {
		if len(parts) != 2 || b.count(parts, request.Prefill) != 1 {
			continue
		}
		if b.Parts[parts[0]].Room == 0 || b.Parts[parts[1]].Room == 0 {
			g.Join(parts[0], parts[1])
		}
	}
}

// joinRetries joins work in flight on a server that died with the part of the server to which the gateway
// sent the request next.
func (b *builder) joinRetries(g order.Union) {
	const skew = 10_000_000 // ns: clocks under NTP differ by less
	type attempts struct{ broken, answered []int }
	by := map[int]*attempts{} // by gateway span; those with a part without a root
	for p := range b.AllParts() {
		if part := &b.Parts[p]; part.Root == request.None && part.Gateway != request.None && part.Role == request.Unified {
			if by[part.Gateway] == nil {
				by[part.Gateway] = &attempts{}
			}
			by[part.Gateway].broken = append(by[part.Gateway].broken, p)
		}
	}
	if len(by) == 0 {
		return
	}
	for p := range b.AllParts() {
		if part := &b.Parts[p]; part.Root != request.None && by[part.Gateway] != nil {
			by[part.Gateway].answered = append(by[part.Gateway].answered, p)
		}
	}
	for _, a := range by {
		for _, p := range a.broken {
			if len(a.answered) == 1 && b.Parts[p].End <= b.Parts[a.answered[0]].Start+skew {
				g.Join(p, a.answered[0])
			}
		}
	}
}

// sortParts sorts the parts of a request by role, then by start.
func (b *builder) sortParts(parts []int) {
	slices.SortFunc(parts, func(x, y int) int {
		p, q := &b.Parts[x], &b.Parts[y]
		return cmp.Or(cmp.Compare(roleOrder[p.Role], roleOrder[q.Role]), cmp.Compare(p.Start, q.Start),
			b.compareRoots(p.Root, q.Root), cmp.Compare(x, y))
	})
}

// readRequest fills in a request from its parts.
func (b *builder) readRequest(r *request.Request, flags []request.Flags, texts request.TextKeeper) {
	parts := b.PartsOf(r)
	for _, p := range parts {
		part := &b.Parts[p]
		r.Flags |= flags[p]
		r.Room = cmp.Or(r.Room, part.Room)
		if part.Root == request.None {
			r.Flags |= request.MissingRoot
		}
		for _, t := range b.ThreadsOf(part) {
			if b.Threads[t].Row == request.None && b.Parts[p].Root == request.None {
				r.Flags |= request.MissingThread
			}
		}
		if part.Gateway != request.None {
			r.Gateway = part.Gateway
		}
	}
	alone := b.count(parts, request.Sender) == len(parts)
	if alone || (b.count(parts, request.Prefill) > 0) != (b.count(parts, request.Decode) > 0) && b.count(parts, request.Unified) == 0 {
		r.Flags |= request.Unjoined
	}
	r.Start, r.End = b.bounds(r)
	answer := &b.Parts[b.Answering(r)]
	if r.Gateway != request.None {
		r.GatewayID = texts.Keep([]byte(b.gatewayID(r.Gateway)))
	}
	r.RID = cmp.Or(answer.FullID, answer.RID)
	for _, p := range parts {
		r.RID = cmp.Or(r.RID, b.Parts[p].FullID, b.Parts[p].RID)
	}
	if r.RID == 0 {
		r.RID = texts.Keep([]byte(request.TraceRID(b.TraceID(r))))
	}
	status, reason := b.statusOf(r, answer)
	r.Status, r.Reason = status, b.Syms.Intern(reason)
	if alone && r.Status == request.Finished {
		r.Status = request.Unfinished // a transfer whose request is not in the dump
	}
}

func (b *builder) compareRoots(x, y int) int {
	if x == request.None || y == request.None {
		return cmp.Compare(x, y)
	}
	return b.compare(x, y)
}

// bounds returns the interval of r's outermost span; without gateway or router, the union of its parts.
func (b *builder) bounds(r *request.Request) (from, to trace.Time) {
	if r.Gateway != request.None && !b.Implausible(r.Gateway) {
		s := b.Row(r.Gateway)
		return s.Start, s.End
	}
	for k, p := range b.PartsOf(r) {
		part := &b.Parts[p]
		if part.Role == request.Router {
			return part.Start, part.End
		}
		if k == 0 || part.Start < from {
			from = part.Start
		}
		if k == 0 || part.End > to {
			to = part.End
		}
	}
	return from, to
}

// sortRequests sorts requests by start, with ties broken by their content.
func (b *builder) sortRequests() {
	keys := memory.Make[order.Key](len(b.Requests))
	for i := range keys {
		const sign = 1 << 63 // times before 1970 sort first
		keys[i] = order.Key{Time: uint64(b.Requests[i].Start) ^ sign, Index: uint32(i)}
	}
	keys, scratch := order.ByTime(keys, memory.Make[order.Key](len(keys)))
	memory.Free(scratch)
	for from, to := 0, 0; from < len(keys); from = to {
		for to = from + 1; to < len(keys) && keys[to].Time == keys[from].Time; to++ {
		}
		slices.SortFunc(keys[from:to], func(p, q order.Key) int {
			x, y := &b.Requests[p.Index], &b.Requests[q.Index]
			tx, ty := b.Parts[b.PartsOf(x)[0]].Trace, b.Parts[b.PartsOf(y)[0]].Trace
			return cmp.Or(cmp.Compare(x.End, y.End), cmp.Compare(b.Text(x.RID), b.Text(y.RID)), cmp.Compare(tx[0], ty[0]), cmp.Compare(tx[1], ty[1]),
				b.compareRoots(b.Parts[b.PartsOf(x)[0]].Root, b.Parts[b.PartsOf(y)[0]].Root))
		})
	}
	sorted := memory.Make[request.Request](len(keys))
	parallel.Rows(len(keys), request.RequestSize, func(from, to int) {
		for i, k := range keys[from:to] {
			sorted[from+i] = b.Requests[k.Index]
		}
	})
	memory.Free(keys)
	memory.Free(b.Requests)
	b.Requests = sorted
}

// flagCollisions flags requests that share an ID or a gateway span. SGLang cuts a rid at its last "_", so
// user_42_turn_1 becomes 1.
func (b *builder) flagCollisions() {
	named := func(p int) request.Text {
		if part := &b.Parts[p]; part.Role != request.Sender && part.Role != request.Router {
			return part.RID
		}
		return 0
	}
	for parts := range b.sameText(len(b.Parts), named) {
		rid := b.Text(b.Parts[parts[0]].RID)
		for k, p := range parts {
			parts[k] = b.Parts[p].Request
		}
		of := order.Distinct(parts)
		if len(of) < 2 {
			continue
		}
		for _, r := range of {
			b.Requests[r].Flags |= request.RIDCollision
		}
		b.report(trace.RIDCollision, b.Parts[b.PartsOf(&b.Requests[of[0]])[0]].Root, len(of), rid)
	}
	gateway := func(r int) int { return b.Requests[r].Gateway }
	for of := range sharing(len(b.Requests), func(r int) (uint64, bool) { return uint64(gateway(r)), gateway(r) != request.None },
		func(q, r int) bool { return gateway(q) == gateway(r) }) {
		for _, r := range of {
			b.Requests[r].Flags |= request.SharedGateway
		}
	}
}

// statusOf returns how r ended, and why: by what the threads, the answering server, and the gateway say, in
// this order of trust.
func (b *builder) statusOf(r *request.Request, answer *request.Part) (request.Status, string) {
	status, reason := request.Finished, ""
	for _, p := range b.PartsOf(r) {
		for _, t := range b.ThreadsOf(&b.Parts[p]) {
			if th := &b.Threads[t]; th.Status != request.Finished && (reason == "" || status == request.Aborted && th.Status == request.Failed) {
				status, reason = th.Status, b.ReasonOf(t)
			}
		}
	}
	switch {
	case reason != "":
		return status, reason
	case b.Syms.Name(answer.FinishReason) == "abort":
		return request.Aborted, "aborted while running"
	}
	if r.Gateway != request.None {
		switch code := b.gatewayStatus(r.Gateway); {
		case code == 499:
			return request.Aborted, "client closed the connection (HTTP 499)"
		case code >= 400:
			return request.Failed, fmt.Sprintf("HTTP %d", code)
		}
	}
	if answer.Root == request.None && (r.Gateway == request.None || b.gatewayStatus(r.Gateway) == 0) {
		return request.Unfinished, ""
	}
	return request.Finished, ""
}
