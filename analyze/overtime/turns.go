package overtime

import (
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// A clock stretches all kernels that compute, long or short, by one factor. Processes that run on a device in turns take whole slices
// of about 2 ms from whatever runs at the end of a slice: they add milliseconds to long kernels, and nothing to most short ones.
const (
	leastSlice   = 1_000_000 // ns that a kernel loses if it is interrupted; most lose at least this
	briefest     = 5_000     // ns: shorter kernels are as long as a clock can measure, whatever happens
	fewestBrief  = 20        // kernels that are shorter than a slice, to show that these keep their time
	mostCut      = 0.1       // part of these that may be interrupted
	uneven       = 2         // times the increase of the median kernel that one must have: a clock has no such kernel
	fewestBefore = 3         // kernels in a place at other times that show what one takes there
)

// turns says that the kernels which take longer from at until some time lose whole slices of time; "" if they do not.
func (w *pacedWork) turns(at, until trace.Time) string {
	within := func(k *pacedKernel) bool { return k.start >= at && (until == 0 || k.start < until) }
	alone := map[uint64][]int64{}
	for i := range w.kernels {
		if k := &w.kernels[i]; !within(k) {
			alone[k.place] = append(alone[k.place], k.took)
		}
	}
	usual := map[uint64]int64{}
	for place, took := range alone {
		if len(took) >= fewestBefore {
			usual[place] = distribution.LowerMedian(took)
		}
	}
	var lost []int64      // by each interrupted kernel, ns
	var factors []float64 // by which each takes longer, less 1
	interrupted := func(i int) bool {
		u := usual[w.kernels[i].place]
		return within(&w.kernels[i]) && u >= briefest && w.kernels[i].took-u >= u/4
	}
	for i := range w.kernels {
		if u := usual[w.kernels[i].place]; interrupted(i) {
			lost, factors = append(lost, w.kernels[i].took-u), append(factors, float64(w.kernels[i].took-u)/float64(u))
		}
	}
	if len(lost) < leastSteps {
		return ""
	}
	slice := distribution.Percentile(lost, 25)
	brief, cut := 0, 0
	for i := range w.kernels {
		if u := usual[w.kernels[i].place]; within(&w.kernels[i]) && u >= briefest && u < slice {
			if brief++; interrupted(i) {
				cut++
			}
		}
	}
	if slice < leastSlice || brief < fewestBrief || float64(cut) > mostCut*float64(brief) || slices.Max(factors) < uneven*distribution.LowerMedian(factors) {
		return ""
	}
	return fmt.Sprintf("most that do lose %s or more each, while %s of %s that are shorter than that keep their time, as if another process ran on the GPU in turns",
		nearly(float64(slice)), words.Thousands(int64(brief-cut)), words.Counted(brief, "kernel"))
}
