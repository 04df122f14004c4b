package kernel

import (
	"cmp"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// places are where calls lie among ranges, by what joins them to work on devices:
// rank and correlation. 4 bytes per call.
type places struct {
	nest   *nest
	ranks  []order.Paged[uint32]
	graphs *trace.PerName[bool] // of calls that launch graphs
}

// What is kept of a call: its place plus one, 0 outside of all ranges, shifted by placeBits, and flags.
// 0 is no call.
const (
	isCall = 1 << iota
	graphLaunch
	hasRun    // work of the call was met
	placeBits = iota
)

func newPlaces(set *profile.Set, n *nest) *places {
	return &places{nest: n, ranks: make([]order.Paged[uint32], len(set.Ranks)), graphs: profilewalk.GraphLaunches(set.Syms)}
}

// add finds the place of a call.
func (p *places) add(c *profile.Call) {
	if c.Correlation == 0 {
		return
	}
	// A runtime call and the driver call within it may share a correlation; the outer
	// one, which comes first, counts.
	at := p.ranks[c.Rank].At(c.Correlation)
	if *at != 0 {
		return
	}
	place := p.nest.place(p.nest.threads.of(&c.Event, c.TID), c.Start, c.Start+trace.Time(c.Dur()))
	*at = uint32(place+1)<<placeBits | isCall
	if place != none && p.graphs.Of(c.Name) {
		*at |= graphLaunch
	}
}

// of returns what is kept of the call that asked for some work; nil if that is unknown.
func (p *places) of(e *profile.Event) *uint32 {
	if e.Correlation == 0 {
		return nil
	}
	if at := p.ranks[e.Rank].Find(e.Correlation); at != nil && *at != 0 {
		return at
	}
	return nil
}

// A projection is a range as devices saw it: from the start of the first operation
// that calls within the range asked for to the end of the last one.
type projection struct {
	first, last trace.Time
	ops         uint32
}

func (p *projection) extend(first, last trace.Time, ops uint32) {
	if p.ops == 0 {
		*p = projection{first, last, ops}
		return
	}
	p.first, p.last, p.ops = min(p.first, first), max(p.last, last), p.ops+ops
}

// project returns the projections of all spans.
func (n *nest) project(set *profile.Set, stream profile.Stream, opt *profilewalk.Options) []projection {
	p := newPlaces(set, n)
	out := make([]projection, len(n.spans))
	j := profilewalk.Joiner{Copies: true, Call: p.add, Orphan: func(*profile.Kernel) {}}
	j.Work = func(k *profile.Kernel) bool {
		at := p.of(&k.Event)
		if at == nil {
			return false
		}
		place := int(*at>>placeBits) - 1
		if place == none {
			return true
		}
		// All kernels of a graph are one operation, as nsys stats counts.
		ops := uint32(1)
		if *at&(graphLaunch|hasRun) == graphLaunch|hasRun {
			ops = 0
		}
		*at |= hasRun
		if place >= len(out) { // a crossing that is new
			out = append(out, make([]projection, len(n.spans)+len(n.crossings)-len(out))...)
		}
		out[place].extend(k.Start, k.Start+trace.Time(k.Dur()), ops)
		return true
	}
	j.Run(stream, opt)
	for i, c := range out[len(n.spans):] {
		if c.ops == 0 {
			continue
		}
		for _, s := range n.crossings[i] {
			out[s].extend(c.first, c.last, c.ops)
		}
	}
	out = out[:len(n.spans)]
	// Children come after their parents.
	for i := len(out) - 1; i >= 0; i-- {
		if parent := n.spans[i].parent; parent != none && out[i].ops > 0 {
			out[parent].extend(out[i].first, out[i].last, out[i].ops)
		}
	}
	return out
}

// levels calls f for every span with the number of spans around it, and with the shortest of these;
// none if there is none.
func (n *nest) levels(f func(i, level, parent int32)) {
	for _, lanes := range n.lanes {
		for own := range lanes {
			for i := lanes[own].from; i < lanes[own].to; i++ {
				level, parent := n.depth(n.spans[i].parent), n.spans[i].parent
				for other := range lanes {
					if other == own {
						continue
					}
					s := n.around(&lanes[other], n.spans[i].start, n.spans[i].end)
					level += n.depth(s)
					if parent == none || s != none && n.within(s, parent) {
						parent = s
					}
				}
				f(i, level, parent)
			}
		}
	}
}

// depth counts a span and those around it in its lane.
func (n *nest) depth(i int32) int32 {
	depth := int32(0)
	for ; i != none; i = n.spans[i].parent {
		depth++
	}
	return depth
}

// within reports whether span a counts as further in than b: it is shorter, or began
// later.
func (n *nest) within(a, b int32) bool {
	x, y := &n.spans[a], &n.spans[b]
	return cmp.Or(cmp.Compare(x.end-x.start, y.end-y.start), cmp.Compare(y.start, x.start)) < 0
}
