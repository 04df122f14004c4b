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

// A Timeline is how load, throughput and latency went on over time: everywhere,
// in every role, on every rank. docs/METRICS.md defines the numbers.
type Timeline struct {
	Grid
	From, To trace.Time // of the requests
	Stages   []string   // that Series.Stages are about
	// Series are in the order of display: everywhere first, then role by role,
	// each followed by its ranks.
	Series []Series
	// Unfinished requests lack what they were doing when the dump ends.
	Unfinished int
	// Outside are requests that are left out, as they were long before or after all
	// others.
	Outside int
}

// A Series is one place over time. What has an element per bucket is nil where
// nothing is known of it.
type Series struct {
	Location place.Location
	// Lead tells that the rank stands for those that do the same work beside it.
	// A role has the sum of its lead ranks.
	Lead       bool
	Points     []Point
	Stages     [][]Spread // by Timeline.Stages
	TTFT, TPOT []Spread   // of the requests that arrived; everywhere only
	// Good counts the requests that arrived and met an SLO; everywhere only, and nil unless
	// somebody asked.
	Good []Good
}

// A Good is how many requests met an SLO, of those of which that is known.
type Good struct{ Met, Judged int64 }

// A Point is a place in one bucket. A number that is not known is NaN, a count
// request.Unknown.
type Point struct {
	// Arrivals are requests, for a role or rank the parts of requests that began
	// there.
	Arrivals int64
	// Running, Queued and Transferring are how many requests were so, on average
	// over the bucket. Everywhere, Running is how many were under way.
	Running, Queued, Transferring float64
	// Output are the tokens that came out, Prefill those of prompts that were
	// computed.
	Output, Prefill int64
	// Busy is how much of what it can do the place did, see [Busy]; of a role the
	// mean of its lead ranks.
	Busy float64
	// Share is the part of the role's arrivals that a lead rank got.
	Share float64
	// Imbalance is the most running requests that a lead rank of a role had, over
	// the mean of all.
	Imbalance float64
}

// A Spread is how long something took that began in a bucket: nearest rank
// percentiles in ns.
type Spread struct {
	N        int
	P50, P99 int64
}

// A timeline has so many buckets and points at most: beyond, nobody looks and
// memory runs out.
const (
	maxBuckets = 20_000
	maxPoints  = 2_000_000
)

// New divides the time of the requests of s into buckets; zero chooses
// about 60 of a round length.
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

// Whole returns what went on in the time of some requests, on every rank: one bucket. Of stages, it
// has decode steps only.
func Whole(of *place.RankSet, all Bulk) *Timeline {
	t := &Timeline{From: all.From, To: all.To, Stages: of.Set.WatchedNames(), Outside: all.Outside}
	t.Grid = Grid{Bucket: int64(all.To-all.From) + 1, Spans: []Span{{Start: all.From, N: 1}}}
	b := newTimelineBuilder(of, t, all)
	b.brief = true
	b.build()
	return t
}

// At returns the bucket of a time. What lies before the first request or after the last, as
// clocks of hosts differ, is in the first or the last one.
func (t *Timeline) At(at trace.Time) int { return t.Of(min(max(at, t.From), t.To)) }

// bounds returns the part of bucket b that lies between the first and the last
// request: rates are about that.
func (t *Timeline) bounds(b int) (from, to trace.Time) {
	from = t.Start(b)
	return max(from, t.From), min(from+trace.Time(t.Bucket), t.To)
}

// PerSecond returns what n in bucket b is per second; NaN if n is unknown.
func (t *Timeline) PerSecond(b int, n int64) float64 {
	from, to := t.bounds(b)
	if n == request.Unknown || to <= from {
		return math.NaN()
	}
	return float64(n) / (float64(to-from) / 1e9)
}

// Notes say what a reader might take for something else.
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

// A Bulk is the time in which the requests of a set were.
type Bulk struct {
	From, To trace.Time
	Outside  int // requests that are not within
}

// BulkOf returns the time of all requests of s. If some have nothing to do with
// the others, such as one with a forged time or a probe on the day before, it is
// that of the others: of nineteen in twenty, if all take a hundred times as long.
func BulkOf(s *request.Set) Bulk {
	const (
		rare = 40 // one in so many at either end
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

// Holds reports whether a request is within.
func (b *Bulk) Holds(r *request.Request) bool { return r.Start >= b.From && r.End <= b.To }
