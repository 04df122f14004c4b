package collective

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
)

// A waitTable is how long the ranks of a peer group waited for each of them, by where both are in
// the group: of each that came last, how long each other waited, ns. It is nil for those that
// never did.
type waitTable [][]int64

// add adds a sync point; places are those of its arrivals in the group of n ranks.
func (t *waitTable) add(e *encounter, places []int32, n int) {
	if e.last == nobody {
		return
	}
	if *t == nil {
		*t = make(waitTable, n)
	}
	waits := (*t)[places[e.last]]
	if waits == nil {
		waits = make([]int64, n)
		(*t)[places[e.last]] = waits
	}
	for i, place := range places {
		if wait := e.waitForLast(i); wait > 0 {
			waits[place] = distribution.AddTimes(waits[place], wait)
		}
	}
}

// waitsOf returns the waits of all peer groups, by rank and by last; at is where ranks of the set
// are in [Collectives.Ranks].
func waitsOf(groups []*peerGroup, at []int) []Wait {
	var all []Wait
	for _, c := range groups {
		for last, waits := range c.waits {
			for rank, ns := range waits {
				if ns > 0 {
					all = append(all, Wait{at[c.ranks[rank]], at[c.ranks[last]], ns})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b Wait) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Last, b.Last)) })
	out := all[:0]
	for _, x := range all { // two ranks may be in several groups
		if n := len(out); n > 0 && out[n-1].Rank == x.Rank && out[n-1].Last == x.Last {
			out[n-1].Ns = distribution.AddTimes(out[n-1].Ns, x.Ns)
			continue
		}
		out = append(out, x)
	}
	return out
}
