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
	// Group are the ranks that wait for each other, where most of the waiting is; Set has their
	// indexes in the set, in the same order. Spells are about them, and Lost is what they waited
	// for the ranks of their spells.
	Group  []string
	Set    []int32
	Spells []straggler.Spell
	Lost   int64
}

// Waited sums up what ranks waited for each other.
func (c *Collectives) Waited() Waited {
	w := Waited{Covered: c.coverage(), ByClock: c.Counts.byDuration == 0}
	for i := range c.Ranks {
		w.Took, w.Wait = distribution.AddTimes(w.Took, c.Ranks[i].Took), distribution.AddTimes(w.Wait, c.Ranks[i].Wait)
	}
	if len(c.peerGroups) == 0 {
		return w
	}
	most := slices.MaxFunc(c.peerGroups, func(a, b *peerGroup) int { return cmp.Compare(a.waits.total(), b.waits.total()) })
	w.Group, w.Set, w.Spells = most.gathering.Names, most.ranks, most.gathering.Spells()
	for i := range w.Spells {
		w.Lost = distribution.AddTimes(w.Lost, w.Spells[i].Lost)
	}
	return w
}

// total is how long all waited for all, ns.
func (t waitTable) total() (ns int64) {
	for _, waits := range t {
		for _, wait := range waits {
			ns = distribution.AddTimes(ns, wait)
		}
	}
	return ns
}
