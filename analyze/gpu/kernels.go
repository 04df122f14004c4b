package gpu

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A RankKernel is what all kernels of one name took on one rank, beside what they
// took on the others.
type RankKernel struct {
	Rank, Name string
	Class      profile.Class
	Single     int64 // of Total: in launches of one block
	Threads    int32 // of the largest of these
	Waited     int64 // of Total: for communication before it on its stream, see GPU.Early
	Unknown    bool  // no rule knows some of them: Class is what unknown kernels count as
	Summary    distribution.Summary
	Ranks      int // how many ran such kernels
	// Excess is Total minus the median of the totals of the ranks that ran such
	// kernels, in ns; all of Total if there is no other rank that did. Of ranks that were
	// captured for different times, the median is that of the totals per time, for as long
	// as this rank was captured.
	Excess int64
	// RelTotal and RelP50 are Total (or Total per time) and P50 divided by their medians
	// over those ranks; -1 if there is only one, or the median is 0.
	RelTotal, RelP50 float64

	Sym       trace.Sym
	RankIndex int32
}

// kernelTimes collects durations of kernels by name.
type kernelTimes struct {
	index   walk.Paged[int32] // by symbol: into samples plus one
	names   []trace.Sym
	classes []profile.Class
	unknown []bool
	waited  []int64
	single  []singleBlocks
	samples []distribution.Sample
	sums    []distribution.Summary
}

func (k *kernelTimes) add(r *gpuRow) {
	at := k.index.At(int64(r.name))
	if *at == 0 {
		k.names, k.classes, k.samples = append(k.names, r.name), append(k.classes, r.class), append(k.samples, distribution.Sample{})
		k.unknown, k.waited, k.single = append(k.unknown, false), append(k.waited, 0), append(k.single, singleBlocks{})
		*at = int32(len(k.names))
	}
	k.unknown[*at-1] = k.unknown[*at-1] || r.flags&rowUnknown != 0
	k.waited[*at-1] = distribution.AddTimes(k.waited[*at-1], r.waited)
	if r.flags&rowSingle != 0 {
		k.single[*at-1].add(r)
	}
	k.samples[*at-1].Add(r.dur, distribution.NoLimit)
}

// ran reports whether a kernel of a name ran before.
func (k *kernelTimes) ran(name trace.Sym) bool { return *k.index.At(int64(name)) != 0 }

// summarize turns durations into sums.
func (k *kernelTimes) summarize() {
	var s distribution.Summarizer
	var values []int64
	for i := range k.samples {
		values = values[:0]
		k.samples[i].Each(func(v int64) { values = append(values, v) })
		k.sums = append(k.sums, s.Summarize(values))
	}
	k.samples, k.index = nil, walk.Paged[int32]{}
}

// rows returns the sums of a rank, without comparison.
func (k *kernelTimes) rows(set *profile.Set, rank int32) []RankKernel {
	rows := make([]RankKernel, len(k.names))
	for i, name := range k.names {
		rows[i] = RankKernel{Rank: set.Ranks[rank], Name: set.Syms.Name(name), Class: k.classes[i], Unknown: k.unknown[i], Waited: k.waited[i], Single: k.single[i].time, Threads: k.single[i].threads, Summary: k.sums[i], Sym: name, RankIndex: rank}
	}
	return rows
}

// sameCapture is by how much the times that ranks were captured for may differ, to compare
// totals as they are: a part of the shortest.
const sameCapture = 0.02

// compareKernels relates the rows of every kernel to each other, and orders them by how
// far their total is from that of the others. captured is how long each rank was. If that
// differs, perSecond tells that totals are compared by it: else a longer recording looks
// like a slower rank.
func compareKernels(rows []RankKernel, captured []int64) (sorted []RankKernel, perSecond bool) {
	least, most := int64(math.MaxInt64), int64(0)
	for i := range rows {
		c := captured[rows[i].RankIndex]
		least, most = min(least, c), max(most, c)
	}
	perSecond = least > 0 && float64(most) > (1+sameCapture)*float64(least)
	slices.SortFunc(rows, func(a, b RankKernel) int {
		return cmp.Or(cmp.Compare(a.Sym, b.Sym), cmp.Compare(a.RankIndex, b.RankIndex))
	})
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && rows[to].Sym == rows[from].Sym {
			to++
		}
		relate(rows[from:to])
		if perSecond {
			relatePerSecond(rows[from:to], captured)
		}
		from = to
	}
	slices.SortFunc(rows, func(a, b RankKernel) int {
		return cmp.Or(cmp.Compare(distribution.Abs(b.Excess), distribution.Abs(a.Excess)), cmp.Compare(b.Summary.Total, a.Summary.Total), strings.Compare(a.Name, b.Name), cmp.Compare(a.RankIndex, b.RankIndex))
	})
	return rows, perSecond
}

// relate compares the ranks that ran one kernel.
func relate(rows []RankKernel) {
	median := func(of func(*RankKernel) int64) int64 {
		values := make([]int64, len(rows))
		for i := range rows {
			values[i] = of(&rows[i])
		}
		return distribution.LowerMedian(values)
	}
	total := median(func(r *RankKernel) int64 { return r.Summary.Total })
	p50 := median(func(r *RankKernel) int64 { return r.Summary.P50 })
	for i := range rows {
		r := &rows[i]
		r.Ranks, r.Excess, r.RelTotal, r.RelP50 = len(rows), r.Summary.Total-total, unknownRatio, unknownRatio
		if len(rows) == 1 {
			r.Excess = r.Summary.Total
			continue
		}
		if total > 0 {
			r.RelTotal = distribution.Fraction(r.Summary.Total, total)
		}
		if p50 > 0 {
			r.RelP50 = distribution.Fraction(r.Summary.P50, p50)
		}
	}
}

// relatePerSecond compares the totals of the ranks that ran one kernel by how long the
// ranks were captured, which is more than 0.
func relatePerSecond(rows []RankKernel, captured []int64) {
	if len(rows) == 1 {
		return
	}
	rates := make([]float64, len(rows))
	for i := range rows {
		rates[i] = float64(rows[i].Summary.Total) / float64(captured[rows[i].RankIndex])
	}
	median := distribution.LowerMedian(slices.Clone(rates))
	for i := range rows {
		r := &rows[i]
		r.Excess = r.Summary.Total - int64(math.Round(median*float64(captured[r.RankIndex])))
		if r.RelTotal = unknownRatio; median > 0 {
			r.RelTotal = rates[i] / median
		}
	}
}

// unknownRatio says that there is nothing to compare with.
const unknownRatio = -1
