package hang

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// A call is what must be equal about a collective on all of its ranks.
type call struct {
	names   string // of all operations that share its number
	in, out string
	types   string
}

// Operations whose sizes may differ between ranks: of inputs for the first list, of outputs for the
// second.
var (
	takesAny = []string{"scatter"}
	givesAny = []string{"gather"}
)

// anySize reports whether the input and output sizes of ranks may differ.
func anySize(name string) bool {
	return name == "coalesced" || strings.HasPrefix(name, "all_to_all") || strings.HasSuffix(name, "_v") || strings.HasSuffix(name, "_v_single")
}

// callOf returns what must be equal about the operations that share a number.
func (h *Hang) callOf(ops []*recorder.Op) call {
	var c call
	for _, op := range ops {
		name := h.text(op.Name)
		c.names += name + " "
		if anySize(name) {
			c.types += h.types(op.InT, op.In) + " "
			continue
		}
		if !slices.Contains(takesAny, name) {
			c.in += h.text(op.In.Text)
			c.types += h.types(op.InT, op.In) + " "
		}
		if !slices.Contains(givesAny, name) {
			c.out += h.text(op.Out.Text)
			c.types += h.types(op.OutT, op.Out) + " "
		}
	}
	return c
}

// types returns the types of tensors; "" if there are no elements, as any type will do then.
func (h *Hang) types(of trace.Sym, shape recorder.Shape) string {
	if shape.Elements <= 0 {
		return ""
	}
	return h.text(of)
}

// why says what differs between two calls.
func why(a, b call) Kind {
	switch {
	case a.names != b.names:
		return OtherOp
	case a.in != b.in || a.out != b.out:
		return OtherSize
	}
	return OtherType
}

// compareAt compares what the ranks of a group have in flight at a number, and says who differs from
// the majority. Without a majority, ranks are compared with those that include the lowest one.
func (h *Hang) compareAt(g *group, s *Stuck) {
	byCall := map[call][]int32{}
	var ids, guessed bool // the dumps say for some ranks, and for others do not, which group their collective belongs to
	by := h.comparable(g, s)
	for _, r := range s.Waiting {
		ops := g.members[r].ops[s.Seq]
		if len(ops) == 0 || g.members[r].dump.By != by {
			continue
		}
		c := h.callOf(ops)
		byCall[c] = append(byCall[c], r)
		ids = ids || g.members[r].of.ID != recorder.Unknown
		guessed = guessed || g.members[r].of.ID == recorder.Unknown
	}
	if len(byCall) < 2 {
		h.compareSums(g, s)
		return
	}
	var most call
	for c, ranks := range byCall {
		if n := len(byCall[most]); len(ranks) > n || len(ranks) == n && ranks[0] < byCall[most][0] {
			most = c
		}
	}
	var other call
	for c, ranks := range byCall {
		if c == most {
			continue
		}
		s.Even = s.Even || len(ranks) == len(byCall[most])
		if s.Differ == nil || ranks[0] < s.Differ[0] {
			other = c
		}
		s.Differ = append(s.Differ, ranks...)
	}
	slices.Sort(s.Differ)
	s.Certain = s.Certain && !(ids && guessed)
	s.Waiting = slices.DeleteFunc(s.Waiting, func(r int32) bool { return slices.Contains(s.Differ, r) })
	s.Kind = why(most, other)
	s.Other = g.members[slices.Min(byCall[other])].ops[s.Seq][0]
	if s.Kind != OtherType && h.swapped(g, byCall[most][0], slices.Min(byCall[other]), s.Seq, most, other) {
		s.Kind = OtherOrder
	}
}

// swapped reports whether two ranks do the same two things in opposite orders.
func (h *Hang) swapped(g *group, a, b int32, seq int64, callA, callB call) bool {
	nextA, nextB := g.members[a].ops[seq+1], g.members[b].ops[seq+1]
	return len(nextA) > 0 && len(nextB) > 0 && h.callOf(nextA) == callB && h.callOf(nextB) == callA
}

// comparable returns the recorder whose calls are compared: each has its own words for them, and the
// flight recorder says most.
func (h *Hang) comparable(g *group, s *Stuck) recorder.Source {
	by := recorder.NCCL
	for _, r := range s.Waiting {
		by = min(by, g.members[r].dump.By)
	}
	return by
}

// compareSums compares what all ranks together put into an all-to-all with what they take out.
func (h *Hang) compareSums(g *group, s *Stuck) {
	if len(s.Waiting) == 0 || len(s.Waiting) < len(g.ranks) {
		return
	}
	var in, out int64
	for _, r := range s.Waiting {
		if len(g.members[r].ops[s.Seq]) == 0 {
			return
		}
		for _, op := range g.members[r].ops[s.Seq] {
			if h.text(op.Name) != "all_to_all" || op.In.Elements < 0 || op.Out.Elements < 0 {
				return
			}
			in, out = in+op.In.Elements, out+op.Out.Elements
		}
	}
	if in != out {
		s.Kind, s.In, s.Out = OtherSum, in, out
	}
}

// A pair is a sender and a receiver, by their ranks in a group.
type pair struct{ src, dst int32 }

// pairs adds the sends and receives that do not end, the first for each pair of ranks.
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

// pair adds the first send or receive between two ranks that does not end.
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
