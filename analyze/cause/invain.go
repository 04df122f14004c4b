package cause

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/memory"
)

// InVain claims what clients waited in vain. attempts are lists of requests that retry each other,
// of which only the last may have an answer. It claims all the time of the earlier ones; if none has
// an answer, only the time beyond what a request usually takes, which an answer would have taken.
func (b *Costs) InVain(attempts [][]int) finding.Claim {
	took, answered := make(map[int]int64, b.n()), map[int]bool{}
	for i := range memory.Each(b.n(), attributionSize) {
		spent := b.at(i).spent()
		took[b.at(i).Request], answered[b.at(i).Request] = spent.Total(), b.answered(i)
	}
	usual, vain := b.usualTotal(), map[int]int64{}
	for _, of := range attempts {
		last := of[len(of)-1]
		keep := usual
		if answered[last] {
			keep = took[last]
		}
		for _, r := range slices.Backward(of) {
			kept := min(keep, took[r])
			vain[r], keep = took[r]-kept, keep-kept
		}
	}
	return func(i int, left []int64) {
		r := b.at(i).Request
		ns := vain[r]
		if ns <= 0 {
			return
		}
		part := distribution.Fraction(ns, took[r])
		for c, ns := range b.at(i).spent() {
			left[c] = min(left[c], ns-int64(part*float64(ns)))
		}
	}
}

// usualTotal returns the median time of an answered request; 0 without any.
func (b *Costs) usualTotal() int64 {
	if len(b.finished) == 0 {
		return 0
	}
	totals := memory.Make[int64](len(b.finished))
	for i := range Each(b.finished) {
		spent := b.finished[i].spent()
		totals[i] = spent.Total()
	}
	return distribution.LowerMedian(totals)
}
