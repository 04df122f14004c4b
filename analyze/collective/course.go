package collective

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A WaitCourse is who waited for whom as time went on: the sums of [Collectives.Waits] in
// equal parts of the time from From to To, when the first of the collectives ended and the
// last one.
type WaitCourse struct {
	From, To trace.Time
	Met      []int    // in each part: collectives at which ranks wait
	Waits    []WaitIn // by part, rank, and last; none is 0
}

// A WaitIn is how long a rank waited for another one in a part of the time. Both are indexes
// into [Collectives.Ranks].
type WaitIn struct {
	Part, Rank, Last int
	Wait             int64 // ns
}

// How many parts a course has: fewer where many ranks would make it large.
const (
	mostParts  = 200
	leastParts = 10
	usualWaits = 30_000  // in all parts, about
	mostWaits  = 300_000 // beyond, nobody looks
)

// WaitCourse divides the time of the collectives that [Measure] found in the same set and
// bounds; nil where no rank waits, or there are too many.
func (c *Collectives) WaitCourse(set *profile.Set, from, to trace.Time) *WaitCourse {
	pairs := max(1, len(c.Ranks)*len(c.Ranks))
	parts := max(leastParts, min(mostParts, usualWaits/pairs))
	if parts*pairs > mostWaits {
		return nil
	}
	return c.waitCourse(set, from, to, parts)
}

func (c *Collectives) waitCourse(set *profile.Set, from, to trace.Time, parts int) *WaitCourse {
	var met []*profile.SyncPoint
	var ends []trace.Time
	var e encounter
	for _, x := range within(set, from, to) {
		if e.look(x) && e.waits {
			_, end := bounds(x)
			met, ends = append(met, x), append(ends, end)
		}
	}
	if len(met) == 0 {
		return nil
	}
	at := make([]int, len(set.Ranks)) // index into c.Ranks
	for i := range c.Ranks {
		at[c.Ranks[i].rankIndex] = i
	}
	course := &WaitCourse{From: slices.Min(ends), To: slices.Max(ends), Met: make([]int, parts)}
	sums := map[WaitIn]int64{} // by keys without Wait
	for i, x := range met {
		e.look(x)
		part := course.part(ends[i])
		course.Met[part]++
		for k := range x.Arrivals {
			if wait := e.waitForLast(k); wait > 0 {
				key := WaitIn{Part: part, Rank: at[x.Arrivals[k].Rank], Last: at[x.Arrivals[e.last].Rank]}
				sums[key] = distribution.AddTimes(sums[key], wait)
			}
		}
	}
	for key, wait := range sums {
		key.Wait = wait
		course.Waits = append(course.Waits, key)
	}
	slices.SortFunc(course.Waits, func(a, b WaitIn) int {
		return cmp.Or(cmp.Compare(a.Part, b.Part), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Last, b.Last))
	})
	return course
}

// part is the part of the time that a moment is in.
func (c *WaitCourse) part(at trace.Time) int {
	if c.To == c.From {
		return 0
	}
	parts := len(c.Met)
	return min(parts-1, int(float64(at-c.From)/float64(c.To-c.From)*float64(parts)))
}
