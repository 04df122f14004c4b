package collective

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/straggler"
)

// Waited is how long ranks waited in collectives, and for whom.
type Waited struct {
	Took, Wait int64 // of all ranks; Wait is a part of Took, ns
	Covered    finding.Coverage
	// ByClock tells that clocks show who came last; else it follows from durations.
	ByClock bool
	Groups  []WaitedGroup // where most of the waiting is, that first
}

// A WaitedGroup are ranks that wait for each other.
type WaitedGroup struct {
	Names  []string
	Set    []int32 // their indexes in the set, in the same order
	Spells []straggler.Spell
}

// Of which groups spells are told: a few that make up most of the waiting, each a good part of it.
const (
	mostWaited = 8
	muchWaited = 0.05
)

// Waited sums up what ranks waited for each other.
func (c *Collectives) Waited() Waited {
	w := Waited{Covered: c.coverage(), ByClock: c.Counts.byDuration == 0}
	for i := range c.Ranks {
		w.Took, w.Wait = distribution.AddTimes(w.Took, c.Ranks[i].Took), distribution.AddTimes(w.Wait, c.Ranks[i].Wait)
	}
	groups, all := slices.Clone(c.peerGroups), int64(0)
	for _, g := range groups {
		all = distribution.AddTimes(all, g.gathering.Lost())
	}
	slices.SortStableFunc(groups, func(a, b *peerGroup) int { return cmp.Compare(b.gathering.Lost(), a.gathering.Lost()) })
	for _, g := range groups[:min(len(groups), mostWaited)] {
		if spells := g.gathering.Spells(); len(spells) > 0 && float64(g.gathering.Lost()) >= muchWaited*float64(all) {
			w.Groups = append(w.Groups, WaitedGroup{g.gathering.Names, g.ranks, spells})
		}
	}
	return w
}
