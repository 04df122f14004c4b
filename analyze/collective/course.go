package collective

import (
	"cmp"
	"iter"
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
	met, course := 0, &WaitCourse{Met: make([]int, parts)}
	for _, end := range endsOfWaits(set, from, to) {
		if met == 0 || end < course.From {
			course.From = end
		}
		course.To = max(course.To, end)
		met++
	}
	if met == 0 {
		return nil
	}
	at := make([]int, len(set.Ranks)) // index into c.Ranks
	for i := range c.Ranks {
		at[c.Ranks[i].rankIndex] = i
	}
	sums := map[WaitIn]int64{} // by keys without Wait
	for e, end := range endsOfWaits(set, from, to) {
		part := course.part(end)
		course.Met[part]++
		for k := range e.SyncPoint.Arrivals {
			if wait := e.waitForLast(k); wait > 0 {
				key := WaitIn{Part: part, Rank: at[e.SyncPoint.Arrivals[k].Rank], Last: at[e.SyncPoint.Arrivals[e.last].Rank]}
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

// endsOfWaits passes the collectives at which ranks wait, and when each ended.
func endsOfWaits(set *profile.Set, from, to trace.Time) iter.Seq2[*encounter, trace.Time] {
	return func(yield func(*encounter, trace.Time) bool) {
		var e encounter
		for x := range within(set, from, to) {
			if !e.look(x) || !e.waits {
				continue
			}
			if _, end := bounds(x); !yield(&e, end) {
				return
			}
		}
	}
}

// part is the part of the time that a moment is in.
func (c *WaitCourse) part(at trace.Time) int {
	if c.To == c.From {
		return 0
	}
	parts := len(c.Met)
	return min(parts-1, int(float64(at-c.From)/float64(c.To-c.From)*float64(parts)))
}
