package align

import (
	"math"
	"slices"
)

// robustPoints is how many limits of a side the search for the slope looks at.
const robustPoints = 2000

// consistent returns the limits that lines can keep together, and leaves the band
// with their hulls.
func (b *band) consistent(los, his []point) (lo, hi []point) {
	slope := l1Slope(stride(los, robustPoints), stride(his, robustPoints))
	from, to := mostKept(los, his, slope)
	// Those that are kept by the offset that keeps most. Twice: with the band that they
	// leave, those come back that only the slope was wrong for.
	lo = filter(los, func(p point) bool { return p.v-slope*p.t <= from })
	hi = filter(his, func(p point) bool { return p.v-slope*p.t >= to })
	for range 2 {
		b.lo, b.hi = hull(lo, 1), hull(hi, -1)
		if len(lo) == 0 || len(hi) == 0 || !b.slopes() {
			return lo, hi
		}
		kept := *b
		mid := (kept.minSlope + kept.maxSlope) / 2 // most limits are kept by any slope
		lo = filter(los, func(p point) bool { return p.v <= kept.highest(mid, p.t) || p.v <= kept.top(p.t) })
		hi = filter(his, func(p point) bool { return p.v >= kept.lowest(mid, p.t) || p.v >= kept.bottom(p.t) })
		b.lo, b.hi = hull(lo, 1), hull(hi, -1)
		if !b.slopes() { // they do not all fit together: as before
			*b = kept
			return b.within(los, his)
		}
	}
	return lo, hi
}

// within returns the limits that every line of the band keeps.
func (b *band) within(los, his []point) (lo, hi []point) {
	mid := (b.minSlope + b.maxSlope) / 2
	lo = filter(los, func(p point) bool { return p.v <= b.lowest(mid, p.t) })
	hi = filter(his, func(p point) bool { return p.v >= b.highest(mid, p.t) })
	return lo, hi
}

func filter(list []point, keep func(point) bool) []point {
	var kept []point
	for _, p := range list {
		if keep(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

// stride returns at most n points of list, evenly.
func stride(list []point, n int) []point {
	if len(list) <= n {
		return list
	}
	some := make([]point, n)
	for i := range some {
		some[i] = list[i*len(list)/n]
	}
	return some
}

// l1Slope returns the slope of the line that violates the limits least in sum: a
// convex function of the line, of which no limit has more than its share.
func l1Slope(los, his []point) float64 {
	values := make([]float64, 0, len(los)+len(his))
	cost := func(slope float64) float64 {
		values = values[:0]
		for _, p := range los {
			values = append(values, p.v-slope*p.t)
		}
		for _, p := range his {
			values = append(values, p.v-slope*p.t)
		}
		// Going up, each lower limit that is passed costs one less per ns, each upper
		// one more. It begins at minus the number of lower ones, hence:
		sorted := slices.Clone(values)
		slices.Sort(sorted)
		best := sorted[min(len(los), len(sorted))-1]
		sum := 0.0
		for i, v := range values {
			if i < len(los) {
				sum += max(0, v-best)
			} else {
				sum += max(0, best-v)
			}
		}
		return sum
	}
	return peak(-maxDrift, maxDrift, func(s float64) float64 { return -cost(s) })
}

// mostKept returns the interval of offsets, at time 0, that keeps most limits of a
// slope; the widest of them.
func mostKept(los, his []point, slope float64) (from, to float64) {
	type step struct {
		v  float64
		up bool
	}
	steps := make([]step, 0, len(los)+len(his))
	for _, p := range los {
		steps = append(steps, step{p.v - slope*p.t, true})
	}
	for _, p := range his {
		steps = append(steps, step{p.v - slope*p.t, false})
	}
	slices.SortFunc(steps, func(a, b step) int {
		switch {
		case a.v < b.v:
			return -1
		case a.v > b.v:
			return 1
		case a.up == b.up:
			return 0
		case a.up:
			return -1
		}
		return 1
	})
	kept, best, width := 0, -1, 0.0
	for i, s := range steps {
		if !s.up {
			kept--
			continue
		}
		kept++
		next := math.Inf(1)
		if i+1 < len(steps) {
			next = steps[i+1].v
		}
		if kept > best || kept == best && next-s.v > width {
			best, width, from, to = kept, next-s.v, s.v, next
		}
	}
	return from, to
}
