package graphs

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// A Neighbors finds what ran in a replay before and after some time.
type Neighbors struct {
	*Graphs
	extents [][]extent // of the replays, by stream
}

// An extent is when the nodes of a replay ran.
type extent struct{ from, to trace.Time }

// Neighbors prepares a search for what ran in replays.
func (g *Graphs) Neighbors() *Neighbors {
	n := &Neighbors{g, make([][]extent, len(g.Streams))}
	for s, r := range g.Streams {
		for i := range r.Launches {
			nodes := r.Launches[i].Nodes
			e := extent{nodes[0].Start, nodes[0].Start}
			for k := range nodes {
				e.from, e.to = min(e.from, nodes[k].Start), max(e.to, nodes[k].Start+trace.Time(nodes[k].Dur))
			}
			n.extents[s] = append(n.extents[s], e)
		}
	}
	return n
}

// Around names what a device ran before and after a time in which it ran nothing: the operator and its module at
// capture, or else the kernel. Both are "" if that is not in one replay.
func (n *Neighbors) Around(rank string, device int32, from, to trace.Time) (before, after string) {
	at := int32(slices.Index(n.set.Ranks, rank))
	for s, r := range n.Streams {
		for i := range r.Launches {
			l := &r.Launches[i]
			if e := n.extents[s][i]; l.Rank != at || from <= e.from || e.to <= to {
				continue
			}
			last, next := none, none
			for k := range l.Nodes {
				switch x := &l.Nodes[k]; {
				case x.Device != device:
				case x.Start < to && (last == none || x.Start > l.Nodes[last].Start):
					last = k
				case x.Start >= to && (next == none || x.Start < l.Nodes[next].Start):
					next = k
				}
			}
			if last != none && next != none {
				return n.nameOf(l, last), n.nameOf(l, next)
			}
		}
	}
	return "", ""
}

// nameOf names a node: "aten::mm in Qwen3MLP_7".
func (n *Neighbors) nameOf(l *Launch, node int) string {
	place, _ := l.Place(node)
	if place.Operator == 0 && place.Module == 0 {
		return n.name(l.Nodes[node].Name)
	}
	return words.JoinNonEmpty(" in ", n.name(place.Operator), n.name(place.Module))
}
