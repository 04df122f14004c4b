package kernel

import (
	"cmp"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A rangeRow identifies the ranges of a row.
type rangeRow struct {
	thread threadKey // pooledThread where ranks are pooled
	name   trace.Sym
	style  profile.RangeStyle
}

var pooledThread = threadKey{rank: profilewalk.NoRank, pid: -1, tid: -1}

// An attribution has all kernels of a stream by their place among its ranges: 8 bytes
// per kernel and range.
type attribution struct {
	links     []link
	classes   []rangeClass
	crossings [][]int32
	threads   []threadKey
	open      openRanges

	kernels order.Paged[int32] // by name: index of names and runs, plus one
	names   []trace.Sym
	runs    []runs
	// Kernels that lie in no range, and their time.
	outside     int64
	outsideTime int64
}

// A link is what is needed of a span once all kernels have their places.
type link struct{ parent, class int32 }

// runs are the kernels of one name.
type runs struct {
	blocks [][]run
	long   []int64 // times of the runs whose dur is longRun, in their order
}

// A run is a kernel: the place of its call, and how long it took in ns.
type run struct{ place, dur uint32 }

const longRun = math.MaxUint32

// attribute finds the places of all kernels of a stream.
func attribute(set *profile.Set, stream profile.Stream, opt *profilewalk.Options) *attribution {
	all := *opt
	all.From, all.To = 0, 0 // a kernel may run long after the range it was launched in
	n := newNest(set, stream, &all)
	a := &attribution{}
	p := newPlaces(set, n)
	j := profilewalk.Joiner{Call: p.add, Orphan: a.leaveOut}
	j.Work = func(k *profile.Kernel) bool {
		if !opt.Keeps(&k.Event) {
			return true
		}
		at := p.of(&k.Event)
		if at == nil {
			return false
		}
		if place := *at >> placeBits; place > 0 {
			a.add(k, place-1)
		} else {
			a.leaveOut(k)
		}
		return true
	}
	j.Run(profile.Within(stream, opt.From, opt.To), opt)
	a.links = make([]link, len(n.spans))
	for i := range n.spans {
		a.links[i] = link{n.spans[i].parent, n.spans[i].class}
	}
	a.classes, a.crossings, a.threads, a.open = n.classes, n.crossings, n.threads.keys, n.open
	return a
}

// innermost returns the innermost spans of a place, one per lane. If there is only one, it is put into
// single to avoid an allocation.
func (a *attribution) innermost(place int32, single *[1]int32) []int32 {
	if int(place) < len(a.links) {
		single[0] = place
		return single[:]
	}
	return a.crossings[int(place)-len(a.links)]
}

// add counts a kernel at a place.
func (a *attribution) add(k *profile.Kernel, place uint32) {
	n := a.kernels.At(int64(k.Name))
	if *n == 0 {
		a.names, a.runs = append(a.names, k.Name), append(a.runs, runs{})
		*n = int32(len(a.runs))
	}
	a.runs[*n-1].add(place, k.Dur())
}

// leaveOut counts a kernel that lies in no range.
func (a *attribution) leaveOut(k *profile.Kernel) {
	a.outside++
	a.outsideTime = distribution.AddTimes(a.outsideTime, k.Dur())
}

func (r *runs) add(place uint32, dur int64) {
	if dur >= longRun {
		r.long = append(r.long, dur)
		dur = longRun
	}
	last := len(r.blocks) - 1
	if last < 0 || len(r.blocks[last]) == cap(r.blocks[last]) {
		size := distribution.MinBlock
		if last >= 0 {
			size = min(2*cap(r.blocks[last]), distribution.MaxBlock)
		}
		r.blocks = append(r.blocks, make([]run, 0, size))
		last++
	}
	r.blocks[last] = append(r.blocks[last], run{place, uint32(dur)})
}

// each passes the places and times of all runs.
func (r *runs) each(f func(place int32, dur int64)) {
	long := r.long
	for _, b := range r.blocks {
		for _, run := range b {
			dur := int64(run.dur)
			if run.dur == longRun {
				dur, long = long[0], long[1:]
			}
			f(int32(run.place), dur)
		}
	}
}

// rangeRows are the rows of a report on ranges.
type rangeRows struct {
	streams []*attribution
	rows    []rangeRow
	of      [][]int32 // by stream and class: index of rows
	words   int       // of bits, one for every rank
}

func newRangeRows(set *profile.Set, streams []*attribution, opt *profilewalk.Options) *rangeRows {
	r := &rangeRows{streams: streams, words: (len(set.Ranks) + 63) / 64}
	var rows order.Groups[rangeRow, struct{}]
	for _, a := range streams {
		of := make([]int32, len(a.classes))
		for i, c := range a.classes {
			row := rangeRow{pooledThread, c.name, c.style}
			if opt.ByRank {
				row.thread = a.threads[c.thread]
			}
			of[i] = int32(rows.At(row))
		}
		r.of = append(r.of, of)
	}
	r.rows = rows.Keys
	return r
}

// A rangeSummer sums up the kernels of one name after the other by the rows that
// they lie in.
type rangeSummer struct {
	*rangeRows
	counted [][]int32 // by stream and span: number of the kernel last counted for it
	current int32     // number of the current kernel
	slotOf  []int32   // by row: index of slots, plus one
	slots   []rangeSlot
	in      *distribution.Store // of the slots
}

// A rangeSlot collects the kernels of one name in one row.
type rangeSlot struct {
	row    int32
	ranges int64
	ranks  []uint64 // a bit for each
	sample distribution.Sample
}

func newRangeSummer(rows *rangeRows, opt *profilewalk.Options) *rangeSummer {
	s := &rangeSummer{rangeRows: rows, slotOf: make([]int32, len(rows.rows)), in: opt.Store()}
	for _, a := range rows.streams {
		s.counted = append(s.counted, make([]int32, len(a.links)))
	}
	return s
}

// kernel collects the kernels of a name, and frees them. The slots are valid until the next call.
func (s *rangeSummer) kernel(name trace.Sym) []rangeSlot {
	for i := range s.slots {
		s.slotOf[s.slots[i].row] = 0
	}
	s.slots = s.slots[:0]
	s.in.Held.Store(0)
	s.current++
	for i, a := range s.streams {
		at := a.kernels.Find(int64(name))
		if at == nil || *at == 0 {
			continue
		}
		var single [1]int32
		a.runs[*at-1].each(func(place int32, dur int64) {
			for _, span := range a.innermost(place, &single) {
				s.add(i, span, dur)
			}
		})
		a.runs[*at-1] = runs{}
	}
	return s.slots
}

// add counts a kernel for a span of a stream and all around it.
func (s *rangeSummer) add(stream int, span int32, dur int64) {
	a, of, counted := s.streams[stream], s.of[stream], s.counted[stream]
	for ; span != none; span = a.links[span].parent {
		class := a.links[span].class
		slot := s.slot(of[class])
		slot.sample.Add(dur, s.in)
		if counted[span] != s.current {
			counted[span] = s.current
			slot.ranges++
			rank := a.threads[a.classes[class].thread].rank
			slot.ranks[rank/64] |= 1 << (rank % 64)
		}
	}
}

func (s *rangeSummer) slot(row int32) *rangeSlot {
	if s.slotOf[row] == 0 {
		s.slots = append(s.slots, rangeSlot{row: row, ranks: make([]uint64, s.words)})
		s.slotOf[row] = int32(len(s.slots))
	}
	return &s.slots[s.slotOf[row]-1]
}

// A RangeKernelSum is the time of all kernels of one name that were launched in
// ranges of one name.
type RangeKernelSum struct {
	Row          profilewalk.Row
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
func SumRangeKernels(set *profile.Set, opt profilewalk.Options) *RangeKernelSums {
	streams := make([]*attribution, len(set.Streams))
	profilewalk.EachStream(set, func(i int, stream profile.Stream) { streams[i] = attribute(set, stream, &opt) })
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
func (s *RangeKernelSums) sum(set *profile.Set, rows *rangeRows, kernels map[trace.Sym]bool, opt *profilewalk.Options) {
	next := make(chan trace.Sym, len(kernels))
	for name := range kernels {
		next <- name
	}
	close(next)
	parts := make([][]RangeKernelSum, min(runtime.GOMAXPROCS(0), profilewalk.MaxWalks))
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
		Row: profilewalk.NewRow(set, profilewalk.Key{Rank: in.thread.rank, Name: kernel}, 0),
		PID: in.thread.pid, TID: in.thread.tid, Style: in.style, Range: set.Syms.Name(in.name), Ranges: slot.ranges, group: slot.row,
	}
	for _, word := range slot.ranks {
		row.Row.Ranks += bits.OnesCount64(word)
	}
	return row
}

// order sorts the rows and sets their shares. Rows of the same range on several threads come together.
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
	row := func(r *RangeKernelSum) *profilewalk.Row { return &r.Row }
	fields := profilewalk.RankFields(s.ByRank, row)
	if s.ByRank {
		fields = append(fields, profilewalk.ThreadFields(func(r *RangeKernelSum) (int32, int64) { return r.PID, r.TID })...)
	}
	fields = append(fields, profilewalk.ShareField("share of the time of all kernels in the ranges", func(r *RangeKernelSum) float64 { return r.Share }))
	fields = append(fields, table.DistributionFields(table.DistributionColumns[RangeKernelSum]{
		Unit: table.Duration, What: "kernels", Of: func(r *RangeKernelSum) *distribution.Distribution { return &r.Distribution },
		Show: []string{"total", "instances", "avg", "med", "max", "p99"},
	})...)
	fields = append(fields,
		table.CountColumn("ranges", "number of ranges that launched the kernel", func(r *RangeKernelSum) int64 { return r.Ranges }))
	fields = append(fields, profilewalk.RanksFields(s.ByRank, s.ranks, row)...)
	fields = append(fields,
		profilewalk.StyleField(func(r *RangeKernelSum) profile.RangeStyle { return r.Style }),
		table.TextColumn("range", "name of the ranges", func(r *RangeKernelSum) string { return r.Range }).AtMost(table.MaxName),
		profilewalk.NameField("kernel", row))
	r := table.New("sgtrace.report.rangekernels/v1", "Kernels by range", s.Rows, fields)
	if s.Outside > 0 {
		r.Note("kernels launched outside of ranges: %d (%s)", s.Outside, table.InWords(s.OutsideTime))
	}
	noteOpen(r, s.Open, s.OpenNames)
	table.NoteApproximate(r, s.approximate)
	table.NoteFewSamples(r, s.Rows, func(r *RangeKernelSum) int64 { return r.Distribution.N }, func(r *RangeKernelSum) string { return r.Range + " " + r.Row.Name })
	return r
}
