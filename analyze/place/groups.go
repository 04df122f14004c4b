package place

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
)

// Groups are the servers of a set, divided into groups that do the same work. Each server with a place is in one
// group, with all of its ranks.
type Groups struct {
	Ranks *RankSet
	of    []int32  // group of every place
	names []string // of every group: what sets it apart from other groups of its role; "" if there are none

	populations
}

// A server is the evidence for what work a server does.
type server struct {
	at     Location // without a rank
	group  int32
	ranks  int             // number of TP ranks
	models map[string]bool // models that it served, as far as the dump says
	pools  map[string]bool // see [request.Writer]
	// finished is the number of its finished requests, and decoded of those with more than one token.
	finished, decoded int
	work              work
}

// Of divides the servers of a set into groups.
func Of(s *request.Set) *Groups {
	ranks := NewRankSet(s)
	g := &Groups{Ranks: ranks, of: make([]int32, len(ranks.Places))}
	servers, serverOf := g.look()
	var byRole [request.Other + 1][]*server
	for _, x := range servers {
		byRole[x.at.Role] = append(byRole[x.at.Role], x)
	}
	for _, servers := range byRole {
		g.divide(servers)
	}
	for i, x := range serverOf {
		g.of[i] = x.group
	}
	g.findPopulations()
	return g
}

// look collects what servers do. It returns them, and the server of every place.
func (g *Groups) look() (servers, serverOf []*server) {
	index := map[Location]*server{}
	serverOf = make([]*server, len(g.Ranks.Places))
	for i, p := range g.Ranks.Places {
		at := Location{Scope: OneRank, Role: p.Role, Host: p.Host, Server: p.Server}
		x := index[at]
		if x == nil {
			x = &server{at: at, models: map[string]bool{}, pools: map[string]bool{}}
			index[at], servers = x, append(servers, x)
		}
		x.ranks = max(x.ranks, int(p.Rank.TP)+1)
		serverOf[i] = x
	}
	for p := range g.Ranks.Set.ServingParts {
		if _, rank := g.Ranks.Lead(p); rank != request.None {
			serverOf[rank].add(g.Ranks.Set, p)
		}
	}
	return servers, serverOf
}

// add adds a request that the server worked on.
func (x *server) add(s *request.Set, p *request.Part) {
	r := &s.Requests[p.Request]
	if model := cmp.Or(s.Syms.Name(p.Model), s.ModelOf(r)); model != "" {
		x.models[model] = true
	}
	if p.Root != request.None {
		if pool := s.Writers[s.Sources[s.Row(p.Root).Source].Writer].Setup(); pool != "" {
			x.pools[pool] = true
		}
	}
	if r.Status == request.Finished {
		x.finished++
		if decodes(r) {
			x.decoded++
		}
		x.work.add(&r.Metrics)
	}
}

// decodes reports whether a request was answered token by token. Embeddings, classifications, and health checks have
// one result, as soon as the prompt is computed.
func decodes(r *request.Request) bool { return r.Metrics.CompletionTokens > 1 || r.Metrics.ITL.N > 0 }

// divide divides the servers of one role into groups: first by what is certain, and then by their work if nothing
// says which model they have. Servers about which nothing is known join the largest group.
func (g *Groups) divide(servers []*server) {
	if len(servers) == 0 {
		return
	}
	groups := [][]*server{servers}
	for _, by := range []func([]*server) [][]*server{decoding, size, sharing(func(x *server) map[string]bool { return x.models }), sharing(func(x *server) map[string]bool { return x.pools }), byWork} {
		var finer [][]*server
		for _, group := range groups {
			finer = append(finer, by(group)...)
		}
		groups = finer
	}
	for _, group := range groups {
		for _, x := range group {
			x.group = int32(len(g.names))
		}
		g.names = append(g.names, nameOf(group, groups))
	}
}

// split divides servers by a key, in the order in which keys appear. Servers without a key, "", join the largest
// group.
func split(servers []*server, key func(*server) string) [][]*server {
	index := map[string]int{}
	var groups [][]*server
	var unknown []*server
	for _, x := range servers {
		k := key(x)
		if k == "" {
			unknown = append(unknown, x)
			continue
		}
		i, ok := index[k]
		if !ok {
			i = len(groups)
			index[k], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], x)
	}
	if len(groups) == 0 {
		return [][]*server{servers}
	}
	largest := 0
	for i := range groups {
		if len(groups[i]) > len(groups[largest]) {
			largest = i
		}
	}
	groups[largest] = append(groups[largest], unknown...)
	return groups
}

// decoding divides servers that decode from those that almost never do.
func decoding(servers []*server) [][]*server {
	const hardly = 20 // one request in 20
	return split(servers, func(x *server) string {
		switch {
		case x.finished == 0:
			return ""
		case x.decoded*hardly > x.finished:
			return "decodes"
		}
		return "does not"
	})
}

// size divides servers by the number of GPUs that a model is spread over, to the nearest power of two, because a rank
// with missing spans does not make a different server.
func size(servers []*server) [][]*server {
	return split(servers, func(x *server) string {
		if x.ranks == 0 {
			return ""
		}
		return fmt.Sprint(math.Round(math.Log2(float64(x.ranks))))
	})
}

// sharing divides servers by common values: each server of a group has a value in common with another one of the
// group.
func sharing(of func(*server) map[string]bool) func([]*server) [][]*server {
	return func(servers []*server) [][]*server {
		root := map[string]string{} // of every value, another value of the same group, or itself
		find := func(v string) string {
			for root[v] != v {
				v = root[v]
			}
			return v
		}
		first := make([]string, len(servers))
		for i, x := range servers {
			for v := range of(x) {
				root[v] = cmp.Or(root[v], v)
				first[i] = cmp.Or(first[i], v)
				root[find(v)] = find(first[i])
			}
		}
		keys := map[*server]string{}
		for i, x := range servers {
			if first[i] != "" {
				keys[x] = find(first[i])
			}
		}
		return split(servers, func(x *server) string { return keys[x] })
	}
}

// nameOf returns what sets a group apart from the others of its role; "" if there are none.
func nameOf(group []*server, groups [][]*server) string {
	if len(groups) == 1 {
		return ""
	}
	own := describe(group)
	for _, parts := range [][]string{own[:1], own[:2], own} {
		name := strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), ", ")
		same := order.Count(groups, func(other []*server) bool { return slices.Equal(describe(other)[:len(parts)], parts) })
		if same == 1 && name != "" {
			return name
		}
	}
	return fmt.Sprintf("like %s", group[0].at.ServerName())
}

// describe returns what a group has in common: its models, its pool, and its size.
func describe(group []*server) []string {
	models, pools := map[string]bool{}, map[string]bool{}
	ranks := 0
	for _, x := range group {
		for m := range x.models {
			models[m] = true
		}
		for p := range x.pools {
			pools[p] = true
		}
		ranks = max(ranks, x.ranks)
	}
	size := ""
	if ranks > 0 {
		size = fmt.Sprintf("TP%d", ranks)
	}
	return []string{firstValues(models), firstValues(pools), size}
}

// firstValues names up to two values.
func firstValues(values map[string]bool) string {
	const few = 2
	list := slices.Sorted(maps.Keys(values))
	text := strings.Join(list[:min(few, len(list))], " and ")
	if n := len(list) - few; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// Group returns the group of a place, an index into [RankSet] Places.
func (g *Groups) Group(at int32) int32 { return g.of[at] }

// GroupOf returns the group of a proc. It returns 0 for request.None and for a proc without a place, because nothing
// says that it is in another group.
func (g *Groups) GroupOf(proc int32) int32 {
	if proc == request.None || g.Ranks.Of[proc] == request.None {
		return 0
	}
	return g.of[g.Ranks.Of[proc]]
}

// Len returns the number of groups, at least 1, so that it exceeds every group that GroupOf returns.
func (g *Groups) Len() int { return max(1, len(g.names)) }

// Name returns what sets a group apart from the others of its role; "" if there are none.
func (g *Groups) Name(group int32) string {
	if int(group) >= len(g.names) {
		return "" // no server has a place
	}
	return g.names[group]
}
