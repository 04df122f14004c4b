package request

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/parallel"
	"github.com/sgtrace/sgtrace/trace"
)

// SpanCost is the time that a Python process needs to write one span, in ns: about 40 us as measured by
// SGLang's developers, and up to 100 us if its exporter competes for the interpreter. A process that leaves
// exporting to another one (SGLANG_TRACE_ASYNC) needs only a few.
const SpanCost = 40_000

const (
	busiest  = 10_000_000_000 // ns: rates are of the busiest period of this length
	minPiece = 1_000_000_000  // ns: the shortest time that a rate is computed over
	sameGap  = 1_000_000_000  // ns: lost rows that ended within this time are in one gap
)

// A Tracing is the cost of tracing for one proc, and when rows of it were lost.
type Tracing struct {
	PerSecond float64 // rows, in its busiest ten seconds
	Gaps      []Gap   // in the order of time
}

// A Gap is a time in which rows were lost, as far as others prove it: exporters drop them in batches.
type Gap struct {
	Interval     // of the ends of the lost rows
	Lost     int // number of lost rows
}

// Share returns the part of the busiest ten seconds that writing spans took, at SpanCost each.
func (t *Tracing) Share() float64 { return t.PerSecond * SpanCost / 1e9 }

// Tracing returns the cost of tracing for each proc, whether selected or not.
func (s *Set) Tracing() []Tracing {
	type piece struct {
		proc int32
		at   trace.Time
	}
	type sum struct {
		counts  map[piece]int
		extents []Interval
	}
	begin := func() *sum {
		x := &sum{map[piece]int{}, make([]Interval, len(s.Procs))}
		for p := range x.extents {
			x.extents[p] = Interval{From: math.MaxInt64, To: math.MinInt64}
		}
		return x
	}
	all, out := begin(), make([]Tracing, len(s.Procs))
	parallel.Fold(len(s.Rows), RowSize, begin, func(x *sum, from, to int) {
		last, n := piece{}, 0 // rows of a piece are contiguous
		for i := from; i < to; i++ {
			row := &s.Rows[i]
			if row.Proc == None || row.Kind == Duplicate || s.Implausible(i) {
				continue
			}
			extent := &x.extents[row.Proc]
			extent.From, extent.To = min(extent.From, row.Start), max(extent.To, row.End)
			if is := (piece{row.Proc, row.End / busiest}); is != last {
				x.counts[last] += n
				last, n = is, 0
			}
			n++
		}
		x.counts[last] += n
	}, func(x *sum) {
		for p, n := range x.counts {
			all.counts[p] += n
		}
		for p, extent := range x.extents {
			all.extents[p] = Interval{From: min(all.extents[p].From, extent.From), To: max(all.extents[p].To, extent.To)}
		}
	})
	for p, n := range all.counts {
		if n == 0 {
			continue
		}
		x := all.extents[p.proc]
		length := max(minPiece, min(busiest, x.To-x.From))
		t := &out[p.proc]
		t.PerSecond = max(t.PerSecond, float64(n)*1e9/float64(length))
	}
	s.findGaps(out)
	return out
}

// findGaps groups lost rows that are close in time.
func (s *Set) findGaps(out []Tracing) {
	lost := slices.SortedFunc(slices.Values(s.Missing), func(a, b Missing) int { return cmp.Compare(a.Time, b.Time) })
	for _, m := range lost {
		if m.Proc == None {
			continue
		}
		t := &out[m.Proc]
		if n := len(t.Gaps); n == 0 || m.Time-t.Gaps[n-1].To > sameGap {
			t.Gaps = append(t.Gaps, Gap{Interval: Interval{From: m.Time}})
		}
		gap := &t.Gaps[len(t.Gaps)-1]
		gap.To = m.Time
		gap.Lost++
	}
}
