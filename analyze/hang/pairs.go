package hang

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/profile/recorder"
)

// A pair is who sends to whom, by their ranks in a group.
type pair struct{ src, dst int32 }

// pairs adds sends and receives that do not end, the first of each pair of ranks.
func (h *Hang) pairs(g *group) {
	sends, receives := map[pair][]*recorder.Op{}, map[pair][]*recorder.Op{}
	var all []pair
	for _, r := range g.ranks {
		m := g.members[r]
		if m == nil {
			continue
		}
		for _, op := range m.p2p {
			p := pair{op.Src, op.Dst}
			if !op.Pending() || int(max(p.src, p.dst)) >= len(g.ranks) || p.src < 0 || p.dst < 0 {
				continue
			}
			if sends[p] == nil && receives[p] == nil {
				all = append(all, p)
			}
			if g.ranks[p.src] == r {
				sends[p] = append(sends[p], op)
			} else {
				receives[p] = append(receives[p], op)
			}
		}
	}
	slices.SortFunc(all, func(a, b pair) int { return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst)) })
	for _, p := range all {
		h.pair(g, p, sends[p], receives[p])
	}
}

// pair adds the first of what two ranks send each other and that does not end.
func (h *Hang) pair(g *group, p pair, sends, receives []*recorder.Op) {
	src, dst := g.ranks[p.src], g.ranks[p.dst]
	s := Stuck{Kind: AllEntered, Group: g.title(), Of: g.ranks, Seq: recorder.Unknown, of: g, Certain: true}
	missing := func(r int32) {
		switch {
		case h.ranks[r].Dump == nil:
			s.Silent, s.Kind = []int32{r}, NoDump
		default:
			s.Absent, s.Kind = []int32{r}, Unmatched
		}
	}
	switch {
	case len(receives) == 0:
		s.Waiting = []int32{src}
		missing(dst)
	case len(sends) == 0:
		s.Waiting = []int32{dst}
		missing(src)
	case sends[0].In.Text != receives[0].Out.Text:
		s.Waiting, s.Differ, s.Kind, s.Other, s.Even = []int32{src}, []int32{dst}, OtherSize, receives[0], true
	default:
		s.Waiting = []int32{src, dst}
	}
	h.add(s, func(op *recorder.Op) bool { return op.Src == p.src && op.Dst == p.dst && op.Pending() })
}
