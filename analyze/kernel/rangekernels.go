package kernel

import (
	"cmp"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A RangeKernelSum is the time of all kernels of one name that were launched in
// ranges of one name.
type RangeKernelSum struct {
	Row          walk.Row
	PID          int32 // -1 is unknown, or ranks are pooled
	TID          int64 // as PID
	Style        profile.RangeStyle
	Range        string
	Ranges       int64   // how many of the ranges launched the kernel
	Share        float64 // of the kernels in the ranges
	Distribution distribution.Distribution

	group int32 // rows of the same ranges
}

// RangeKernelSums are the times of kernels by the ranges that launched them. A kernel
// counts for all ranges around its launch. Ranges with the longest total come first.
type RangeKernelSums struct {
	Rows   []RangeKernelSum
	ByRank bool
	// Open is how many ranges were left out since they were never closed, OpenNames are
	// the first names of those.
	Open      int64
	OpenNames []string
	// Outside is how many kernels lie in no range, OutsideTime is their time.
	Outside, OutsideTime int64

	ranks       int // in the set
	approximate int // rows
}

// SumRangeKernels sums up kernels by the ranges in which they were launched, like
// nvtx_kern_sum of nsys stats. The window bounds the kernels, not the ranges. It
// holds 8 bytes per kernel and range, and 24 per range and 4 per call of a stream
// while it walks through it.
func SumRangeKernels(set *profile.Set, opt walk.Options) *RangeKernelSums {
	streams := make([]*attribution, len(set.Streams))
	walk.EachStream(set, func(i int, stream profile.Stream) { streams[i] = attribute(set, stream, &opt) })
	s := &RangeKernelSums{ByRank: opt.ByRank, ranks: len(set.Ranks)}
	open := make([]openRanges, len(streams))
	kernels := map[trace.Sym]bool{}
	for i, a := range streams {
		open[i] = a.open
		s.Outside += a.outside
		s.OutsideTime = distribution.AddTimes(s.OutsideTime, a.outsideTime)
		for _, name := range a.names {
			kernels[name] = true
		}
	}
	s.Open, s.OpenNames = allOpen(set, open)
	rows := newRangeRows(set, streams, &opt)
	s.sum(set, rows, kernels, &opt)
	s.order(rows.rows)
	return s
}

// sum makes the rows of all kernels, on all cores.
func (s *RangeKernelSums) sum(set *profile.Set, rows *rangeRows, kernels map[trace.Sym]bool, opt *walk.Options) {
	next := make(chan trace.Sym, len(kernels))
	for name := range kernels {
		next <- name
	}
	close(next)
	parts := make([][]RangeKernelSum, min(runtime.GOMAXPROCS(0), walk.MaxWalks))
	approximate := make([]int, len(parts))
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			summer := newRangeSummer(rows, opt)
			var t distribution.Tally
			for name := range next {
				for _, slot := range summer.kernel(name) {
					slot.sample.Settle(summer.in)
					row := newRangeKernelSum(set, rows.rows[slot.row], name, &slot)
					var rough bool
					if row.Distribution, rough = t.Of(&slot.sample); rough {
						approximate[i]++
					}
					parts[i] = append(parts[i], row)
				}
			}
		})
	}
	wg.Wait()
	s.Rows = slices.Concat(parts...)
	for _, n := range approximate {
		s.approximate += n
	}
}

func newRangeKernelSum(set *profile.Set, in rangeRow, kernel trace.Sym, slot *rangeSlot) RangeKernelSum {
	row := RangeKernelSum{
		Row: walk.NewRow(set, walk.Key{Rank: in.thread.rank, Name: kernel}, 0),
		PID: in.thread.pid, TID: in.thread.tid, Style: in.style, Range: set.Syms.Name(in.name), Ranges: slot.ranges, group: slot.row,
	}
	for _, word := range slot.ranks {
		row.Row.Ranks += bits.OnesCount64(word)
	}
	return row
}

// order sorts the rows and finds their shares. Threads of a range come together.
func (s *RangeKernelSums) order(rows []rangeRow) {
	totals, pooled := make([]int64, len(rows)), map[rangeRow]int64{}
	whole := make([]int64, len(rows)) // of the range, on all threads
	for i := range s.Rows {
		row := &s.Rows[i]
		totals[row.group] = distribution.AddTimes(totals[row.group], row.Distribution.Total)
	}
	for i, row := range rows {
		row.thread = pooledThread
		pooled[row] = distribution.AddTimes(pooled[row], totals[i])
	}
	for i, row := range rows {
		row.thread = pooledThread
		whole[i] = pooled[row]
	}
	for i := range s.Rows {
		s.Rows[i].Share = distribution.Fraction(s.Rows[i].Distribution.Total, totals[s.Rows[i].group])
	}
	slices.SortFunc(s.Rows, func(a, b RangeKernelSum) int {
		return cmp.Or(
			cmp.Compare(whole[b.group], whole[a.group]), strings.Compare(a.Range, b.Range), cmp.Compare(a.Style, b.Style),
			cmp.Compare(a.Row.RankIndex, b.Row.RankIndex), cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID),
			a.Row.Compare(&b.Row, a.Distribution.Total, b.Distribution.Total))
	})
}

// Report makes a table of the sums.
func (s *RangeKernelSums) Report() *table.Table {
	row := func(r *RangeKernelSum) *walk.Row { return &r.Row }
	fields := walk.RankFields(s.ByRank, row)
	if s.ByRank {
		fields = append(fields, walk.ThreadFields(func(r *RangeKernelSum) (int32, int64) { return r.PID, r.TID })...)
	}
	fields = append(fields, walk.ShareField("part of the time of all kernels in the ranges", func(r *RangeKernelSum) float64 { return r.Share }))
	fields = append(fields, table.DistributionFields(table.DistributionColumns[RangeKernelSum]{
		Unit: table.Duration, What: "kernels", Of: func(r *RangeKernelSum) *distribution.Distribution { return &r.Distribution },
		Show: []string{"total", "instances", "avg", "med", "max", "p99"},
	})...)
	fields = append(fields,
		table.Field[RangeKernelSum]{Column: table.Column{Name: "ranges", Unit: table.Count, Doc: "how many of the ranges launched the kernel"}, Cell: func(r *RangeKernelSum) table.Cell { return table.Cell{N: r.Ranges} }})
	fields = append(fields, walk.RanksFields(s.ByRank, s.ranks, row)...)
	fields = append(fields,
		walk.StyleField(func(r *RangeKernelSum) profile.RangeStyle { return r.Style }),
		table.Field[RangeKernelSum]{Column: table.Column{Name: "range", Doc: "name of the ranges", Most: table.MostName}, Cell: func(r *RangeKernelSum) table.Cell { return table.TextCell(r.Range) }},
		walk.NameField("kernel", row))
	r := table.New("sgtrace.report.rangekernels/v1", "Kernels by range", s.Rows, fields)
	if s.Outside > 0 {
		r.Note("kernels launched outside of ranges: %d (%s)", s.Outside, table.InWords(s.OutsideTime))
	}
	noteOpen(r, s.Open, s.OpenNames)
	table.NoteApproximate(r, s.approximate)
	table.NoteFewSamples(r, s.Rows, func(r *RangeKernelSum) int64 { return r.Distribution.N }, func(r *RangeKernelSum) string { return r.Range + " " + r.Row.Name })
	return r
}
