package clocks

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/trace"
)

// sameHostOffset is how near the clocks of ranks whose host is unknown must be
// to be taken for one. Clocks of one host agree within a microsecond or so, what
// NTP keeps together is tens of them apart; and if two hosts happen to be nearer
// than this, little is lost.
const sameHostOffset = 20_000 // ns

// unknownHosts returns the clocks that show Unix time, but of an unknown host, and
// the reference first if its host is unknown.
func (m *aligner) unknownHosts() (unknown []int) {
	for i, c := range m.HostClocks {
		if !c.isKnown && c.Domain == "unix" && i != m.reference() {
			unknown = append(unknown, i)
		}
	}
	if i := m.reference(); !m.HostClocks[i].isKnown {
		unknown = append([]int{i}, unknown...)
	}
	return unknown
}

// joinHosts makes one clock of the clocks of unknown hosts that agree, or of
// which nothing is known, and reports whether there were any. One clock for all
// ranks of a host means that they are not moved against each other by noise.
func (m *aligner) joinHosts(unknown []int, s align.Solution) bool {
	offset := func(i int) int64 { return s.Clocks[i].Offset }
	slices.SortStableFunc(unknown, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.Clocks[a].Component, s.Clocks[b].Component), cmp.Compare(offset(a), offset(b)))
	})
	to := make([]int, len(m.HostClocks))
	for i := range to {
		to[i] = i
	}
	isLone := func(i int) bool { return s.Clocks[i].Matches == 0 && i != m.reference() }
	if r := m.reference(); m.loneReference(unknown, s) {
		isLone = func(i int) bool { return s.Clocks[i].Matches == 0 || i == r }
	}
	lone := -1
	for k, i := range unknown {
		prev := -1
		switch {
		case isLone(i) && lone >= 0:
			prev = lone
		case s.Clocks[i].By == align.ByHosts || k > 0 && s.Clocks[unknown[k-1]].By == align.ByHosts: // known too loosely
		case k > 0 && s.Clocks[i].Component == s.Clocks[unknown[k-1]].Component && offset(i)-offset(unknown[k-1]) <= sameHostOffset:
			prev = unknown[k-1]
		}
		if prev >= 0 {
			to[i] = to[prev]
		}
		if isLone(i) && lone < 0 {
			lone = i
		}
	}
	return m.renumberClocks(to)
}

// loneReference reports whether nothing is known of the reference either, and its ranks end their collectives
// when those of the other clocks of which nothing is known do.
func (m *aligner) loneReference(unknown []int, s align.Solution) bool {
	ref := m.reference()
	if !slices.Contains(unknown, ref) {
		return false
	}
	for i := range s.Clocks {
		if i != ref && s.Clocks[i].Component == s.Clocks[ref].Component {
			return false
		}
	}
	at, met := slices.IndexFunc(m.ranks, func(r matching.Rank) bool { return r.Clock == ref }), false
	if at < 0 {
		return false
	}
	of := matching.EndsOf(&m.ranks[at], m.names)
	for i := range m.ranks {
		r := &m.ranks[i]
		if r.Job != m.ranks[at].Job || r.Clock == ref || s.Clocks[r.Clock].Matches > 0 || !slices.Contains(unknown, r.Clock) {
			continue
		}
		if met = of.OnOneClock(matching.EndsOf(r, m.names)); !met {
			return false
		}
	}
	return met
}

// renumberClocks makes clock to[i] of clock i and reports whether that joined any.
func (m *aligner) renumberClocks(to []int) bool {
	place, kept := make([]int, len(to)), []*HostClock{}
	for i, t := range to {
		if t == i {
			place[i] = len(kept)
			kept = append(kept, m.HostClocks[i])
		}
	}
	if len(kept) == len(to) {
		return false
	}
	for i, t := range to {
		if t != i {
			place[i] = place[t]
			m.HostClocks[t].Names = append(m.HostClocks[t].Names, m.HostClocks[i].Names...)
			m.HostClocks[t].First, m.HostClocks[t].Last = min(m.HostClocks[t].First, m.HostClocks[i].First), max(m.HostClocks[t].Last, m.HostClocks[i].Last)
		}
	}
	m.HostClocks = kept
	for host, i := range m.ClockOf {
		m.ClockOf[host] = place[i]
	}
	for _, x := range m.of.Placed {
		x.Clock = place[x.Clock]
	}
	for _, r := range m.of.Tracks {
		r.Clock = place[r.Clock]
		for _, c := range r.Captures {
			c.Clock = place[c.Clock]
		}
	}
	return true
}

// placeUnknown puts inputs whose times count from something unknown, and that
// nothing was matched to, at the beginning of all others.
func (m *aligner) placeUnknown() {
	reference := m.HostClocks[m.reference()]
	for i, c := range m.HostClocks {
		if c.Domain != "unix" && c.Fit.Why == trace.SyncAssumed && i != m.reference() {
			c.Fit.Offset = int64(c.First - reference.First)
		}
		// Times before the start of a recording would be before 1970.
		if c.Domain != "unix" && (i == m.reference() || c.Fit.Why == trace.SyncAssumed) && int64(c.First) < c.Fit.Offset {
			c.Fit.Offset = int64(c.First)
		}
	}
}

// nameUnknown calls the clocks of unknown hosts by the first of their ranks.
func (m *aligner) nameUnknown() {
	for _, r := range slices.Backward(m.of.Tracks) {
		if c := m.HostClocks[r.Clock]; !c.isKnown {
			c.Names = append([]string{r.Name}, slices.DeleteFunc(c.Names, func(n string) bool { return n == r.Name })...)
		}
	}
}
