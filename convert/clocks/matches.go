package clocks

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// CollectiveMatches returns the matched collectives of the wanted ranks, without matches that the clocks
// contradict.
func (m *Alignment) CollectiveMatches(of *ranks.Assignment) profile.CollectiveMatches {
	return m.matchesOf(&m.Meetings, m.Solution.Rejected, of)
}

// HostMatches returns the matched collectives on the hosts of the wanted ranks; nil if there are none.
func (m *Alignment) HostMatches(of *ranks.Assignment) profile.CollectiveMatches {
	if len(m.hosts.Calls) == 0 {
		return nil
	}
	return m.matchesOf(&m.hosts, nil, of)
}

func (m *Alignment) matchesOf(met *Meetings, rejected []int, of *ranks.Assignment) profile.CollectiveMatches {
	index := map[*ranks.Track]int32{}
	for i, r := range of.Tracks {
		index[r] = int32(i)
	}
	x := &collectiveMatches{calls: met.Calls, rank: make([]int32, len(met.Calls)), whats: met.whats, clocks: m.HostClocks, matches: met.Matches, refused: make([]bool, met.Matches.Len())}
	for i, r := range met.AlignOf {
		rank, wanted := index[r]
		if !wanted {
			rank = -1
		}
		x.rank[i] = rank
	}
	for _, i := range rejected {
		x.refused[i] = true
	}
	x.moved = make([]*align.ClockFit, len(m.HostClocks))
	for i, c := range m.HostClocks {
		if c.Fit.Moves() {
			x.moved[i] = &c.Fit
		}
	}
	x.component = sync.OnceValue(x.components)
	x.byRanks = sync.OnceValue(func() []int32 { return x.order(x.component()) })
	x.byTime = sync.OnceValue(func() []int32 { return x.order(make([]int32, len(x.rank))) })
	return x
}

// collectiveMatches implements [profile.CollectiveMatches] on matches and the ranks' collectives.
type collectiveMatches struct {
	calls   []*rankCalls
	rank    []int32 // for each of calls, its rank in the set; -1 if unwanted
	whats   []profile.Collective
	clocks  []*HostClock
	moved   []*align.ClockFit // by clock; nil for one that shows the reference's time
	matches matching.Matches
	refused []bool // by match: the clocks contradict it

	component       func() []int32 // for each of calls; see components
	byRanks, byTime func() []int32 // two orders of the matches
}

// counts reports whether ranks met in a match: it is not a send, and the clocks do not contradict it.
func (m *collectiveMatches) counts(match int, kind matching.Kind) bool {
	return !m.refused[match] && kind != matching.KindSend
}

// components numbers the sets of ranks that meet, directly or indirectly, by calls.
func (m *collectiveMatches) components() []int32 {
	component := make([]int32, len(m.calls))
	for i := range component {
		component[i] = int32(i)
	}
	find := func(i int32) int32 {
		for component[i] != i {
			component[i] = component[component[i]]
			i = component[i]
		}
		return i
	}
	for i, match := range m.matches.All() {
		if !m.counts(i, match.Kind) {
			continue
		}
		members := match.Members
		to := find(members[0].Rank)
		for _, x := range members[1:] {
			if from := find(x.Rank); from != to {
				to, from = min(to, from), max(to, from)
				component[from] = to
			}
		}
	}
	for i := range component {
		component[i] = find(int32(i))
	}
	return component
}

// order returns the matches that count and have at least two wanted ranks, by component and by first arrival.
func (m *collectiveMatches) order(component []int32) []int32 {
	type place struct {
		first     trace.Time
		component int32
		match     int32
	}
	places := memory.Make[place](m.matches.Len())[:0]
	for i, match := range m.matches.All() {
		if !m.counts(i, match.Kind) {
			continue
		}
		p, there := place{component: component[match.Members[0].Rank], match: int32(i)}, 0
		for _, x := range match.Members {
			if m.rank[x.Rank] < 0 {
				continue
			}
			t, row := m.calls[x.Rank].of(x.Index)
			if start := m.onReference(t, t.Collectives.Start(row)); there == 0 || start < p.first {
				p.first = start
			}
			there++
		}
		if there > 1 {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.component, b.component), cmp.Compare(a.first, b.first), cmp.Compare(a.match, b.match))
	})
	order := memory.Make[int32](len(places))
	for i := range places {
		order[i] = places[i].match
	}
	return order
}

// onReference converts a time of a capture to the reference clock.
func (m *collectiveMatches) onReference(t *captureCalls, at trace.Time) trace.Time {
	if fit := m.moved[t.Capture.Clock]; fit != nil {
		return trace.Time(fit.ToReference(int64(at)))
	}
	return at
}

// Matches implements [profile.CollectiveMatches].
func (m *collectiveMatches) Matches(byTime bool) iter.Seq[*profile.CollectiveMatch] {
	return func(yield func(*profile.CollectiveMatch) bool) {
		order := m.byRanks
		if byTime {
			order = m.byTime
		}
		w := matchWalk{collectiveMatches: m, component: m.component()}
		for _, i := range order() {
			if !yield(w.look(m.matches.At(int(i)))) {
				return
			}
		}
	}
}

// A matchWalk builds the matches that are yielded, one after another in the same memory.
type matchWalk struct {
	*collectiveMatches
	component []int32 // for each of calls
	at        profile.CollectiveMatch
	clocks    []int // of the current members
}

func (w *matchWalk) look(match matching.Match) *profile.CollectiveMatch {
	x := &w.at
	*x = profile.CollectiveMatch{Sync: match.Kind == matching.KindSync || match.Kind == matching.KindMeet, Apart: match.Kind == matching.KindMeet,
		In: -1, Out: -1, GroupSize: -1, Component: w.component[match.Members[0].Rank], Arrivals: x.Arrivals[:0]}
	w.clocks = w.clocks[:0]
	what, world := int32(-1), int32(-1)
	for _, member := range match.Members {
		rank := w.rank[member.Rank]
		if rank < 0 {
			continue
		}
		t, row := w.calls[member.Rank].of(member.Index)
		x.Arrivals = append(x.Arrivals, profile.Arrival{Rank: rank, Start: w.onReference(t, t.Collectives.Start(row)), End: w.onReference(t, t.Collectives.End(row))})
		if n := t.names[t.Collectives.KindOf(row)].what; n != what {
			what = n
			merge(x, &w.whats[n])
		}
		x.Blur, world = max(x.Blur, t.Capture.File.Meta.Blur), t.Capture.File.Meta.WorldSize
		x.First = x.First || member.Index == 0
		if len(w.clocks) == 0 || w.clocks[len(w.clocks)-1] != t.Capture.Clock {
			w.clocks = append(w.clocks, t.Capture.Clock)
		}
	}
	if x.GroupSize <= 0 && int(world) == len(x.Arrivals) { // no group has more ranks than its job
		x.GroupSize = world
	}
	x.Bound = align.Unknown
	if x.Blur == 0 {
		x.Bound = w.apart(w.clocks, int64(x.Arrivals[0].Start))
	}
	x.Sync = x.Sync || x.Blur == 0 && x.Bound != align.Unknown && waited(x.Arrivals, x.Bound)
	byRank := func(a, b profile.Arrival) int { return cmp.Compare(a.Rank, b.Rank) }
	if !slices.IsSortedFunc(x.Arrivals, byRank) {
		slices.SortFunc(x.Arrivals, byRank)
	}
	return x
}

// Ranks demonstrably waited for the last one, in a collective that does not guarantee it, such as a SendRecv
// kernel, if their starts were at least beganApart ns apart, and timesMore times farther apart than their ends.
const (
	beganApart = 100_000
	timesMore  = 4
)

// waited reports whether the times show that ranks waited for the last one, on clocks that differ by at
// most bound ns: a rank that starts early and does not wait also ends early.
func waited(list []profile.Arrival, bound int64) bool {
	first, last := list[0], list[0]
	for _, a := range list {
		first.Start, last.Start = min(first.Start, a.Start), max(last.Start, a.Start)
		first.End, last.End = min(first.End, a.End), max(last.End, a.End)
	}
	apart, ends := int64(last.Start-first.Start), int64(last.End-first.End)+bound
	return apart >= beganApart && ends <= apart/timesMore && first.End > last.Start
}

// merge adds what one rank recorded about a collective.
func merge(x *profile.CollectiveMatch, p *profile.Collective) {
	x.In, x.Out, x.GroupSize = max(x.In, p.In), max(x.Out, p.Out), max(x.GroupSize, p.GroupSize)
	x.AtLeast = max(x.AtLeast, p.Tasks.AtLeast)
	x.Op, x.Dtype, x.Group = cmp.Or(x.Op, p.Op), cmp.Or(x.Dtype, p.Dtype), cmp.Or(x.Group, p.Group)
	x.Name, x.Step = cmp.Or(x.Name, p.Name), cmp.Or(x.Step, p.Step)
}

// apart returns how far clocks may be off from each other around reference time t, in ns: the sum of the
// two largest bounds, or align.Unknown if any is unknown.
func (m *collectiveMatches) apart(clocks []int, t int64) int64 {
	if len(clocks) < 2 {
		return 0
	}
	clocks = order.Distinct(clocks)
	if len(clocks) < 2 {
		return 0
	}
	first, second := int64(0), int64(0)
	component := m.clocks[clocks[0]].Fit.Component
	for _, i := range clocks {
		fit := &m.clocks[i].Fit
		b := fit.BoundAt(t)
		if b == align.Unknown || fit.Component != component {
			return align.Unknown
		}
		if b > first {
			first, second = b, first
		} else {
			second = max(second, b)
		}
	}
	return first + second
}

// Whether a call met calls of other ranks.
const (
	isAlone = iota
	hasMet
	isRefused
)

// Parts implements [profile.CollectiveMatches].
func (m *collectiveMatches) Parts() iter.Seq[*profile.Part] {
	return func(yield func(*profile.Part) bool) {
		met := m.met()
		byRank := order.Sorted(len(m.calls), func(a, b int) int { return cmp.Compare(m.rank[a], m.rank[b]) })
		var p profile.Part
		var like callKind // the kind that p describes
		for _, r := range byRank {
			if m.rank[r] < 0 {
				continue
			}
			p.Rank = m.rank[r]
			for i, how := range met[r] {
				t, row := m.calls[r].of(int32(i))
				if of := (callKind{t, t.Collectives.KindOf(row)}); of != like {
					like, p.Collective = of, t.Collectives.Kinds()[of.kind]
				}
				t.Collectives.Tell(row, &p.Collective)
				p.Matched, p.Refused = how == hasMet, how == isRefused
				if !yield(&p) {
					return
				}
			}
		}
	}
}

// A callKind is a kind of collectives in a capture.
type callKind struct {
	*captureCalls
	kind int32
}

// met returns, for each call of each rank, how it met calls of other wanted ranks.
func (m *collectiveMatches) met() [][]uint8 {
	met := order.Each(m.calls, func(calls *rankCalls) []uint8 { return memory.Make[uint8](calls.Len()) })
	for i, match := range m.matches.All() {
		wanted := order.Count(match.Members, func(x matching.Member) bool { return m.rank[x.Rank] >= 0 })
		how := uint8(isAlone)
		switch {
		case m.refused[i]:
			how = isRefused
		case wanted > 1:
			how = hasMet
		}
		for _, x := range match.Members {
			met[x.Rank][x.Index] = how
		}
	}
	return met
}
