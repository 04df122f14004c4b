package assembly

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// join makes requests of parts. Parts belong together when they lie in one
// envelope (v1), when they have the same bootstrap room, or, without a room,
// when a trace has exactly one prefill and one decode part. A room that does
// not tell the halves apart joins nothing across traces.
func (b *builder) join() {
	g := newGroups(len(b.Parts))
	flags := make([]request.Flags, len(b.Parts))
	b.joinEnvelopes(g)
	b.joinRooms(g, flags)
	b.joinTraces(g)
	b.joinRetries(g)

	members := make([][]int, len(b.Parts)) // by the lowest part of a group
	requests := 0
	for p := range b.AllParts() {
		root := g.find(p)
		if members[root] == nil {
			requests++
		}
		members[root] = append(members[root], p)
	}
	b.Requests = make([]request.Request, 0, requests)
	for p := range b.AllParts() {
		if members[p] != nil {
			b.addRequest(members[p], flags)
		}
	}
	b.sortRequests()
	b.Own()
	b.flagCollisions()
}

func (b *builder) joinEnvelopes(g groups) {
	first := map[int]int{}
	for p := range b.AllParts() {
		if b.Parts[p].Root == request.None {
			continue
		}
		e := b.tree.Parent(b.Parts[p].Root)
		if e == request.None || b.Rows[e].Kind != request.Envelope {
			continue
		}
		if other, ok := first[e]; ok {
			g.union(other, p)
		} else {
			first[e] = p
		}
	}
}

// joinRooms joins the parts of every bootstrap room.
func (b *builder) joinRooms(g groups, flags []request.Flags) {
	rooms := map[string][]int{}
	var order []string
	for p := range b.AllParts() {
		if room := b.Parts[p].Room; room != "" {
			if rooms[room] == nil {
				order = append(order, room)
			}
			rooms[room] = append(rooms[room], p)
		}
	}
	for _, room := range order {
		parts := rooms[room]
		if b.count(parts, request.Prefill) <= 1 && b.count(parts, request.Decode) <= 1 && b.count(parts, request.Unified) <= 1 {
			g.unionAll(parts)
			continue
		}
		byTrace := map[[2]uint64][]int{}
		for _, p := range parts {
			id := b.Parts[p].Trace
			byTrace[id] = append(byTrace[id], p)
		}
		for _, same := range byTrace {
			if b.count(same, request.Prefill) <= 1 && b.count(same, request.Decode) <= 1 && b.count(same, request.Unified) <= 1 {
				g.unionAll(same)
			}
		}
		for _, p := range parts {
			flags[p] |= request.RoomCollision
		}
		b.report(trace.RoomCollision, b.Parts[parts[0]].Root, room)
	}
}

func (b *builder) count(parts []int, role request.Role) int {
	n := 0
	for _, p := range parts {
		if b.Parts[p].Role == role {
			n++
		}
	}
	return n
}

// joinTraces joins the halves that have no room to go by.
func (b *builder) joinTraces(g groups) {
	traces := map[[2]uint64][]int{}
	for p := range b.AllParts() {
		if r := b.Parts[p].Role; (r == request.Prefill || r == request.Decode) && b.Parts[p].Trace != [2]uint64{} {
			traces[b.Parts[p].Trace] = append(traces[b.Parts[p].Trace], p)
		}
	}
	for _, parts := range traces {
		if len(parts) != 2 || b.count(parts, request.Prefill) != 1 {
			continue
		}
		if x, y := b.Parts[parts[0]].Room, b.Parts[parts[1]].Room; x == "" || y == "" {
			g.union(parts[0], parts[1])
		}
	}
}

// joinRetries joins what was in flight on a server that died to the part of the server that
// the gateway sent it to next.
func (b *builder) joinRetries(g groups) {
	const skew = 10_000_000 // ns: clocks that NTP keeps differ by less
	type attempts struct{ broken, answered []int }
	by := map[int]*attempts{} // gateway spans of which some part has no root
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
				g.union(p, a.answered[0])
			}
		}
	}
}

// addRequest makes a request of the given parts.
func (b *builder) addRequest(parts []int, flags []request.Flags) {
	slices.SortFunc(parts, func(x, y int) int {
		p, q := &b.Parts[x], &b.Parts[y]
		return cmp.Or(cmp.Compare(roleOrder[p.Role], roleOrder[q.Role]), cmp.Compare(p.Start, q.Start),
			b.compareRoots(p.Root, q.Root), cmp.Compare(x, y))
	})
	r := request.Request{Parts: parts, Gateway: request.None}
	for _, p := range parts {
		part := &b.Parts[p]
		r.Flags |= flags[p]
		if r.Room == "" {
			r.Room = part.Room
		}
		if part.Root == request.None {
			r.Flags |= request.MissingRoot
		}
		for _, t := range part.Threads {
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
	r.Start, r.End = b.bounds(&r)
	answer := &b.Parts[b.Answering(&r)]
	if r.Gateway != request.None {
		r.GatewayID = b.gatewayID(r.Gateway)
	}
	r.RID = cmp.Or(answer.FullID, answer.RID)
	for _, p := range parts {
		r.RID = cmp.Or(r.RID, b.Parts[p].FullID, b.Parts[p].RID)
	}
	if r.RID == "" {
		r.RID = request.TraceRID(b.TraceID(&r))
	}
	r.Status, r.Reason = b.statusOf(&r, answer)
	if alone && r.Status == request.Finished {
		r.Status = request.Unfinished // a transfer whose request is not in the dump
	}
	b.Requests = append(b.Requests, r)
}

func (b *builder) compareRoots(x, y int) int {
	if x == request.None || y == request.None {
		return cmp.Compare(x, y)
	}
	return b.compare(x, y)
}

// bounds returns the interval of the outermost span of r; without gateway or
// router that is the union of its parts.
func (b *builder) bounds(r *request.Request) (from, to trace.Time) {
	if r.Gateway != request.None && !b.Implausible(r.Gateway) {
		s := b.Row(r.Gateway)
		return s.Start, s.End
	}
	for k, p := range r.Parts {
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

// sortRequests sorts requests by start, with ties broken by what they are.
func (b *builder) sortRequests() {
	type place struct {
		start trace.Time
		index int
	}
	order := make([]place, len(b.Requests))
	for i := range order {
		order[i] = place{b.Requests[i].Start, i}
	}
	slices.SortFunc(order, func(p, q place) int {
		if p.start != q.start {
			return cmp.Compare(p.start, q.start)
		}
		x, y := &b.Requests[p.index], &b.Requests[q.index]
		tx, ty := b.Parts[x.Parts[0]].Trace, b.Parts[y.Parts[0]].Trace
		return cmp.Or(cmp.Compare(x.End, y.End), cmp.Compare(x.RID, y.RID), cmp.Compare(tx[0], ty[0]), cmp.Compare(tx[1], ty[1]),
			b.compareRoots(b.Parts[x.Parts[0]].Root, b.Parts[y.Parts[0]].Root))
	})
	sorted := make([]request.Request, len(order))
	for i, p := range order {
		sorted[i] = b.Requests[p.index]
	}
	b.Requests = sorted
}

// flagCollisions marks the requests that share an id or a gateway span with
// others. SGLang cuts a rid at its last "_", so that user_42_turn_1 becomes 1.
func (b *builder) flagCollisions() {
	rids, gateways := map[string][]int{}, map[int][]int{}
	for r := range b.AllRequests() {
		seen := map[string]bool{}
		for _, p := range b.Requests[r].Parts {
			if part := &b.Parts[p]; part.RID != "" && part.Role != request.Sender && part.Role != request.Router && !seen[part.RID] {
				seen[part.RID] = true
				rids[part.RID] = append(rids[part.RID], r)
			}
		}
		if g := b.Requests[r].Gateway; g != request.None {
			gateways[g] = append(gateways[g], r)
		}
	}
	for rid, rs := range rids {
		if len(rs) < 2 {
			continue
		}
		for _, r := range rs {
			b.Requests[r].Flags |= request.RIDCollision
		}
		b.report(trace.RIDCollision, b.Parts[b.Requests[rs[0]].Parts[0]].Root, len(rs), rid)
	}
	for _, rs := range gateways {
		if len(rs) > 1 {
			for _, r := range rs {
				b.Requests[r].Flags |= request.SharedGateway
			}
		}
	}
}

// statusOf tells how r ended, by what the gateway, the answering server and the
// threads say, in this order of trust.
func (b *builder) statusOf(r *request.Request, answer *request.Part) (request.Status, string) {
	status, reason := request.Finished, ""
	for _, p := range r.Parts {
		for _, t := range b.Parts[p].Threads {
			if th := &b.Threads[t]; th.Status != request.Finished && (reason == "" || status == request.Aborted && th.Status == request.Failed) {
				status, reason = th.Status, b.ReasonOf(t)
			}
		}
	}
	switch {
	case reason != "":
		return status, reason
	case answer.FinishReason == "abort":
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

// groups is a union-find over parts.
type groups []int

func newGroups(n int) groups {
	g := make(groups, n)
	for i := range g {
		g[i] = i
	}
	return g
}

func (g groups) find(i int) int {
	for g[i] != i {
		g[i] = g[g[i]]
		i = g[i]
	}
	return i
}

func (g groups) union(i, j int) {
	i, j = g.find(i), g.find(j)
	g[max(i, j)] = min(i, j)
}

func (g groups) unionAll(parts []int) {
	for _, p := range parts[1:] {
		g.union(parts[0], p)
	}
}
