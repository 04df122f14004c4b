package hang

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/trace"
)

// A group is a process group with all of its ranks.
type group struct {
	name, desc string
	ranks      []int32
	members    map[int32]*member // of the ranks with a dump
	// open reports that there may be ranks that no input mentions. unnamed is the least number of ranks
	// whose numbers are unknown.
	open    bool
	unnamed int
}

// A member is what one rank knows of a group.
type member struct {
	dump *recorder.FlightDump
	of   *recorder.Group
	// ops are the collectives, by their numbers in the group; coalesced ones share one.
	ops map[int64][]*recorder.Op
	// pending is the first pending collective of ops, and last the last one of all; recorder.Unknown.
	pending, last       int64
	enqueued, completed int64 // from pg_status; recorder.Unknown
	p2p                 []*recorder.Op
	counted             bool // enqueued and completed are known, if only to be none
}

// entered returns the number of the last collective that the rank entered; recorder.Unknown.
func (m *member) entered() int64 { return max(m.last, m.enqueued) }

// waits reports whether the rank counted a collective as entered, but not as ended. It applies to logs,
// which may say nothing else about the collective.
func (m *member) waits(seq int64) bool {
	return m.dump.By == recorder.Watchdog && m.enqueued >= seq && m.completed < seq
}

// tells reports whether the dump shows if the rank entered a collective.
func (m *member) tells(seq int64) bool {
	return m.dump.By != recorder.Watchdog || m.counted || m.ops[seq] != nil
}

// title names a group in sentences.
func (g *group) title() string {
	switch {
	case g.desc != "":
		return g.desc
	case g.name == recorder.Nameless:
		return "a group that the log does not name"
	case g.name != "":
		return "group " + g.name
	}
	return "a group without a name"
}

// groupsOf matches the groups of all dumps, in a fixed order.
func groupsOf(dumps []*recorder.FlightDump) []*group {
	byKey := map[string]*group{}
	var list []*group
	for _, d := range dumps {
		of := namedGroups(d)
		nth := map[string]int{}
		for _, g := range of {
			key := g.Desc + "\x00" + rankKey(g)
			if o := byKey[key+"\x001"]; o != nil && o.hasMember(g) {
				key += fmt.Sprintf(" of %d", d.Rank) // two groups share a name
			}
			nth[key]++
			key += "\x00" + strconv.Itoa(nth[key])
			to := byKey[key]
			if to == nil {
				to = &group{name: g.Name, desc: g.Desc, ranks: g.Ranks, members: map[int32]*member{}}
				byKey[key], list = to, append(list, to)
			}
			to.members[d.Rank] = newMember(d, g)
		}
	}
	for _, g := range list {
		if g.ranks == nil {
			g.infer()
		}
		g.inferStatus()
	}
	slices.SortFunc(list, func(a, b *group) int {
		return cmp.Or(compareNames(a.name, b.name), slices.Compare(a.ranks, b.ranks), strings.Compare(a.desc, b.desc))
	})
	return list
}

// infer finds the ranks of a group that no input lists: those that mention it, and those between them.
// Ranks are in order in a group: if rank 1 is its second member, rank 0 is the first.
func (g *group) infer() {
	size := int32(0)
	g.open = true
	for r, m := range g.members {
		g.ranks = append(g.ranks, r)
		size = max(size, m.of.Member+1, m.of.Size)
		g.open = g.open && m.of.Size < 0
	}
	slices.Sort(g.ranks)
	before, memberBefore := int32(-1), int32(-1)
	for _, r := range slices.Clone(g.ranks) {
		member := g.members[r].of.Member
		if member < 0 {
			continue
		}
		for k := before + 1; k < r && r-before == member-memberBefore; k++ {
			g.ranks = append(g.ranks, k)
		}
		before, memberBefore = r, member
	}
	g.ranks = order.Distinct(g.ranks)
	g.unnamed = max(0, int(size)-len(g.ranks))
}

// hasMember reports whether g already has a rank with the member number of another group, which is then a different group of the same name.
func (g *group) hasMember(of *recorder.Group) bool {
	if of.Ranks != nil || of.Member < 0 {
		return false
	}
	for _, m := range g.members {
		if m.of.Member == of.Member {
			return true
		}
	}
	return false
}

// rankKey identifies a group: by its ranks or, if they are unknown, by its name.
func rankKey(g *recorder.Group) string {
	if g.Ranks == nil {
		return "name " + g.Name
	}
	var b strings.Builder
	for _, r := range g.Ranks {
		fmt.Fprintf(&b, "%d,", r)
	}
	return b.String()
}

// namedGroups returns the groups of a dump that have more than a number, in the order in which a
// program makes them.
func namedGroups(d *recorder.FlightDump) (list []*recorder.Group) {
	for i := range d.Groups {
		if g := &d.Groups[i]; g.Name != "" || g.Ranks != nil || g.Desc != "" {
			list = append(list, g)
		}
	}
	slices.SortStableFunc(list, func(a, b *recorder.Group) int { return compareNames(a.Name, b.Name) })
	return list
}

// compareNames puts short names first, so that "9" comes before "10".
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func newMember(d *recorder.FlightDump, g *recorder.Group) *member {
	m := &member{dump: d, of: g, ops: map[int64][]*recorder.Op{}, pending: recorder.Unknown, last: recorder.Unknown, enqueued: g.Enqueued, completed: g.Completed, counted: g.Counted || g.Enqueued >= 0}
	for i := range d.Ops {
		op := &d.Ops[i]
		switch {
		case &d.Groups[op.Group] != g:
		case op.IsP2P():
			m.p2p = append(m.p2p, op)
		default:
			m.ops[op.Seq] = append(m.ops[op.Seq], op)
			m.last = max(m.last, op.Seq)
			if op.Pending() && (m.pending < 0 || op.Seq < m.pending) {
				m.pending = op.Seq
			}
		}
	}
	return m
}

// inferStatus finds how far ranks are that have no collective of the group in flight. Their dumps have
// this by an ID of the group, which is the same on all ranks that are in the same groups, but which
// only ranks with a collective in flight connect with the group.
func (g *group) inferStatus() {
	id := int64(recorder.Unknown)
	for _, m := range g.members {
		switch {
		case m.of.ID < 0:
		case id >= 0 && id != m.of.ID:
			return
		default:
			id = m.of.ID
		}
	}
	if id < 0 {
		return
	}
	for _, m := range g.members {
		if m.of.ID >= 0 {
			continue
		}
		for i := range m.dump.Groups {
			if x := &m.dump.Groups[i]; x.ID == id {
				m.enqueued, m.completed = x.Enqueued, x.Completed
			}
		}
	}
}

// text returns a symbol of the dumps.
func (h *Hang) text(s trace.Sym) string { return h.Set.Syms.Name(s) }

// pytorch returns one dump of PyTorch for each rank, in the order of ranks: the last one of its flight recorder or,
// without one, what its watchdog printed. Both number collectives alike. If several jobs have the same ranks, it
// returns dumps of the last one, and the other jobs as others. mixed reports that nothing tells their jobs apart.
func pytorch(set *recorder.InFlight) (dumps []*recorder.FlightDump, others []*job, mixed bool) {
	all := order.Only(set.Dumps, func(d *recorder.FlightDump) bool { return d.By == recorder.FlightRecorder && d.Rank >= 0 })
	jobs, apart := jobsOf(all)
	recorded, watched := last(jobs[0].dumps, recorder.FlightRecorder), last(set.Dumps, recorder.Watchdog)
	for rank, d := range watched {
		recorded[rank] = cmp.Or(recorded[rank], d)
	}
	dumps = inOrder(recorded)
	nameRanks(dumps)
	return dumps, jobs[1:], !apart
}

// last returns the last dump of each rank by a recorder.
func last(dumps []*recorder.FlightDump, by recorder.Source) map[int32]*recorder.FlightDump {
	of := map[int32]*recorder.FlightDump{}
	for _, d := range dumps {
		if d.By == by && d.Rank >= 0 && (of[d.Rank] == nil || d.Time >= of[d.Rank].Time) {
			of[d.Rank] = d
		}
	}
	return of
}

func inOrder(of map[int32]*recorder.FlightDump) []*recorder.FlightDump {
	var list []*recorder.FlightDump
	for _, d := range of {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *recorder.FlightDump) int { return cmp.Compare(a.Rank, b.Rank) })
	return list
}

// nameRanks sets the ranks of groups of which a log has only the name: as a dump of the flight recorder
// has them, or, for the group of all ranks, up to the highest rank of any dump.
func nameRanks(dumps []*recorder.FlightDump) {
	type name struct{ name, desc string }
	ranks := map[name][]int32{}
	for _, d := range dumps {
		for i := range d.Groups {
			if g := &d.Groups[i]; d.By == recorder.FlightRecorder && g.Ranks != nil {
				ranks[name{g.Name, g.Desc}] = g.Ranks
			}
		}
	}
	for _, d := range dumps {
		for i := range d.Groups {
			g := &d.Groups[i]
			if g.Ranks != nil || d.By != recorder.Watchdog {
				continue
			}
			switch known := ranks[name{g.Name, g.Desc}]; {
			case slices.Contains(known, d.Rank):
				g.Ranks = known
			case isWorld(g):
				g.Ranks = worldOf(dumps)
			}
		}
	}
}

// worldOf returns the ranks from 0 to the highest one of any dump.
func worldOf(dumps []*recorder.FlightDump) []int32 {
	most := int32(-1)
	for _, d := range dumps {
		most = max(most, d.Rank)
	}
	world := make([]int32, most+1)
	for i := range world {
		world[i] = int32(i)
	}
	return world
}

// isWorld reports whether a group is that of all ranks, as PyTorch calls it.
func isWorld(g *recorder.Group) bool { return g.Desc == "default_pg" || g.Desc == "" && g.Name == "0" }
