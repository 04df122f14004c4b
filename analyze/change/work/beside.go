package work

import (
	"cmp"
	"maps"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A Beside is how much longer tokens take on the ranks of a server while it decodes heavy requests.
type Beside struct {
	Extra map[int]float64 // ns that requests took longer, by request: the heavy ones, too
	// Together reports that the ranks take each step together: all are as slow as the one with the most to do.
	Together bool
	// With and Without are the mean times per token of other requests, in ns: of those that were beside heavy ones most of the time, and of those never.
	With, Without float64
}

// FindBeside measures what heavy requests cost that are in a batch. All requests of a step wait for the one with the longest context, and if
// the ranks of a server take steps together, those on other ranks wait, too. weight returns the tokens of a heavy request, and 0 for
// others. Nil means that no server is slower by more than chance explains.
func FindBeside(ranks *place.RankSet, paces []Pace, weight func(request int) float64) (found []Beside) {
	servers := map[place.Location][]*Pace{}
	for i := range paces {
		at := ranks.Places[paces[i].Rank]
		at = place.Location{Role: at.Role, Host: at.Host, Server: at.Server}
		servers[at] = append(servers[at], &paces[i])
	}
	for _, at := range slices.SortedFunc(maps.Keys(servers), func(x, y place.Location) int {
		return cmp.Or(cmp.Compare(x.Role, y.Role), cmp.Compare(x.Host, y.Host), cmp.Compare(x.Server, y.Server))
	}) {
		if b, ok := besideOn(servers[at], weight); ok {
			found = append(found, b)
		}
	}
	return found
}

// besideOn measures the ranks of one server.
func besideOn(ranks []*Pace, weight func(request int) float64) (b Beside, ok bool) {
	heavy := func(p *Piece) float64 { return weight(p.Request) }
	own := make([]*levelOver, len(ranks))
	for i, p := range ranks {
		own[i] = newLevelOver(p.Pieces, heavy)
	}
	alone := besides(ranks, own)
	p := alone
	if len(ranks) > 1 {
		most := highest(own)
		p = likelier(alone, besides(ranks, order.Each(own, func(*levelOver) *levelOver { return most })))
		b.Together = p.scatter() < alone.scatter()
	}
	by := p.Burdens()
	if by[heavyBurden] == 0 || p.SlowerIn(func(x *Piece) bool { return x.Burden[heavyBurden] > 0 && heavy(x) == 0 }) == 0 {
		return b, false
	}
	b.Extra = map[int]float64{}
	type sum struct{ ns, units float64 }
	var with, without, partly sum
	for i := range p.Pieces {
		x := &p.Pieces[i]
		extra := min(by[heavyBurden]*x.Burden[heavyBurden], mostExtra*x.NS)
		b.Extra[x.Request] += x.Units * extra
		of := &partly
		switch level := x.Burden[heavyBurden]; {
		case heavy(x) > 0:
		case level == 0:
			of = &without
		case extra > 0 && level >= p.usually(heavy):
			of = &with
		}
		of.ns, of.units = of.ns+x.Units*x.NS, of.units+x.Units
	}
	b.With, b.Without = distribution.Ratio(with.ns, with.units), distribution.Ratio(without.ns, without.units)
	return b, b.With > b.Without && b.Without > 0
}

// heavyBurden is the index of the burden that heavy requests are. mostExtra is the largest part of a token's time that they may be.
const (
	heavyBurden = len(Burden{}) - 1
	mostExtra   = 0.95
)

// usually returns the weight of one heavy request, on average.
func (p *Pace) usually(heavy func(*Piece) float64) float64 {
	sum, n := 0.0, 0.0
	for i := range p.Pieces {
		if w := heavy(&p.Pieces[i]); w > 0 {
			sum, n = sum+w, n+1
		}
	}
	return distribution.Ratio(sum, n)
}

// besides returns the pieces of all ranks as one pace, with the mean level of heavy requests beside each as the last burden, and without
// them in the context.
func besides(ranks []*Pace, levels []*levelOver) Pace {
	var list []Piece
	for i, p := range ranks {
		for _, x := range p.Pieces {
			x.Burden[heavyBurden] = levels[i].mean(x.From, x.To)
			x.Burden[1] = 0 // in part the heavy requests themselves
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, byStart)
	return NewPace(0, list, 0)
}

// highest returns the highest of several levels at each time.
func highest(of []*levelOver) *levelOver {
	if len(of) == 1 {
		return of[0]
	}
	type edge struct {
		at trace.Time
		of int
		to float64
	}
	var edges []edge
	for i, l := range of {
		for k, at := range l.at {
			edges = append(edges, edge{at, i, l.level[k]})
		}
	}
	slices.SortStableFunc(edges, func(x, y edge) int { return cmp.Compare(x.at, y.at) })
	now, out, area := make([]float64, len(of)), &levelOver{}, 0.0
	for i, e := range edges {
		if i > 0 {
			area += out.level[i-1] * float64(e.at-out.at[i-1])
		}
		now[e.of] = e.to
		out.at, out.level, out.area = append(out.at, e.at), append(out.level, slices.Max(now)), append(out.area, area)
	}
	return out
}
