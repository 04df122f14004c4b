package matching

import (
	"cmp"
	"iter"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
)

// A Report says what Find did with collectives.
type Report struct {
	Collectives int         // all collectives of all ranks
	Matched     [Levels]int // those in a match, by level
	// Repeated counts those whose Comms Id or sequence number a rank has twice, which makes it
	// useless; they were left to the next level.
	Repeated int
	// Contradictory counts those that would have been in one collective with another input of the
	// same global rank, or with a call of another operation.
	Contradictory int
	// Ambiguous and Unlike count sequences of calls of a rank: those that fit a peer's at several
	// shifts equally well, and those that fit at none.
	Ambiguous, Unlike int
	// Alone counts all that were not matched.
	Alone int
}

// Find finds the same collective on several ranks. It matches each collective by the best key
// that it has, and by that alone: if nobody else has its Comms Id, nobody else recorded it.
//
// The result does not depend on the order of ranks, except for the numbers in Member: matches
// are ordered by where they first appear in an order of ranks that follows from their content.
func Find(ranks []Rank, names *Names) (Matches, Report) { return find(ranks, names, 1) }

// hostLoose is how many times farther apart the ends of a host collective are than those of a device
// collective: threads wait for a core, and messages for a thread. Ends are 0.1 to 1 ms apart.
const hostLoose = 30

// FindOnHosts is [Find] for host collectives. By order, it matches only those in which all ranks wait for each other.
func FindOnHosts(ranks []Rank, names *Names) (Matches, Report) { return find(ranks, names, hostLoose) }

func find(ranks []Rank, names *Names, loose int64) (Matches, Report) {
	m := newMatcher(ranks, names)
	m.loose = loose
	m.byCommsID()
	m.bySeq()
	m.ordinals()
	return m.result()
}

// States of a collective that is in no group.
const (
	open    = -1 // left to the next level
	settled = -2 // its key is valid, and alone decides
)

// A group is a match that is being built.
type group struct {
	level    Level
	kind     Kind
	op       uint32
	count    int32
	last     int32 // position, in order, of the rank that joined last
	repeated bool  // a rank has it twice
	wrong    bool  // its members cannot be the same collective
}

type matcher struct {
	ranks  []Rank
	order  []int // indexes of ranks, ordered by content
	jobs   []uint64
	names  *Names
	loose  int64 // how many times farther apart ends are than on devices
	groups []group
	of     [][]int32 // group or state of each collective, by position in order, and by call
	report Report
}

func newMatcher(ranks []Rank, names *Names) *matcher {
	m := &matcher{ranks: ranks, names: names}
	m.order = order.Sorted(len(ranks), func(a, b int) int { return Compare(&ranks[a], &ranks[b]) })
	jobs := map[int]uint64{}
	for _, r := range m.order {
		rank := &ranks[r]
		if _, ok := jobs[rank.Job]; !ok {
			jobs[rank.Job] = uint64(len(jobs))
		}
		m.jobs = append(m.jobs, jobs[rank.Job])
		of := memory.Make[int32](rank.Calls.Len())
		for i := range of {
			of[i] = open
		}
		m.of = append(m.of, of)
		m.report.Collectives += len(of)
	}
	return m
}

// Compare orders ranks by content, so that the order of arguments does not matter unless two
// ranks are equal in everything that it compares.
func Compare(a, b *Rank) int {
	c := cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Global, b.Global), cmp.Compare(a.Clock, b.Clock),
		cmp.Compare(b.Calls.Len(), a.Calls.Len()))
	for i := 0; c == 0 && i < a.Calls.Len(); i++ {
		x, y := a.Calls.At(i), b.Calls.At(i)
		c = cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End),
			cmp.Compare(x.CommsID, y.CommsID), cmp.Compare(x.Seq, y.Seq))
	}
	return c
}

// byCommsID puts all collectives with equal Comms Ids into one group.
func (m *matcher) byCommsID() {
	table := &keyTable{slots: make([]keySlot, 1<<12)}
	m.keyed(ByCommsID, func(rank *Rank) bool { return rank.Calls.HasCommsIDs() }, func(job uint64, c Collective, next int32) (int32, bool) {
		if c.CommsID == 0 {
			return open, false
		}
		return table.find(order.Mix(c.CommsID+job*0x9e3779b97f4a7c15), next)
	})
}

// bySeq puts all open collectives with equal sequence numbers in a communicator into one group.
func (m *matcher) bySeq() {
	type place struct {
		job  uint64
		comm CommID
	}
	tables := map[place]*seqTable{}
	var at place
	var table *seqTable // table at that place
	m.keyed(BySeq, func(*Rank) bool { return true }, func(job uint64, c Collective, next int32) (int32, bool) {
		if c.Seq < 0 || c.Comm == 0 {
			return open, false
		}
		if to := (place{job, c.Comm}); table == nil || at != to {
			at, table = to, tables[to]
			if table == nil {
				table = &seqTable{first: c.Seq}
				tables[to] = table
			}
		}
		return table.find(c.Seq, next)
	})
}

// keyed puts all open collectives with equal keys into one group. find returns the group of a
// collective, next if there is none yet, or open if it has no key.
func (m *matcher) keyed(level Level, wanted func(*Rank) bool, find func(job uint64, c Collective, next int32) (g int32, found bool)) {
	first := int32(len(m.groups))
	for pos, r := range m.order {
		calls, of := m.ranks[r].Calls, m.of[pos]
		if !wanted(&m.ranks[r]) {
			continue
		}
		for i := range of {
			if of[i] != open {
				continue
			}
			c := calls.At(i)
			switch g, found := find(m.jobs[pos], c, int32(len(m.groups))); {
			case g == open:
			case found:
				m.join(&m.groups[g], m.names.Of(c.Call), pos)
				of[i] = g
			default:
				of[i] = m.addGroup(level, m.names.Of(c.Call), pos)
			}
		}
	}
	m.settle(first)
}

func (m *matcher) addGroup(level Level, info CallInfo, pos int) int32 {
	m.groups = memory.Append(m.groups, group{level: level, kind: info.Kind, op: info.op, count: 1, last: int32(pos)})
	return int32(len(m.groups) - 1)
}

// join adds a member, of the rank at position pos, to g.
func (m *matcher) join(g *group, info CallInfo, pos int) {
	switch last, rank := &m.ranks[m.order[g.last]], &m.ranks[m.order[pos]]; {
	case int(g.last) == pos:
		g.repeated = true
	case last.Global >= 0 && last.Global == rank.Global:
		g.wrong = true // equal numbers are adjacent in order
	case g.op != 0 && info.op != 0 && g.op != info.op:
		g.wrong = true
	}
	switch {
	case info.Kind == KindUnknown || info.Kind == g.kind:
	case g.kind == KindUnknown:
		g.kind = info.Kind
	case info.Kind >= KindSend && g.kind >= KindSend:
		g.kind = KindSend
	default:
		g.kind = KindRooted
	}
	g.count++
	g.last = int32(pos)
}

// settle decides on the groups from first on.
func (m *matcher) settle(first int32) {
	for _, of := range m.of {
		for i, g := range of {
			if g < first {
				continue
			}
			switch group := &m.groups[g]; {
			case group.repeated:
				of[i] = open
				m.report.Repeated++
			case group.wrong:
				of[i] = settled
				m.report.Contradictory++
			case group.count < 2:
				of[i] = settled
			}
		}
	}
}

// result returns the groups with at least two members.
func (m *matcher) result() (Matches, Report) {
	counts := memory.Make[int32](len(m.groups))
	total := 0
	for _, of := range m.of {
		for _, g := range of {
			if g >= 0 {
				counts[g]++
				total++
			}
		}
	}
	out := Matches{places: memory.Make[matchPlace](len(m.groups))[:0], members: memory.Make[Member](total)}
	place := memory.Make[int32](len(m.groups)) // by group: index in out, or -1
	first := int64(0)
	for g, n := range counts {
		if n < 2 {
			place[g] = -1
			continue
		}
		place[g] = int32(len(out.places))
		out.places = append(out.places, matchPlace{first, 0, m.groups[g].level, m.groups[g].kind})
		first += int64(n)
		m.report.Matched[m.groups[g].level] += int(n)
	}
	out.members = out.members[:first]
	for pos, of := range m.of {
		for i, g := range of {
			if g < 0 || place[g] < 0 {
				m.report.Alone++
				continue
			}
			p := &out.places[place[g]]
			out.members[p.first+int64(p.n)] = Member{int32(m.order[pos]), int32(i)}
			p.n++
		}
	}
	return out, m.report
}

// A seqTable maps the sequence numbers of a communicator, most of which are consecutive, to groups.
type seqTable struct {
	first int64
	near  []int32         // by number from first on: the group plus one; 0 if none
	far   map[int64]int32 // groups of other numbers
}

// find returns the group of seq, which is next if seq is new.
func (t *seqTable) find(seq int64, next int32) (number int32, found bool) {
	const spare = 1 << 10
	if len(t.far) > 0 {
		if number, found = t.far[seq]; found {
			return number, true // near may have grown beyond it since
		}
	}
	at := seq - t.first
	if at < 0 || at >= int64(4*len(t.near)+spare) {
		if t.far == nil {
			t.far = map[int64]int32{}
		}
		t.far[seq] = next
		return next, false
	}
	for int64(len(t.near)) <= at {
		t.near = append(t.near, 0)
	}
	if n := t.near[at]; n != 0 {
		return n - 1, true
	}
	t.near[at] = next + 1
	return next, false
}

// A keyTable maps well-mixed 64-bit keys to groups. It is several times faster than a map, and
// determines how long matching takes for many ranks.
type keyTable struct {
	slots []keySlot // length is a power of two
	used  int
}

type keySlot struct {
	key  uint64
	next int32 // the group plus one; 0 if the slot is free
}

// find returns the group of key, which is next if key is new.
func (t *keyTable) find(key uint64, next int32) (number int32, found bool) {
	slot := t.slot(key)
	if slot.next != 0 {
		return slot.next - 1, true
	}
	*slot = keySlot{key, next + 1}
	if t.used++; t.used*2 > len(t.slots) {
		old := t.slots
		t.slots = make([]keySlot, 2*len(old))
		for _, s := range old {
			if s.next != 0 {
				*t.slot(s.key) = s
			}
		}
	}
	return next, false
}

// slot returns the slot of key, or the free slot where it belongs.
func (t *keyTable) slot(key uint64) *keySlot {
	mask := uint64(len(t.slots) - 1)
	for i := key & mask; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.next == 0 || s.key == key {
			return s
		}
	}
}

// A Match is one collective that was seen on at least two ranks.
type Match struct {
	Members []Member // at most one per rank
	Level   Level
	Kind    Kind // KindSend for both sides of a transfer
}

// A Member is Ranks[Rank].Calls.At(Index).
type Member struct{ Rank, Index int32 }

// Matches is a table of matches. A job has millions of them, so it holds no pointers, and the
// garbage collector does not scan it. The zero value is an empty table.
type Matches struct {
	places  []matchPlace
	members []Member
}

// A matchPlace is a match, with the place of its members.
type matchPlace struct {
	first int64 // index in members
	n     int32
	level Level
	kind  Kind
}

// Len returns the number of matches.
func (m *Matches) Len() int { return len(m.places) }

// At returns a match, whose members must not be modified.
func (m *Matches) At(i int) Match {
	p := &m.places[i]
	return Match{m.membersOf(p), p.level, p.kind}
}

func (m *Matches) membersOf(p *matchPlace) []Member {
	end := p.first + int64(p.n)
	return m.members[p.first:end:end]
}

// All yields the matches in order, with their numbers.
func (m *Matches) All() iter.Seq2[int, Match] {
	return func(yield func(int, Match) bool) {
		for i := range m.places {
			if !yield(i, m.At(i)) {
				return
			}
		}
	}
}

// Add adds a match. Like Join, it invalidates what At returned before.
func (m *Matches) Add(x Match) {
	m.places = memory.Append(m.places, matchPlace{int64(len(m.members)), int32(len(x.Members)), x.Level, x.Kind})
	m.members = memory.Append(m.members, x.Members...)
}

// Join adds a member to a match.
func (m *Matches) Join(i int, x Member) {
	p := &m.places[i]
	if end := p.first + int64(p.n); end < int64(len(m.members)) { // others follow: move it to the end
		first := int64(len(m.members))
		for k := range int64(p.n) {
			m.members = memory.Append(m.members, m.members[p.first+k])
		}
		p.first = first
	}
	m.members = memory.Append(m.members, x)
	p.n++
}
