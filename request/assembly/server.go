package assembly

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// maxServers is the maximum number of servers of a role that are distinguished on a host. If process IDs
// suggest more than the devices could serve, they do not identify servers.
const maxServers = 256

// A serverKey is what servers on one host may share.
type serverKey struct {
	host string
	role request.Role
}

// A rankKey is unique to a proc within a server at any one time.
type rankKey struct {
	label string
	rank  trace.Rank
}

// A component is a set of procs that worked together on some part of a request, directly or through others.
// It is a server, or a piece of one: the DP ranks of a server have nothing in common if its tokenizer is
// not traced.
type component struct {
	procs       []int
	first, last trace.Time // starts of its parts, since the requests of an old server may have no end
}

// findServers numbers the servers of every role and host that has several.
func (b *builder) findServers() {
	of := b.components()
	byKey := map[serverKey][]*component{}
	listed := map[*component]bool{}
	for i := range b.Procs {
		if c := of[i]; !listed[c] {
			listed[c] = true
			key := serverKey{b.Procs[i].Host, b.roleOf(c)}
			byKey[key] = append(byKey[key], c)
		}
	}
	for _, list := range byKey {
		if slices.ContainsFunc(list, b.schedules) { // a component without a scheduler belongs to one that has one
			list = order.Only(list, b.schedules)
		}
		if len(list) > 1 {
			b.numberServers(b.assemble(list))
		}
	}
}

// schedules reports whether a component includes a scheduler.
func (b *builder) schedules(c *component) bool {
	return slices.ContainsFunc(c.procs, func(proc int) bool { return b.Procs[proc].Schedules })
}

// roleOf returns the first known role in a component.
func (b *builder) roleOf(c *component) request.Role {
	for _, p := range c.procs {
		if role := b.Procs[p].Role; role != request.Other {
			return role
		}
	}
	return request.Other
}

// components returns the component of every proc.
func (b *builder) components() []*component {
	all := order.NewUnion(len(b.Procs))
	parallel.Fold(len(b.Parts), threadSize, func() *order.Union { g := order.NewUnion(len(b.Procs)); return &g }, func(g *order.Union, from, to int) {
		for p := from; p < to; p++ {
			b.joinWorkers(&b.Parts[p], *g)
		}
	}, func(g *order.Union) {
		for i := range *g {
			all.Join(i, g.Find(i))
		}
	})
	of := make([]*component, len(b.Procs))
	for i := range b.Procs {
		r := all.Find(i) // never greater than i
		if r == i {
			of[i] = &component{}
		}
		of[i] = of[r]
		of[i].procs = append(of[i].procs, i)
	}
	b.timeComponents(of)
	return of
}

// joinWorkers joins the procs on each host that worked on a part.
func (b *builder) joinWorkers(p *request.Part, g order.Union) {
	firsts := make([]int, 0, 4) // the first proc of every host and role
	add := func(proc int) {
		of := &b.Procs[proc]
		if of.Label == of.Service && of.PID == 0 { // several servers of a host may share it
			return
		}
		for _, first := range firsts {
			if f := &b.Procs[first]; f.Host == of.Host && (f.Role == of.Role || of.Role == request.Other) {
				g.Join(first, proc)
				return
			}
		}
		firsts = append(firsts, proc)
	}
	if p.Proc != request.None {
		add(p.Proc)
	}
	for _, t := range b.ThreadsOf(p) {
		add(b.Threads[t].Proc)
	}
}

// timeComponents sets when the parts of components started, ignoring 1 in 20 at either end, whose times may
// be wrong.
func (b *builder) timeComponents(of []*component) {
	const rare = 20
	type starts map[*component][]trace.Time
	all := starts{}
	parallel.Fold(len(b.Parts), threadSize, func() *starts { return &starts{} }, func(x *starts, from, to int) {
		for i := from; i < to; i++ {
			p := &b.Parts[i]
			var noted *component // most parts have one
			note := func(proc int) {
				if c := of[proc]; c != noted {
					noted = c
					(*x)[c] = append((*x)[c], p.Start)
				}
			}
			if p.Proc != request.None {
				note(p.Proc)
			}
			for _, t := range b.ThreadsOf(p) {
				note(b.Threads[t].Proc)
			}
		}
	}, func(x *starts) {
		for c, list := range *x {
			all[c] = append(all[c], list...)
		}
	})
	for c, list := range all {
		slices.Sort(list)
		c.first, c.last = list[len(list)/rare], list[len(list)-1-len(list)/rare]
	}
}

// A serverMade is a server being assembled; taken has its rank keys, and until when each was in use.
type serverMade struct {
	procs []int
	taken map[rankKey]trace.Time
}

// assemble combines the components of one role and host into servers: components that ran at different
// times, or have different rank keys, may be one server. It returns nil if there is only one, or too many
// to be servers.
func (b *builder) assemble(list []*component) []*serverMade {
	slices.SortFunc(list, func(x, y *component) int {
		return cmp.Or(cmp.Compare(x.first, y.first), cmp.Compare(x.procs[0], y.procs[0]))
	})
	var servers []*serverMade
	for _, c := range list {
		at := slices.IndexFunc(servers, func(s *serverMade) bool { return b.fits(s, c) })
		if at < 0 {
			if len(servers) == maxServers {
				return nil
			}
			at = len(servers)
			servers = append(servers, &serverMade{taken: map[rankKey]trace.Time{}})
		}
		s := servers[at]
		s.procs = append(s.procs, c.procs...)
		for _, p := range c.procs {
			at := b.rankKeyOf(p)
			s.taken[at] = max(s.taken[at], c.last)
		}
	}
	if len(servers) < 2 {
		return nil
	}
	return servers
}

// fits reports whether the rank keys of a component were free when it began.
func (b *builder) fits(s *serverMade, c *component) bool {
	return !slices.ContainsFunc(c.procs, func(p int) bool {
		until, taken := s.taken[b.rankKeyOf(p)]
		return taken && until >= c.first
	})
}

func (b *builder) rankKeyOf(proc int) rankKey {
	return rankKey{b.Procs[proc].Label, b.Procs[proc].Rank}
}

// numberServers numbers servers by their lowest process ID.
func (b *builder) numberServers(servers []*serverMade) {
	if len(servers) == 0 {
		return
	}
	if b.Servers == nil {
		b.Servers = make([]int32, len(b.Procs))
	}
	lowest := func(s *serverMade) (pid int64, proc int) {
		proc = slices.MinFunc(s.procs, func(x, y int) int {
			return cmp.Or(cmp.Compare(b.Procs[x].PID, b.Procs[y].PID), cmp.Compare(x, y))
		})
		return b.Procs[proc].PID, proc
	}
	slices.SortFunc(servers, func(x, y *serverMade) int {
		xp, xi := lowest(x)
		yp, yi := lowest(y)
		return cmp.Or(cmp.Compare(xp, yp), cmp.Compare(xi, yi))
	})
	for k, s := range servers {
		for _, p := range s.procs {
			b.Servers[p] = int32(k + 1)
		}
	}
}
