package place

import (
	"github.com/sgtrace/sgtrace/request"
)

// A population is requests that ask servers of the same groups for the same kind of work.
type population struct {
	prefill, answer int32 // groups; request.None is unknown
	decodes         bool
}

// populations are all populations, numbered in the order in which their requests come.
type populations struct {
	index map[population]int
	list  []population
}

// fewAlike is the fewest requests of a population. Fewer join the largest population that the same servers answer.
const fewAlike = 20

// Populations returns the number of populations.
func (g *Groups) Populations() int { return len(g.list) }

// findPopulations numbers the populations of the finished requests.
func (g *Groups) findPopulations() {
	s := g.Ranks.Set
	var order []population
	counts, largest := map[population]int{}, map[int32]population{}
	for i := range s.AllRequests() {
		r := &s.Requests[i]
		if r.Status != request.Finished {
			continue
		}
		p := g.populationOf(r)
		if counts[p]++; counts[p] == 1 {
			order = append(order, p)
		}
	}
	for _, p := range order {
		if most, ok := largest[p.answer]; !ok || counts[p] > counts[most] {
			largest[p.answer] = p
		}
	}
	g.index = map[population]int{}
	for _, p := range order {
		if counts[p] >= fewAlike || largest[p.answer] == p {
			g.index[p], g.list = len(g.list), append(g.list, p)
		}
	}
	for _, p := range order {
		if _, ok := g.index[p]; !ok {
			g.index[p] = g.index[largest[p.answer]]
		}
	}
}

// Population returns the number of the population of a finished request, from 0.
func (g *Groups) Population(r *request.Request) int { return g.index[g.populationOf(r)] }

func (g *Groups) populationOf(r *request.Request) population {
	s := g.Ranks.Set
	p := population{prefill: request.None, answer: request.None, decodes: decodes(r)}
	for _, i := range s.PartsOf(r) {
		part := &s.Parts[i]
		if !part.Serves() {
			continue
		}
		_, rank := g.Ranks.Lead(part)
		if rank == request.None {
			continue
		}
		if group := g.of[rank]; part.Role == request.Prefill {
			p.prefill = group
		} else if part.Role != request.Encoder {
			p.answer = group
		}
	}
	return p
}

// PopulationName returns what sets a population apart from the others: the group of the servers that answer, and
// whether there is anything to decode; "" if there is only one.
func (g *Groups) PopulationName(population int) string {
	if len(g.list) < 2 {
		return ""
	}
	p := g.list[population]
	name := ""
	for _, group := range []int32{p.answer, p.prefill} {
		if group != request.None && name == "" {
			name = g.names[group]
		}
	}
	apart := false // from others of the same groups
	for i := range g.list {
		o := &g.list[i]
		apart = apart || o.answer == p.answer && o.prefill == p.prefill && o.decodes != p.decodes
	}
	switch {
	case apart && p.decodes && name == "":
		return "several tokens"
	case apart && p.decodes:
		return name
	case apart && name == "":
		return "one token at most"
	case apart:
		return name + ", one token at most"
	}
	return name
}
