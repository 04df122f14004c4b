package collective

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
)

// Stragglers returns the ranks that others wait for in collectives, the costliest first, with the cause as far as devices
// show it; g may be nil. Each rank is returned once, for the group that loses most by it. Rank is an index into Ranks.
func (c *Collectives) Stragglers(g *gpu.GPUs) []straggler.Straggler {
	var found []straggler.Straggler
	for _, peerGroup := range c.peerGroups {
		for _, s := range peerGroup.gathering.Stragglers() {
			c.explain(&s, peerGroup, g)
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b straggler.Straggler) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), strings.Compare(a.Name, b.Name))
	})
	told := map[int]bool{}
	return slices.DeleteFunc(found, func(s straggler.Straggler) bool {
		again := told[s.Rank]
		told[s.Rank] = true
		return again
	})
}

// Histories returns how late the ranks of each group were in equal parts of its time, the group that met most often first.
func (c *Collectives) Histories(parts int) []*straggler.History {
	groups := slices.Clone(c.peerGroups)
	slices.SortStableFunc(groups, func(a, b *peerGroup) int {
		return cmp.Compare(len(b.gathering.SyncPoints), len(a.gathering.SyncPoints))
	})
	return order.Each(groups, func(g *peerGroup) *straggler.History { return g.gathering.History(parts) })
}

// explain completes a straggler of a peer group with its place and its cause.
func (c *Collectives) explain(s *straggler.Straggler, peerGroup *peerGroup, g *gpu.GPUs) {
	rank := peerGroup.ranks[s.Rank]
	s.Rank = slices.IndexFunc(c.Ranks, func(r Rank) bool { return r.rankIndex == rank })
	s.Location = place.Named(s.Name)
	s.Peers = peerGroup.peers(s.Name)
	s.Evidence = s.Confidence()
	if g == nil || len(g.GPUs) == 0 {
		return
	}
	cause, evidence := c.lateCause(peerGroup.ranks, rank, g).explain(float64(s.Mean) * s.Part)
	if s.Part < 1 {
		// The work of devices is known only as a whole.
		cause, evidence = cause+" (over the whole capture, including when it was not late)", "over the whole capture, "+evidence
	}
	s.Cause, s.Evidence = cause, append(s.Evidence, finding.Sentence("%s", evidence))
}

// Why returns why a rank comes late ns after the others of its group per collective, as devices
// show it over the whole capture; "" if nothing explains it. Ranks are indexes into the set.
func (c *Collectives) Why(group []int32, rank int32, g *gpu.GPUs, late float64) string {
	cause, _ := c.lateCause(group, rank, g).explain(late)
	if cause == unexplained {
		return ""
	}
	return cause
}

func (c *Collectives) lateCause(group []int32, rank int32, g *gpu.GPUs) *lateCause {
	l := &lateCause{gpus: g, syncPoints: map[int32]int{}, rank: rank}
	for _, r := range group {
		l.syncPoints[r] = c.rankOf(r).SyncPoints
	}
	return l
}

// Verdict returns a sentence for each rank that the others wait for, or says that there is
// none and what was looked at; nil if no ranks wait for each other.
func (c *Collectives) Verdict(found []straggler.Straggler) []string {
	switch {
	case len(found) > 0:
	case c.Counts.Sync > 0:
		likely := c.likely(nil)
		if len(likely) == 0 {
			return []string{c.nobody()}
		}
		return order.EachRow(likely, (*straggler.Straggler).LikelyText)
	case c.Counts.all > 0:
		return []string{fmt.Sprintf("stragglers cannot be found: in none of %d %s are ranks known to wait for all others (dispatches, combines and broadcasts do not)", c.Counts.all, c.what())}
	}
	return order.EachRow(found, (*straggler.Straggler).Text)
}

// Late returns the ranks that others wait for, or else the likely ones.
func (c *Collectives) Late(g *gpu.GPUs) []straggler.Straggler {
	if found := c.Stragglers(g); len(found) > 0 {
		return found
	}
	if !c.OfHosts {
		g = nil // few collectives don't show why
	}
	return c.likely(g)
}

// likely returns the ranks that are likely stragglers, the costliest first.
func (c *Collectives) likely(g *gpu.GPUs) []straggler.Straggler {
	var found []straggler.Straggler
	for _, peerGroup := range c.peerGroups {
		for _, s := range slices.Concat(peerGroup.gathering.Likely(), peerGroup.gathering.LikelyOfFew(len(c.peerGroups))) {
			c.explain(&s, peerGroup, g)
			found = append(found, s)
		}
	}
	straggler.Sort(found)
	return found
}

// nobody says that there is no straggler, or why that is unknown.
func (c *Collectives) nobody() string {
	ranks, judged := map[int32]bool{}, 0 // a rank can be in several peer groups
	for _, peerGroup := range c.peerGroups {
		if n := len(peerGroup.gathering.SyncPoints); n >= fewSyncPoints {
			judged += n
			for _, r := range peerGroup.ranks {
				ranks[r] = true
			}
		}
	}
	covered := c.coverage()
	switch {
	case judged == 0:
		return fmt.Sprintf("not enough data to find stragglers: %s", words.Counted(c.Counts.Sync, c.one()))
	case c.OfHosts && c.Counts.partial > 0:
		return fmt.Sprintf("not enough data to say that there is no straggler: ranks of the group are not in the files, at %d of %s", c.Counts.partial, words.Counted(c.Counts.Sync, c.one()))
	case !covered.Enough():
		return fmt.Sprintf("not enough data to say that there is no straggler: %s could be looked at, which are only %s", words.Counted(judged, c.one()), covered)
	}
	in := fmt.Sprintf("%d %s of %d ranks", judged, c.what(), len(ranks))
	if text := covered.String(); text != "" {
		in += " (" + text + ")"
	}
	return fmt.Sprintf("no straggler: in %s, no rank is repeatedly late by more than the clock error and %.0f %% of the time between %s", in, 100*straggler.Matters, c.what())
}

// fewSyncPoints is the least number of sync points of a peer group that can show a straggler: of two
// equal ranks, one is behind in eleven blocks in a row as rarely as [straggler.ErrorLevel] asks for.
const fewSyncPoints = 11 * straggler.MinInBlock

// Findings returns the ranks that others wait for, and whether there are enough collectives to tell. A healthy deployment has none.
func (c *Collectives) Findings(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "lateness in " + c.what(), Of: c.one(), N: c.mostInPeerGroup(), Needed: fewSyncPoints, Covered: c.coverage()}
	found := c.Late(g)
	length := c.lengths
	if g != nil {
		length = max(length, g.Length()) // time before the first collective counts, too
	}
	var out []finding.Finding
	for _, s := range found {
		f := s.Finding(distribution.Fraction(s.Lost, length))
		f.Rank = s.Name
		if s.Undated { // it is unknown how long devices were recorded
			f.CostBasis = finding.CollectiveTime
		}
		out = append(out, f)
		if s.Counted {
			check.Needed = straggler.MinCounted
		}
	}
	switch {
	case c.Counts.all == 0:
		check.Reason = "no " + c.what() + " of several ranks were recorded"
	case c.Counts.Sync == 0:
		check.Reason = "at none of the recorded collectives do ranks wait for all others"
	case check.N >= check.Needed:
		check.N = c.Counts.Sync
	}
	return out, check
}

// one returns the word for a collective; what returns the plural.
func (c *Collectives) one() string {
	if c.OfHosts {
		return "gloo collective"
	}
	return "collective"
}

func (c *Collectives) what() string { return c.one() + "s" }

// mostInPeerGroup returns the largest number of sync points of a peer group.
func (c *Collectives) mostInPeerGroup() int {
	most := 0
	for _, peerGroup := range c.peerGroups {
		most = max(most, len(peerGroup.gathering.SyncPoints))
	}
	return most
}
