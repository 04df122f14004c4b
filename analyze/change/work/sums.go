package work

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/trace"
)

// Kept returns how often requests arrive after a change that have as large a share of their
// tokens cached as three of four had before it, relative to how often these arrived: 1 if
// other requests only came in addition, 0 if nothing is cached like that anymore.
func Kept(before, after []float64, ns, nsAfter float64) float64 {
	most := 0.75
	sorted := slices.Sorted(slices.Values(before))
	limit := sorted[int((1-most)*float64(len(sorted)))]
	n := func(values []float64) (n float64) {
		for _, v := range values {
			if v >= limit {
				n++
			}
		}
		return n
	}
	return distribution.Ratio(n(after)/nsAfter, n(before)/ns)
}

// AddTo adds each of more to the one of sum at the same index.
func AddTo(sum, more []int64) {
	for i, v := range more {
		sum[i] += v
	}
}

// AddStretch adds an interval to the stretches between times that it overlaps.
func AddStretch(to []int64, times []trace.Time, from, end trace.Time) {
	for i := range to {
		to[i] += int64(max(0, min(end, times[i+1])-max(from, times[i])))
	}
}
