package collective

import (
	"iter"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// endSpread is how far apart, in ns, the ends of a collective are on ranks that leave it
// together: 1 to 3 us were measured for an all-to-all, 5 to 7 us for an all-reduce on a ring.
const endSpread = 5_000

// hostSpread is the same for host collectives: 120 to 160 us were measured for gloo's
// all-reduce, as threads wait for messages and for a core.
const hostSpread = 200_000

// nobody is the index of the last rank if several came last.
const nobody = -1

// An encounter is a sync point with the arrivals of its ranks.
type encounter struct {
	Match  *profile.CollectiveMatch
	spread int64 // endSpread or hostSpread
	// byClock reports that arrivals are starts. If host clocks are less accurate than the ends of the ranks agree, a rank
	// is taken to have arrived earlier the longer its kernel ran: then arrivals are times before the common end, negative.
	byClock bool
	// waits reports that ranks wait for the last one, and that it is known who that is. If ranks
	// leave separately, only clocks can show it.
	waits    bool
	begins   bool    // the recording of some rank begins with it, so nobody is judged by it
	arrivals []int64 // by index in Match.Arrivals, ns
	took     []int64 // same index: how long the kernel of the rank ran, ns
	last     int     // index of the rank that came after all others, or nobody
	latest   int64   // latest arrival
	transfer int64   // the shortest duration, ns

	sorted []int64
}

// look reads a sync point. It returns false for an impossible one, at which ranks wait for
// each other, and yet one was gone before the last one came.
func (e *encounter) look(x *profile.CollectiveMatch) bool {
	e.Match = x
	e.byClock = x.Bound >= 0 && x.Bound <= e.spread
	// The first event of a rank depends on when its profiler started. On devices, it is one of many, and doesn't matter.
	e.begins = x.Sync && x.First && e.spread == hostSpread
	e.waits = x.Sync && (e.byClock || !x.Apart) && !e.begins
	e.arrivals, e.took = e.arrivals[:0], e.took[:0]
	firstEnd, lastStart := x.Arrivals[0].End, x.Arrivals[0].Start
	for i := range x.Arrivals {
		a := &x.Arrivals[i]
		firstEnd, lastStart = min(firstEnd, a.End), max(lastStart, a.Start)
		took := int64(0)
		if a.End > a.Start {
			took = distribution.Between(a.Start, a.End)
		}
		e.took = append(e.took, took)
		if e.byClock {
			e.arrivals = append(e.arrivals, int64(a.Start))
		} else {
			e.arrivals = append(e.arrivals, -took)
		}
	}
	if x.Sync && !x.Apart && x.Bound >= 0 && lastStart-firstEnd > trace.Time(e.spread+x.Bound) {
		return false
	}
	e.sorted = append(e.sorted[:0], e.arrivals...)
	slices.Sort(e.sorted)
	e.latest = e.sorted[len(e.sorted)-1]
	e.last = slices.Index(e.arrivals, e.latest)
	if e.sorted[len(e.sorted)-2] == e.latest {
		e.last = nobody
	}
	e.transfer = slices.Min(e.took)
	return true
}

// wait returns how long a rank waited for the last one, in ns. A rank that may leave earlier waited until then at most.
func (e *encounter) wait(i int) int64 {
	wait := e.latest - e.arrivals[i]
	if e.Match.Apart {
		wait = min(wait, e.took[i])
	}
	return wait
}

// times are time differences in ns, most of which take 4 bytes.
type times struct {
	near distribution.Sample // values plus nearZero
	far  []int64             // the others
}

// nearZero is the largest absolute time that takes 4 bytes.
const nearZero = 1 << 31

func (t *times) add(ns int64) {
	if ns >= -nearZero && ns < nearZero {
		t.near.Add(ns+nearZero, distribution.NoLimit)
	} else {
		t.far = append(t.far, ns)
	}
}

// A timeSorter computes percentiles of times, reusing scratch space.
type timeSorter struct{ values, scratch []int64 }

// percentiles returns the median and the 99th percentile, nearest rank, of several times together; 0 if there are none.
func (s *timeSorter) percentiles(all ...*times) (p50, p99 int64) {
	s.values = s.values[:0]
	far := false
	for _, t := range all {
		t.near.Each(func(v int64) { s.values = append(s.values, v) })
		far = far || len(t.far) > 0
	}
	if far {
		for i := range s.values {
			s.values[i] -= nearZero
		}
		for _, t := range all {
			s.values = append(s.values, t.far...)
		}
		slices.Sort(s.values)
		return request.NearestRank(s.values, 50), request.NearestRank(s.values, 99)
	}
	if len(s.values) == 0 {
		return 0, 0
	}
	s.values, s.scratch = order.Integers(s.values, s.scratch, 0)
	return request.NearestRank(s.values, 50) - nearZero, request.NearestRank(s.values, 99) - nearZero
}

// A summarizer summarizes samples, reusing scratch space.
type summarizer struct {
	Summarizer distribution.Summarizer
	values     []int64
}

func (s *summarizer) of(x *distribution.Sample) distribution.Summary {
	s.values = slices.Grow(s.values[:0], x.Len())
	x.Each(func(v int64) { s.values = append(s.values, v) })
	return s.Summarizer.Summarize(s.values)
}

// A Stall is a time in which all ranks of a collective but one have come, and wait for that one.
type Stall struct {
	Match      *profile.CollectiveMatch
	Last, Next int   // indexes into Match.Arrivals: the one waited for, and the last but one
	Ns         int64 // between them
}

// Stalls yields the stalls in collectives, as far as clocks can tell. A stall is valid until the next one.
func Stalls(set *profile.Set) iter.Seq[*Stall] {
	return func(yield func(*Stall) bool) {
		if set.Collectives == nil {
			return
		}
		e := &encounter{spread: endSpread}
		for x := range set.Matches(false) {
			if !e.look(x) || !e.waits || e.last == nobody || x.Blur != 0 {
				continue
			}
			next := e.sorted[len(e.sorted)-2]
			s := Stall{Match: x, Last: e.last, Next: slices.Index(e.arrivals, next), Ns: e.latest - next}
			if s.Ns > 0 && !yield(&s) {
				return
			}
		}
	}
}
