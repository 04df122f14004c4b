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

// A peerGroup is a set of ranks that wait for each other in collectives, whatever the
// communicators are called: kernels of CUDA graphs do not tell.
type peerGroup struct {
	ranks     []int32 // indexes into Set.Ranks, ascending
	gathering *straggler.SyncSamples
	end       trace.Time // of the sync point before; 0 is none
	length    int64      // how long the group was at it, once for each rank, ns
	bound     int64      // the largest of its sync points' that were ordered by clock
	whole     bool       // all ranks that meet anybody are of it
	n         int        // sync points, those that cannot be among them
}

// longestWork is how long ranks work from one collective to the next at most, in ns.
// Beyond, nobody had anything to do.
const longestWork = 100_000_000

// A subset of ranks is seen together where the recording of one of the others begins
// later, or ends earlier. That is rare: a set that is seen a tenth as often as one
// around it, or more, is a group of its own.
const rareSubset = 10

// peerGroupTable finds the peer group of a sync point.
type peerGroupTable struct {
	of         map[string]*peerGroup // by key
	peerGroups []*peerGroup
	key        []byte

	// Most sync points are of the ranks of the one before.
	known   *peerGroup
	knownOf []int32

	arrivals, stays []int64 // of the sync point at hand, by rank of its group
}

// keyOf returns the ranks of a sync point as bytes, which hold until the next call.
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
	// The larger ones come first, so that a rare subset finds the peer group around it; of
	// several the last one found, the smallest.
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

// containsAll reports whether all of b, which is ascending as a is, are in a.
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

// peers names the ranks of the peer group besides the named one, if they are few and not all
// that there are.
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

// groupOf returns the peer group that meets; nil if ranks do not wait in any such sync point.
func (t *peerGroupTable) groupOf(x *profile.CollectiveMatch) *peerGroup {
	if !slices.EqualFunc(x.Arrivals, t.knownOf, func(a profile.Arrival, rank int32) bool { return a.Rank == rank }) {
		t.known, t.knownOf = t.of[string(t.keyOf(x))], t.knownOf[:0]
		for i := range x.Arrivals {
			t.knownOf = append(t.knownOf, x.Arrivals[i].Rank)
		}
	}
	return t.known
}

// first returns the first rank of the peer group that meets, or of those that were seen
// where ranks do not wait.
func (t *peerGroupTable) first(x *profile.CollectiveMatch) int32 {
	if c := t.groupOf(x); c != nil {
		return c.ranks[0]
	}
	return x.Arrivals[0].Rank
}

// add hands a sync point at which ranks wait to its peer group. The time that the peer group was
// at it goes back to the sync point before, unless there was a pause in between.
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
	// Ends are nearly the same; by the rank that is nearly always there, times
	// between them do not depend on clocks.
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
