package convert

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/internal/align"
	"github.com/sgtrace/sgtrace/trace"
)

// sameHostOffset is how near the clocks of ranks whose host is unknown must be
// to be taken for one. Clocks of one host agree within a microsecond or so, what
// NTP keeps together is tens of them apart; and if two hosts happen to be nearer
// than this, little is lost.
const sameHostOffset = 20_000 // ns

// unknownHosts returns the clocks that show Unix time, but of an unknown host, and
// the reference first if its host is unknown.
func (m *Clocks) unknownHosts() (unknown []int) {
	for i, c := range m.hostClocks {
		if !c.isKnown && c.domain == "unix" && i != m.reference() {
			unknown = append(unknown, i)
		}
	}
	if i := m.reference(); !m.hostClocks[i].isKnown {
		unknown = append([]int{i}, unknown...)
	}
	return unknown
}

// joinHosts makes one clock of the clocks of unknown hosts that agree, or of
// which nothing is known, and tells whether there were any. One clock for all
// ranks of a host means that they are not moved against each other by noise.
func (m *Clocks) joinHosts(unknown []int, s align.Solution) bool {
	offset := func(i int) int64 { return s.Clocks[i].Offset }
	slices.SortStableFunc(unknown, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.Clocks[a].Component, s.Clocks[b].Component), cmp.Compare(offset(a), offset(b)))
	})
	to := make([]int, len(m.hostClocks))
	for i := range to {
		to[i] = i
	}
	lone := -1
	for k, i := range unknown {
		prev := -1
		switch {
		case s.Clocks[i].Matches == 0 && i != m.reference() && lone >= 0:
			prev = lone
		case k > 0 && s.Clocks[i].Component == s.Clocks[unknown[k-1]].Component && offset(i)-offset(unknown[k-1]) <= sameHostOffset:
			prev = unknown[k-1]
		}
		if prev >= 0 {
			to[i] = to[prev]
		}
		if s.Clocks[i].Matches == 0 && i != m.reference() && lone < 0 {
			lone = i
		}
	}
	return m.renumberClocks(to)
}

// renumberClocks makes clock to[i] of clock i and tells whether that joined any.
func (m *Clocks) renumberClocks(to []int) bool {
	place, kept := make([]int, len(to)), []*hostClock{}
	for i, t := range to {
		if t == i {
			place[i] = len(kept)
			kept = append(kept, m.hostClocks[i])
		}
	}
	if len(kept) == len(to) {
		return false
	}
	for i, t := range to {
		if t != i {
			place[i] = place[t]
			m.hostClocks[t].names = append(m.hostClocks[t].names, m.hostClocks[i].names...)
			m.hostClocks[t].first, m.hostClocks[t].last = min(m.hostClocks[t].first, m.hostClocks[i].first), max(m.hostClocks[t].last, m.hostClocks[i].last)
		}
	}
	m.hostClocks = kept
	for host, i := range m.clockOf {
		m.clockOf[host] = place[i]
	}
	for _, x := range m.placed {
		x.clock = place[x.clock]
	}
	for _, r := range m.tracks {
		r.clock = place[r.clock]
		for _, c := range r.captures {
			c.clock = place[c.clock]
		}
	}
	return true
}

// placeUnknown puts inputs whose times count from something unknown, and that
// nothing was matched to, at the beginning of all others.
func (m *Clocks) placeUnknown() {
	reference := m.hostClocks[m.reference()]
	for i, c := range m.hostClocks {
		if c.domain != "unix" && c.fit.Why == trace.SyncAssumed && i != m.reference() {
			c.fit.Offset = int64(c.first - reference.first)
		}
		// Times before the start of a recording would be before 1970.
		if c.domain != "unix" && (i == m.reference() || c.fit.Why == trace.SyncAssumed) && int64(c.first) < c.fit.Offset {
			c.fit.Offset = int64(c.first)
		}
	}
}

// nameUnknown calls the clocks of unknown hosts by the first of their ranks.
func (m *Clocks) nameUnknown() {
	for _, r := range slices.Backward(m.tracks) {
		if c := m.hostClocks[r.clock]; !c.isKnown {
			c.names = append([]string{r.name}, slices.DeleteFunc(c.names, func(n string) bool { return n == r.name })...)
		}
	}
}
