package collective

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A peerGroup is a set of ranks that wait for each other in collectives, whatever their
// communicators are called: kernels of CUDA graphs don't name these.
type peerGroup struct {
	ranks     []int32 // indexes into Set.Ranks, ascending
	gathering *straggler.SyncSamples
	end       trace.Time // end of the previous sync point; 0 if none
	length    int64      // the group's total time, once for each rank, ns
	bound     int64      // largest clock bound of sync points ordered by clock
	whole     bool       // it has all ranks that meet anybody
	n         int        // sync points, including impossible ones
}

// longestWork is the longest time, in ns, that ranks work from one collective to the next. Beyond that, nobody had work.
const longestWork = 100_000_000

// A subset of ranks is seen together if the recording of another rank begins later, or ends earlier.
// That is rare: a set that is seen at least a tenth as often as one around it is a group of its own.
const rareSubset = 10

// peerGroupTable maps sync points to peer groups.
type peerGroupTable struct {
	of         map[string]*peerGroup // by keyOf
	peerGroups []*peerGroup
	key        []byte

	// Cache: most sync points have the ranks of the previous one.
	known   *peerGroup
	knownOf []int32

	arrivals, stays []int64 // of the current sync point, by rank of its group
}

// keyOf returns the ranks of a sync point as bytes that are valid until the next call.
func (t *peerGroupTable) keyOf(x *profile.CollectiveMatch) []byte {
	t.key = t.key[:0]
	for i := range x.Arrivals {
		t.key = binary.BigEndian.AppendUint32(t.key, uint32(x.Arrivals[i].Rank))
	}
	return t.key
}

// newPeerGroupTable finds the peer groups of all sync points.
func newPeerGroupTable(set *profile.Set, syncPoints iter.Seq[*profile.CollectiveMatch], spread int64) *peerGroupTable {
	type subset struct {
		ranks []int32
		key   string
		n     int
	}
	t := &peerGroupTable{of: map[string]*peerGroup{}}
	index := map[string]int{}
	var subsets []subset
	for x := range syncPoints {
		if !x.Sync {
			continue
		}
		key := t.keyOf(x)
		i, ok := index[string(key)]
		if !ok {
			s := subset{key: string(key)}
			for _, a := range x.Arrivals {
				s.ranks = append(s.ranks, a.Rank)
			}
			i = len(subsets)
			index[s.key], subsets = i, append(subsets, s)
		}
		subsets[i].n++
	}
	// Larger sets come first, so that a rare subset finds the peer group around it; if there are
	// several, the last one, which is the smallest.
	slices.SortFunc(subsets, func(a, b subset) int {
		return cmp.Or(cmp.Compare(len(b.ranks), len(a.ranks)), slices.Compare(a.ranks, b.ranks))
	})
	for i, s := range subsets {
		for _, around := range subsets[:i] {
			if around.n >= rareSubset*s.n && containsAll(around.ranks, s.ranks) {
				t.of[s.key] = t.of[around.key]
			}
		}
		if t.of[s.key] == nil {
			c := newPeerGroup(set, s.ranks, spread)
			t.of[s.key], t.peerGroups = c, append(t.peerGroups, c)
		}
		t.of[s.key].n += s.n
	}
	for _, c := range t.peerGroups {
		c.gathering.Grow(c.n)
	}
	return t
}

// containsAll reports whether all of b are in a; both are ascending.
func containsAll(a, b []int32) bool {
	for _, v := range a {
		if len(b) > 0 && b[0] == v {
			b = b[1:]
		}
	}
	return len(b) == 0
}

func newPeerGroup(set *profile.Set, ranks []int32, spread int64) *peerGroup {
	names := order.Each(ranks, func(r int32) string { return set.Ranks[r] })
	c := &peerGroup{ranks: ranks, gathering: straggler.NewSyncSamples(names, spread)}
	c.gathering.Recorded, c.gathering.What, c.gathering.Verb = true, (&Collectives{OfHosts: spread == hostSpread}).what(), straggler.Arrives
	return c
}

// fewNamed is how many ranks are named one by one.
const fewNamed = 4

// peers names the other ranks of the peer group, if they are few, and if there are ranks outside of it.
func (c *peerGroup) peers(name string) string {
	if c.whole || len(c.ranks) > fewNamed {
		return ""
	}
	others := slices.DeleteFunc(slices.Clone(c.gathering.Names), func(other string) bool { return other == name })
	return inList(others)
}

// inList joins names as a sentence does: "a, b and c".
func inList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// groupOf returns the peer group of a sync point; nil if ranks don't wait in any sync point of these ranks.
func (t *peerGroupTable) groupOf(x *profile.CollectiveMatch) *peerGroup {
	if !slices.EqualFunc(x.Arrivals, t.knownOf, func(a profile.Arrival, rank int32) bool { return a.Rank == rank }) {
		t.known, t.knownOf = t.of[string(t.keyOf(x))], t.knownOf[:0]
		for i := range x.Arrivals {
			t.knownOf = append(t.knownOf, x.Arrivals[i].Rank)
		}
	}
	return t.known
}

// first returns the first rank of the peer group of a sync point, or, if ranks don't wait, of the ranks seen.
func (t *peerGroupTable) first(x *profile.CollectiveMatch) int32 {
	if c := t.groupOf(x); c != nil {
		return c.ranks[0]
	}
	return x.Arrivals[0].Rank
}

// add adds a sync point at which ranks wait to its peer group. The group's time extends back
// to the previous sync point, unless there was a pause in between.
func (t *peerGroupTable) add(e *encounter) {
	c := t.groupOf(e.Match)
	t.arrivals, t.stays = t.arrivals[:0], t.stays[:0]
	there := 0
	for _, rank := range c.ranks {
		arrival, stay := int64(straggler.NoArrival), int64(0)
		if there < len(e.Match.Arrivals) && e.Match.Arrivals[there].Rank == rank {
			arrival, stay = e.arrivals[there], e.took[there]
			there++
		}
		t.arrivals, t.stays = append(t.arrivals, arrival), append(t.stays, stay)
	}
	if e.byClock {
		c.bound = max(c.bound, e.Match.Bound)
	}
	// Ends are nearly the same on all ranks. Always taking the rank that is nearly always there
	// keeps clock differences out of the times between them.
	end := e.Match.Arrivals[0].End
	took := int64(0)
	c.gathering.Blur = max(c.gathering.Blur, e.Match.Blur)
	if c.gathering.Undated() {
		took = slices.Max(e.took)
	} else if c.end != 0 && end > c.end {
		took = min(distribution.Between(c.end, end), e.took[0]+longestWork)
	}
	c.end = max(c.end, end)
	c.length = distribution.AddTimes(c.length, took*int64(len(c.ranks)))
	c.gathering.Meet(end, t.arrivals, took)
	if e.Match.Apart {
		c.gathering.Leave(t.stays)
	}
}

func (t *peerGroupTable) finish() []*peerGroup {
	seen := map[int32]bool{}
	for _, c := range t.peerGroups {
		for _, r := range c.ranks {
			seen[r] = true
		}
	}
	for _, c := range t.peerGroups {
		c.gathering.Floor += c.bound
		c.gathering.Group = words.Counted(len(c.ranks), "rank")
		c.whole = len(c.ranks) == len(seen)
	}
	return t.peerGroups
}
