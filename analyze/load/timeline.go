package load

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Timeline is load, throughput and latency over time: everywhere, in every role, on every rank.
// docs/METRICS.md defines the numbers.
type Timeline struct {
	Grid
	From, To trace.Time // of the requests
	Stages   []string   // names of Series.Stages
	// Series are in the order of display: everywhere first, then role by role,
	// each followed by its ranks.
	Series []Series
	// Unfinished is the number of requests without an end. What they were doing when the dump ends is missing.
	Unfinished int
	// Outside is the number of requests that are left out, since they are long before or after all
	// others.
	Outside int
}

// A Series is one place over time. Slices with an element per bucket are nil if nothing of that kind is
// known.
type Series struct {
	Location place.Location
	// Lead reports that the rank stands for the others that do the same work. A role is the sum of its
	// lead ranks.
	Lead       bool
	Points     []Point
	Stages     [][]Spread // by Timeline.Stages
	TTFT, TPOT []Spread   // of the requests that arrived; everywhere only
	// Good counts the requests that arrived and met an SLO. It is set for everywhere only, if an SLO
	// was given.
	Good []GoodCount
}

// A GoodCount is how many requests met an SLO, and for how many that is known.
type GoodCount struct{ Met, Judged int64 }

// A Point is a place in one bucket. Unknown numbers are NaN, unknown counts request.Unknown.
type Point struct {
	// Arrivals are requests; for a role or rank, the parts of requests that began there.
	Arrivals int64
	// Running, Queued and Transferring are the mean numbers of requests in these states over the
	// bucket. Everywhere, Running is the number under way.
	Running, Queued, Transferring float64
	// Output is the number of tokens that came out, and Prefill that of prompt tokens that were
	// computed.
	Output, Prefill int64
	// Busy is how much of its capacity the place used, see [Busy]; for a role, the mean of its lead
	// ranks.
	Busy float64
	// Share is the share of the role's arrivals that a lead rank got.
	Share float64
	// Imbalance is the most running requests on a lead rank of the role, divided by their mean over all
	// lead ranks.
	Imbalance float64
}

// A Spread summarizes how long something took that began in a bucket: nearest rank percentiles, in ns.
type Spread struct {
	N        int
	P50, P99 int64
}

// Limits of a timeline: nobody looks at more buckets and points, and memory would run out.
const (
	maxBuckets = 20_000
	maxPoints  = 2_000_000
)

// New divides the time of the requests of s into buckets; zero chooses a round length that makes about
// 60.
func New(s *request.Set, bucket time.Duration) (*Timeline, error) {
	e := BulkOf(s)
	t := &Timeline{From: e.From, To: e.To, Stages: s.WatchedNames(), Outside: e.Outside}
	for i := range s.AllRequests() {
		if r := &s.Requests[i]; r.Status == request.Unfinished && e.Holds(r) {
			t.Unfinished++
		}
	}
	if bucket <= 0 {
		bucket = time.Duration(max(int64(time.Millisecond), ChooseBucket(int64(t.To-t.From))))
	}
	t.Bucket = int64(bucket)
	if len(s.Requests) == 0 {
		return t, nil
	}
	t.Grid = *NewGrid([]request.Interval{{From: t.From, To: t.To + 1}}, bucket)
	ranks, n := place.NewRankSet(s), t.N()
	if n > maxBuckets || n*len(ranks.Places) > maxPoints {
		return nil, fmt.Errorf("--bucket %v: that is too short for %s from the first to the last request, %s of %s; choose longer ones, or a part of the time",
			bucket, words.Nearly(int64(t.To-t.From)), words.Counted(n, "bucket"), words.Counted(len(ranks.Places), "rank"))
	}
	newTimelineBuilder(ranks, t, e).build()
	return t, nil
}

// Whole returns the load on every rank over the time of some requests, in one bucket. Its only stages
// are decode steps.
func Whole(of *place.RankSet, all Bulk) *Timeline {
	t := &Timeline{From: all.From, To: all.To, Stages: of.Set.WatchedNames(), Outside: all.Outside}
	t.Grid = Grid{Bucket: int64(all.To-all.From) + 1, Spans: []Span{{Start: all.From, N: 1}}}
	b := newTimelineBuilder(of, t, all)
	b.brief = true
	b.build()
	return t
}

// At returns the bucket of a time. As clocks of hosts differ, times before the first request or after
// the last are in the first or the last bucket.
func (t *Timeline) At(at trace.Time) int { return t.Of(min(max(at, t.From), t.To)) }

// bounds returns the part of bucket b between the first and the last request, which rates refer to.
func (t *Timeline) bounds(b int) (from, to trace.Time) {
	from = t.Start(b)
	return max(from, t.From), min(from+trace.Time(t.Bucket), t.To)
}

// PerSecond returns the rate of n in bucket b, per second; NaN if n is unknown.
func (t *Timeline) PerSecond(b int, n int64) float64 {
	from, to := t.bounds(b)
	if n == request.Unknown || to <= from {
		return math.NaN()
	}
	return float64(n) / (float64(to-from) / 1e9)
}

// Notes say what a reader might misunderstand.
func (t *Timeline) Notes() []string {
	var notes []string
	if t.Outside > 0 {
		notes = append(notes, words.Counted(t.Outside, "request")+" left out: long before or after all others")
	}
	if t.Unfinished > 0 {
		notes = append(notes, words.Counted(t.Unfinished, "request")+" without an end: what was being done where the dump ends is missing")
	}
	return notes
}

// A Bulk is the time of the requests of a set.
type Bulk struct {
	From, To trace.Time
	Outside  int // requests outside of it
}

// BulkOf returns the time of all requests of s. If a few have nothing to do with the others, such as
// one with a forged time or a probe the day before, it is the time of the others: of nineteen in
// twenty, if all of them take a hundred times as long.
func BulkOf(s *request.Set) Bulk {
	const (
		rare = 40 // one in this many at either end
		far  = 100
	)
	n := len(s.Requests)
	if n == 0 {
		return Bulk{}
	}
	starts, ends := memory.Make[trace.Time](n), memory.Make[trace.Time](n)
	for i := range s.AllRequests() {
		starts[i], ends[i] = s.Requests[i].Start, s.Requests[i].End
	}
	b := Bulk{From: slices.Min(starts), To: slices.Max(ends)}
	from, to := order.Nth(starts, n/rare), order.Nth(ends, n-1-n/rare)
	if long := to - from; n >= rare && long > 0 && (b.To-b.From)/far > long {
		b.From, b.To = max(b.From, from-long), min(b.To, to+long)
	}
	tight := Bulk{From: b.To, To: b.From}
	for i := range s.AllRequests() {
		if r := &s.Requests[i]; b.Holds(r) {
			tight.From, tight.To = min(tight.From, r.Start), max(tight.To, r.End)
		} else {
			tight.Outside++
		}
	}
	return tight
}

// Holds reports whether a request is within b.
func (b *Bulk) Holds(r *request.Request) bool { return r.Start >= b.From && r.End <= b.To }
