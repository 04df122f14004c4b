package hang

import (
	"slices"

	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// Kind is why a collective does not end.
type Kind uint8

const (
	NotEntered Kind = iota // some ranks are not in it
	OtherOp                // some ranks are in a different operation
	OtherSize
	OtherType
	OtherOrder // two operations, in different orders
	OtherSum   // what ranks send is not what they receive
	Unmatched  // the other side of a send or a receive is not there
	Deadlock   // ranks wait for each other in different collectives
	NoDump     // what the missing ranks do is unknown
	Alone      // all known ranks are in it, but there may be others
	AllEntered // all are in it
	Behind     // the ranks that it waits for wait themselves
)

// String returns the word of a table.
func (k Kind) String() string {
	return [...]string{"not entered", "another operation", "another size", "another type", "another order", "sizes do not add up", "no counterpart", "deadlock", "no dump", "others unknown", "all entered", "behind another"}[k]
}

// A Hang is why processes stand still.
type Hang struct {
	Set *recorder.InFlight
	// Stuck are collectives that do not end, causes first: those that hold up most ranks lead.
	Stuck []Stuck
	Ranks []Rank  // by number: those with a dump, and those that others name
	World []int32 // all ranks that any group names, or that have a dump
	// Silent are the ranks of World without a dump.
	Silent []int32

	by       recorder.Source // FlightRecorder includes PyTorch's watchdog
	groups   []*group
	ranks    map[int32]*Rank
	python   map[int32]*recorder.FlightDump // of py-spy, by rank
	standing []standing
	others   []*job // with the same rank numbers; they are left out
	mixed    bool   // a rank has several dumps, and nothing tells their jobs apart: the last ones count
	nccl     *Hang  // what logs of NCCL say, besides PyTorch; nil if there are none
	// broken reports that a communicator was aborted, or that something other than a log of NCCL says
	// that ranks do not go on.
	broken bool
}

// A Stuck is a collective that does not end, or a send or a receive.
type Stuck struct {
	Kind  Kind
	Group string
	Of    []int32 // the ranks of the group
	Seq   int64   // its number in the group; recorder.Unknown for a send or a receive
	Op    string
	Sizes string // of its input
	Type  string
	Since trace.Time // when the first that waits entered it; 0 is unknown
	Stack []recorder.Frame
	// Waiting are the ranks in it; Ended are those for which it has ended.
	Waiting, Ended []int32
	// Absent are the ranks that did not enter it, Differ those in something else, and Silent those without a dump.
	Absent, Differ, Silent []int32
	// Even reports that as many ranks differ as agree, so that it is unknown who is wrong.
	Even  bool
	Other *recorder.Op // what the first of Differ entered
	// In and Out are how many elements all ranks put in and take out, for OtherSum.
	In, Out int64
	// HeldUp are all ranks that wait for it, directly or for others that do.
	HeldUp []int32
	Cause  bool
	// Queued is how many more operations the rank with most in flight has entered behind it, in all groups.
	Queued int
	// Certain reports that the dumps themselves show who is not in it.
	Certain bool
	// Hearsay reports that only a log of NCCL says so, which may have been copied while ranks went on.
	Hearsay bool
	// Unnamed is the least number of further ranks in the group, whose numbers are unknown.
	Unnamed int

	of    *group
	heads []int32 // ranks for which it is the first in flight, or whose first is behind it
	next  []int   // indices of what the ranks that it waits for wait in
	free  bool    // some of these ranks do not wait in anything
}

// A Rank is where a rank is.
type Rank struct {
	Rank  int32
	Dump  *recorder.FlightDump // nil if there is none
	Stuck int                  // index into Hang.Stuck of what it waits in; -1 is none
	// Head is the first that it has in flight, and Last what it entered last; nil is unknown.
	Head, Last *recorder.Op
	Pending    int
	// Unnamed is how many collectives its groups count as entered and not ended, if no operation is known.
	Unnamed int64
	head    *group
}

// Find finds what does not end. The result of an empty set is empty.
func Find(set *recorder.InFlight) *Hang {
	logs := ncclDumps(set)
	torch, others, mixed := pytorch(set)
	h := &Hang{Set: set, others: others, mixed: mixed}
	if len(torch) > 0 {
		h.find(torch)
		if len(logs) > 0 {
			h.nccl = &Hang{Set: set, by: recorder.NCCL}
			h.nccl.find(logs)
		}
	} else {
		h.by = recorder.NCCL
		h.find(logs)
	}
	h.listStacks()
	return h
}

// find finds what does not end in some dumps, one of each rank.
func (h *Hang) find(dumps []*recorder.FlightDump) {
	h.ranks = map[int32]*Rank{}
	h.broken = h.by != recorder.NCCL || slices.ContainsFunc(h.Set.Dumps, func(d *recorder.FlightDump) bool {
		return d.By != recorder.NCCL || slices.ContainsFunc(d.Groups, func(g recorder.Group) bool { return g.Aborted })
	})
	h.groups = groupsOf(dumps)
	h.listRanks(dumps)
	for _, g := range h.groups {
		h.collectives(g)
		h.pairs(g)
	}
	h.follow()
	h.relate()
	h.settle()
}

// listRanks lists the ranks that have a dump and those that any group names.
func (h *Hang) listRanks(dumps []*recorder.FlightDump) {
	for _, d := range dumps {
		r := &Rank{Rank: d.Rank, Dump: d, Stuck: -1}
		for i := range d.Ops {
			op := &d.Ops[i]
			if r.Last = op; !op.Pending() {
				continue
			}
			if r.Pending++; r.Head == nil {
				r.Head = op
			}
		}
		for i := range d.Groups {
			if g := &d.Groups[i]; r.Pending == 0 && g.Counted && !g.Ended && d.By != recorder.NCCL {
				r.Unnamed += max(0, g.Enqueued-max(0, g.Completed))
			}
		}
		h.ranks[d.Rank] = r
	}
	for _, g := range h.groups {
		for _, m := range g.members {
			if r := h.ranks[m.dump.Rank]; r.Head != nil && &m.dump.Groups[r.Head.Group] == m.of {
				r.head = g
			}
		}
		for _, r := range g.ranks {
			if h.ranks[r] == nil {
				h.ranks[r] = &Rank{Rank: r, Stuck: -1}
				h.Silent = append(h.Silent, r)
			}
		}
	}
	for r := range h.ranks {
		h.World = append(h.World, r)
	}
	slices.Sort(h.World)
	slices.Sort(h.Silent)
}

// collectives adds the first collective of a group that does not end.
func (h *Hang) collectives(g *group) {
	seq := int64(recorder.Unknown)
	for _, m := range g.members {
		if m.pending >= 0 && (seq < 0 || m.pending < seq) {
			seq = m.pending
		}
	}
	if seq < 0 {
		return
	}
	s := Stuck{Kind: AllEntered, Group: g.title(), Of: g.ranks, Seq: seq, Unnamed: g.unnamed, of: g, Certain: h.by != recorder.NCCL}
	for _, r := range g.ranks {
		m := g.members[r]
		switch {
		case m == nil && (h.ranks[r].Dump == nil || h.ranks[r].Dump.By != recorder.FlightRecorder), m != nil && !m.tells(seq):
			s.Silent = append(s.Silent, r)
		case m == nil: // its dump does not know the group
			s.Absent, s.Certain = append(s.Absent, r), false
		case m.ops[seq] != nil && m.ops[seq][0].Pending(), m.waits(seq):
			s.Waiting = append(s.Waiting, r)
		case m.ops[seq] != nil || m.entered() >= seq:
			s.Ended = append(s.Ended, r)
		default:
			s.Absent = append(s.Absent, r)
			s.Certain = s.Certain && m.dump.By == recorder.FlightRecorder && (m.entered() >= 0 || !m.dump.Lost)
		}
	}
	s.Hearsay = h.by == recorder.NCCL && !h.broken
	h.compareAt(g, &s)
	switch {
	case len(s.Differ) > 0 || s.Kind == OtherSum:
	case len(s.Absent) > 0:
		s.Kind = NotEntered
	case len(s.Silent) > 0:
		s.Kind = NoDump
	case g.open || g.unnamed > 0:
		s.Kind = Alone
	}
	h.add(s, func(op *recorder.Op) bool { return !op.IsP2P() && op.Seq == seq })
}

// add adds something that does not end. isIt reports whether an operation of the group, on a rank, is part of it.
func (h *Hang) add(s Stuck, isIt func(*recorder.Op) bool) {
	in := slices.Concat(s.Waiting, s.Differ)
	var first *recorder.Op
	for _, r := range in {
		x := h.ranks[r]
		m := s.of.members[r]
		var mine *recorder.Op
		for i := range x.Dump.Ops {
			if op := &x.Dump.Ops[i]; &x.Dump.Groups[op.Group] == m.of && isIt(op) {
				mine = op
				break
			}
		}
		if mine == nil {
			if x.Head == nil && m.waits(s.Seq) { // its watchdog counts it as entered, but does not say since when
				s.heads = append(s.heads, r)
				x.Stuck = len(h.Stuck)
			}
			continue
		}
		if slices.Contains(s.Waiting, r) && first == nil {
			first = mine
			if mine.Stack >= 0 {
				s.Stack = x.Dump.Stacks[mine.Stack]
			}
		}
		if mine.Created != 0 && (s.Since == 0 || mine.Created < s.Since) {
			s.Since = mine.Created
		}
		if x.Head == mine {
			s.heads = append(s.heads, r)
			x.Stuck = len(h.Stuck)
			s.Queued = max(s.Queued, x.Pending-1)
		}
	}
	if first != nil {
		s.Op, s.Sizes, s.Type = h.text(first.Name), h.text(first.In.Text), h.text(first.InT)
	}
	h.Stuck = append(h.Stuck, s)
}

// Bounds returns when a rank first entered what it has in flight, and the last time in any dump; 0 is
// unknown.
func (h *Hang) Bounds() (from, to trace.Time) {
	for i := range h.Ranks {
		r := &h.Ranks[i]
		if r.Head != nil && r.Head.Created != 0 && (from == 0 || r.Head.Created < from) {
			from = r.Head.Created
		}
		if r.Dump != nil {
			to = max(to, r.Dump.Time)
		}
	}
	return from, to
}
