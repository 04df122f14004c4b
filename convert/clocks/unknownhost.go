package clocks

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/align"
	"github.com/sgtrace/sgtrace/align/matching"
	"github.com/sgtrace/sgtrace/trace"
)

// sameHostOffset is the largest difference between clocks of unknown hosts that are taken for one. Clocks
// of one host agree within about a microsecond; hosts under NTP are tens of microseconds apart. If two
// hosts happen to be closer than this, little is lost.
const sameHostOffset = 20_000 // ns

// unknownHosts returns the clocks that show Unix time of an unknown host; the reference comes first if its
// host is unknown.
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

// joinHosts merges clocks of unknown hosts that agree, or that have no evidence, and reports whether it
// merged any. With one clock for all ranks of a host, noise does not move them against each other.
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
		case s.Clocks[i].By == align.ByHosts || k > 0 && s.Clocks[unknown[k-1]].By == align.ByHosts: // bounded too loosely
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

// loneReference reports whether the reference also has no evidence, and its ranks end their collectives at
// the same times as the ranks of the other clocks without evidence.
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

// renumberClocks replaces clock i by clock to[i], and reports whether that merged any.
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

// placeUnknown puts inputs with an unknown time origin, and without any matches, at the beginning of all
// others.
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

// nameUnknown names the clocks of unknown hosts after the first of their ranks.
func (m *aligner) nameUnknown() {
	for _, r := range slices.Backward(m.of.Tracks) {
		if c := m.HostClocks[r.Clock]; !c.isKnown {
			c.Names = append([]string{r.Name}, slices.DeleteFunc(c.Names, func(n string) bool { return n == r.Name })...)
		}
	}
}
