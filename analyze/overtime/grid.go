package overtime

import (
	"cmp"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/trace"
)

// A Grid divides the time in which something was recorded into buckets of one length, at
// multiples of it. Where nothing was recorded for long, there are no buckets.
type Grid struct {
	Bucket int64 // ns
	Spans  []Span
}

// A Span is buckets that follow each other.
type Span struct {
	Start trace.Time // of the first bucket
	First int        // number of the first bucket
	N     int
}

// farApart is of how many buckets time is left out in which nothing was recorded.
const farApart = 10

// newGrid divides the times of recordings; zero chooses buckets such that there are 20 to
// 60, beside those that are cut off at the ends of recordings.
func newGrid(recorded []gpu.Run, bucket time.Duration) *Grid {
	slices.SortFunc(recorded, func(a, b gpu.Run) int { return cmp.Compare(a.From, b.From) })
	var joined []gpu.Run
	total := int64(0)
	for _, r := range recorded {
		if last := len(joined) - 1; last >= 0 && r.From <= joined[last].To {
			joined[last].To = max(joined[last].To, r.To)
			continue
		}
		joined = append(joined, r)
	}
	for _, r := range joined {
		total = distribution.AddTimes(total, distribution.Between(r.From, r.To))
	}
	g := &Grid{Bucket: int64(bucket)}
	if g.Bucket <= 0 {
		g.Bucket = load.ChooseBucket(total)
	}
	for _, r := range joined {
		g.add(r)
	}
	return g
}

// add adds the buckets of a recording, which begins after those before it.
func (g *Grid) add(r gpu.Run) {
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

// Start returns when a bucket begins; of N, when the last one ends.
func (g *Grid) Start(bucket int) trace.Time {
	i, found := slices.BinarySearchFunc(g.Spans, bucket, func(s Span, b int) int { return cmp.Compare(s.First, b) })
	if !found {
		i--
	}
	s := g.Spans[i]
	return s.Start + trace.Time(int64(bucket-s.First)*g.Bucket)
}

// from returns the first bucket that ends after an instant, N if there is none.
func (g *Grid) from(t trace.Time) int {
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

// each calls f for every bucket that [from, to) has a part of, with the length of that, ns.
func (g *Grid) each(from, to trace.Time, f func(bucket int, length int64)) {
	for b := g.from(from); b < g.N(); b++ {
		start := g.Start(b)
		if start >= to {
			return
		}
		if length := int64(min(to, start+trace.Time(g.Bucket)) - max(from, start)); length > 0 {
			f(b, length)
		}
	}
}

// fineParts are into how many parts a bucket may be divided to look for changes: the more,
// the surer they are.
var fineParts = []int64{8, 5, 4, 2}

// fine returns the same time in shorter buckets, and how many make one of g; 1 where they
// cannot be shorter.
func (g *Grid) fine(most int) (*Grid, int) {
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
