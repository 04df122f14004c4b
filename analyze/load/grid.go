package load

import (
	"cmp"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Grid divides the time in which something was recorded into buckets of one length, aligned to
// multiples of it. Long pauses in the recording have no buckets.
type Grid struct {
	Bucket int64 // ns
	Spans  []Span
}

// A Span is a row of consecutive buckets.
type Span struct {
	Start trace.Time // of the first bucket
	First int        // number of the first bucket
	N     int
}

// farApart is the length of a pause, in buckets, from which on it has no buckets.
const farApart = 10

// NewGrid divides the times of recordings into buckets. Zero chooses a length such that there are 20 to
// 60, apart from those that are cut off at the ends of recordings.
func NewGrid(recorded []request.Interval, bucket time.Duration) *Grid {
	joined, total := request.Union(recorded), int64(0)
	for _, r := range joined {
		total = distribution.AddTimes(total, distribution.Between(r.From, r.To))
	}
	g := &Grid{Bucket: int64(bucket)}
	if g.Bucket <= 0 {
		g.Bucket = ChooseBucket(total)
	}
	for _, r := range joined {
		g.add(r)
	}
	return g
}

// bucketSteps are the bucket lengths to choose from, in s. They are round, so bucket limits are, too.
var bucketSteps = []float64{
	1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30,
	60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400,
}

// ChooseBucket returns the shortest bucket length, in ns, with which at most 60 buckets cover an
// extent. For very long extents it is a number of days.
func ChooseBucket(extent int64) int64 {
	const buckets = 60
	for _, step := range bucketSteps {
		if ns := int64(step * 1e9); extent <= buckets*ns {
			return ns
		}
	}
	const day = int64(24 * time.Hour)
	return (extent/buckets/day + 1) * day
}

// add adds the buckets of a recording, which begins after those before it.
func (g *Grid) add(r request.Interval) {
	first := distribution.FloorDiv(int64(r.From), g.Bucket)
	n := distribution.FloorDiv(int64(max(r.From, r.To-1)), g.Bucket) - first + 1
	if last := len(g.Spans) - 1; last >= 0 {
		s := &g.Spans[last]
		if behind := distribution.FloorDiv(int64(s.Start), g.Bucket) + int64(s.N); first < behind+farApart {
			s.N += max(0, int(first+n-behind))
			return
		}
	}
	g.Spans = append(g.Spans, Span{trace.Time(first * g.Bucket), g.N(), int(n)})
}

// N returns how many buckets there are.
func (g *Grid) N() int {
	if len(g.Spans) == 0 {
		return 0
	}
	last := g.Spans[len(g.Spans)-1]
	return last.First + last.N
}

// Start returns when a bucket begins; Start(N) is when the last one ends.
func (g *Grid) Start(bucket int) trace.Time {
	i, found := slices.BinarySearchFunc(g.Spans, bucket, func(s Span, b int) int { return cmp.Compare(s.First, b) })
	if !found {
		i--
	}
	s := g.Spans[i]
	return s.Start + trace.Time(int64(bucket-s.First)*g.Bucket)
}

// Of returns the first bucket that ends after an instant, N if there is none.
func (g *Grid) Of(t trace.Time) int {
	if len(g.Spans) == 1 {
		return min(g.N(), int(max(0, int64(t-g.Spans[0].Start))/g.Bucket))
	}
	i, _ := slices.BinarySearchFunc(g.Spans, t, func(s Span, t trace.Time) int {
		if s.Start+trace.Time(int64(s.N)*g.Bucket) > t {
			return 1
		}
		return -1
	})
	if i == len(g.Spans) {
		return g.N()
	}
	s := &g.Spans[i]
	return s.First + int(max(0, int64(t-s.Start))/g.Bucket)
}

// Each calls f for every bucket that overlaps [from, to), with the length of the overlap, ns.
func (g *Grid) Each(from, to trace.Time, f func(bucket int, length int64)) {
	for b := g.Of(from); b < g.N(); b++ {
		start := g.Start(b)
		if start >= to {
			return
		}
		if length := int64(min(to, start+trace.Time(g.Bucket)) - max(from, start)); length > 0 {
			f(b, length)
		}
	}
}

// fineParts are the numbers of parts into which a bucket may be divided to look for changes: the more,
// the more reliable these are.
var fineParts = []int64{8, 5, 4, 2}

// Fine returns the same time in shorter buckets, no more than most, and how many of them make one of g;
// 1 if they cannot be shorter.
func (g *Grid) Fine(most int) (*Grid, int) {
	for _, n := range fineParts {
		if g.Bucket%n != 0 || g.N() > most/int(n) {
			continue
		}
		f := &Grid{Bucket: g.Bucket / n}
		for _, s := range g.Spans {
			f.Spans = append(f.Spans, Span{s.Start, s.First * int(n), s.N * int(n)})
		}
		return f, int(n)
	}
	return g, 1
}

// An Area adds up, bucket by bucket, how long intervals last. An interval costs the same however many buckets
// it covers: it is added to the first and the last bucket, and for those between only its ends are noted.
type Area struct {
	grid  *Grid
	parts []int64 // ns of intervals that begin or end in the bucket
	edges []int64 // how many more intervals cover the whole bucket than the one before
}

// NewArea returns an area without intervals.
func NewArea(g *Grid) *Area {
	return &Area{g, make([]int64, g.N()), make([]int64, g.N()+1)}
}

// Add adds [from, to).
func (a *Area) Add(from, to trace.Time) {
	first, last := a.grid.Of(from), a.grid.Of(to-1)
	if to <= from || first == len(a.parts) {
		return
	}
	a.part(first, from, to)
	if last == first {
		return
	}
	if last < len(a.parts) {
		a.part(last, from, to)
	}
	a.edges[first+1]++
	a.edges[last]--
}

// part adds the part of an interval that is in a bucket.
func (a *Area) part(b int, from, to trace.Time) {
	start := a.grid.Start(b)
	a.parts[b] += max(0, int64(min(to, start+trace.Time(a.grid.Bucket))-max(from, start)))
}

// Totals returns the ns of every bucket.
func (a *Area) Totals() []int64 {
	totals, open := make([]int64, len(a.parts)), int64(0)
	for b := range totals {
		open += a.edges[b]
		totals[b] = a.parts[b] + open*a.grid.Bucket
	}
	return totals
}
