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

// endSpread is how far apart the ranks of a collective that leave it together end, in
// ns: measured are 1 to 3 us of an all-to-all, 5 to 7 us of an all-reduce on a ring.
const endSpread = 5_000

// hostSpread is the same of collectives of hosts: measured are 120 to 160 us of gloo's all-reduce, as threads wait
// for messages and for a core.
const hostSpread = 200_000

// nobody is the index of the last rank where several came last.
const nobody = -1

// An encounter is a sync point and who came to it when.
type encounter struct {
	Match  *profile.CollectiveMatch
	spread int64 // endSpread or hostSpread
	// byClock tells that arrivals are starts. Where the clocks of hosts are known less
	// well than that ranks leave together, a rank arrived the earlier the longer its
	// kernel ran: then arrivals are the times from an end that all share, negative.
	byClock bool
	// waits tells that ranks wait for the last one, and that it is known who that is. Those
	// that leave apart show it by clocks alone.
	waits    bool
	begins   bool    // the recording of some rank does, so that nobody is judged by it
	arrivals []int64 // of Match.Arrivals, ns
	took     []int64 // by these: how long the kernel of the rank ran, ns
	last     int     // index of the one after all others, or nobody
	latest   int64   // arrival of the last
	transfer int64   // the shortest duration, ns

	sorted []int64
}

// look takes in a sync point. It is false for one that cannot be: at which ranks wait
// for each other, and yet one was gone before the last one came.
func (e *encounter) look(x *profile.CollectiveMatch) bool {
	e.Match = x
	e.byClock = x.Bound >= 0 && x.Bound <= e.spread
	// What was first recorded of a rank shows when its profiler started. On devices, that is one of very many.
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

// wait returns how long a rank waited for the last one, in ns. One that may leave before
// waited until then at most.
func (e *encounter) wait(i int) int64 {
	wait := e.latest - e.arrivals[i]
	if e.Match.Apart {
		wait = min(wait, e.took[i])
	}
	return wait
}

// times are differences of times, ns. Most take 4 bytes.
type times struct {
	near distribution.Sample // nearZero more
	far  []int64             // the others
}

// nearZero is how far from zero a time is that takes 4 bytes.
const nearZero = 1 << 31

func (t *times) add(ns int64) {
	if ns >= -nearZero && ns < nearZero {
		t.near.Add(ns+nearZero, distribution.NoLimit)
	} else {
		t.far = append(t.far, ns)
	}
}

// A timeSorter finds percentiles of times. It keeps its scratch space.
type timeSorter struct{ values, scratch []int64 }

// percentiles returns the median and the 99th percentile, nearest rank, of some times
// together; 0 of none.
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

// A summarizer sums up samples. It keeps its scratch space.
type summarizer struct {
	Summarizer distribution.Summarizer
	values     []int64
}

func (s *summarizer) of(x *distribution.Sample) distribution.Summary {
	s.values = slices.Grow(s.values[:0], x.Len())
	x.Each(func(v int64) { s.values = append(s.values, v) })
	return s.Summarizer.Summarize(s.values)
}

// A Stall is that all ranks of a collective but one have come, and wait for that one.
type Stall struct {
	Match      *profile.CollectiveMatch
	Last, Next int   // of Match.Arrivals: the one that is waited for, and the last but one
	Ns         int64 // between them
}

// Stalls yields where ranks waited for one of them, as far as clocks tell. A stall is good until the next one.
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
