package align

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
)

// maxDrift is how much two clocks are expected to drift apart at worst where
// nothing else is known: the crystals of servers are within 50 ppm. (Disciplined by
// NTP or PTP they are within about 1 ppm, but that is not for us to assume.)
const maxDrift = 50e-6

// A limit is one side of a bound between two clocks a and b: at time T of b, b
// minus a is at least (or at most) V.
type limit struct{ T, V int64 }

// A band is all lines that keep a set of limits. The true line is one of them, if
// the limits are true.
type band struct {
	lo, hi             []point // the limits that are tight for some slope, ascending
	origin             point64
	minSlope, maxSlope float64
}

// point64 is where the coordinates of points are counted from.
type point64 struct{ t, v int64 }

type point struct{ t, v float64 }

// A bandLine is a line in a band: where delays in both directions most likely have their floors.
type bandLine struct {
	At, Off       int64 // b minus a is Off at time At of b
	Slope         float64
	Err, SlopeErr float64 // ns at At, and how it grows
	From, To      int64
	Used, Wrong   int // limits
	// Loose is how much more of the width of the band, in ns, is that of the direction whose shortest
	// delays are far apart: nobody knows how much shorter they can be.
	Loose float64
}

// width returns how far the line may be off at the ends of what it was found from.
func (f *bandLine) width() float64 { return f.Err + f.SlopeErr*float64(f.To-f.From)/2 }

// lineBetween finds the line between the limits. ok is false if it is not limited on
// both sides.
//
// If no line with a possible slope keeps all limits, some are wrong: requests that
// were joined wrongly, or clocks that were set meanwhile. The line that violates the
// rest least in sum (which few wrong ones can hardly move) gives the slope; the
// offset that keeps most limits tells which ones are wrong. For each wrong one that
// showed, one tight limit on each side is not relied upon either: it may be one that
// is wrong without showing.
func lineBetween(lo, hi []limit) (fit bandLine, ok bool) {
	if len(lo) == 0 || len(hi) == 0 {
		return fit, false
	}
	b := &band{}
	fit.From, fit.To = b.place(lo, hi)
	var los, his []point
	parallel.All(
		func() { los = b.points(lo); b.lo = hull(los, 1) },
		func() { his = b.points(hi); b.hi = hull(his, -1) })
	if !b.slopes() {
		los, his = b.consistent(los, his)
		fit.Wrong = len(lo) + len(hi) - len(los) - len(his)
		for range min(fit.Wrong, maxPeel) {
			los, his = peel(los, b.lo), peel(his, b.hi)
			b.lo, b.hi = hull(los, 1), hull(his, -1)
		}
		if len(los) == 0 || len(his) == 0 || !b.slopes() {
			return fit, false
		}
	}
	fit.Used = len(los) + len(his)
	b.line(&fit)
	fit.settle(los, his)
	return fit, true
}

// maxPeel is how many limits on a side are not relied upon at most.
const maxPeel = 16

// place chooses the origin, in the middle of time and amid the limits.
func (b *band) place(lo, hi []limit) (from, to int64) {
	values := make([]int64, 0, len(lo)+len(hi))
	from, to = lo[0].T, lo[0].T
	for _, l := range [...][]limit{lo, hi} {
		for _, x := range l {
			from, to = min(from, x.T), max(to, x.T)
			values = append(values, x.V)
		}
	}
	b.origin = point64{from + (to-from)/2, order.Nth(values, len(values)/2)}
	return from, to
}

// points returns limits in the order of time. Limits are cut at 1e15 ns from the
// origin, where they limit nothing.
func (b *band) points(l []limit) []point {
	list := make([]point, len(l))
	for i, x := range l {
		v := min(max(float64(x.V)-float64(b.origin.v), -1e15), 1e15)
		if math.Abs(v) < 1e15 {
			v = float64(x.V - b.origin.v)
		}
		list[i] = point{float64(x.T - b.origin.t), v}
	}
	slices.SortFunc(list, func(p, q point) int {
		switch { // no number is NaN, which cmp.Compare would look for
		case p.t < q.t:
			return -1
		case p.t > q.t:
			return 1
		}
		return cmp.Compare(p.v, q.v)
	})
	return list
}

// hull returns the upper (side 1) or lower (-1) convex hull of points in order of
// time: all that can limit a line.
func hull(list []point, side float64) []point {
	var h []point
	for _, p := range list {
		for len(h) > 0 {
			q := h[len(h)-1]
			if q.t == p.t {
				if side*p.v < side*q.v {
					break
				}
			} else if len(h) == 1 || side*cross(h[len(h)-2], q, p) < 0 {
				break
			}
			h = h[:len(h)-1]
		}
		if n := len(h); n == 0 || h[n-1].t != p.t {
			h = append(h, p)
		}
	}
	return h
}

// cross is positive if r lies left of the way from p to q.
func cross(p, q, r point) float64 {
	return (q.t-p.t)*(r.v-p.v) - (q.v-p.v)*(r.t-p.t)
}

// lowest returns the lowest line of that slope, by its value at t, that keeps all
// lower limits, highest the opposite.
func (b *band) lowest(slope, t float64) float64 {
	v := math.Inf(-1)
	for _, p := range b.lo {
		v = max(v, p.v-slope*(p.t-t))
	}
	return v
}

func (b *band) highest(slope, t float64) float64 {
	v := math.Inf(1)
	for _, p := range b.hi {
		v = min(v, p.v-slope*(p.t-t))
	}
	return v
}

// top and bottom are the limits of the band at t.
func (b *band) top(t float64) float64 {
	f := func(s float64) float64 { return b.highest(s, t) }
	return f(peak(b.minSlope, b.maxSlope, f))
}

func (b *band) bottom(t float64) float64 {
	f := func(s float64) float64 { return -b.lowest(s, t) }
	return -f(peak(b.minSlope, b.maxSlope, f))
}

func (b *band) gap(slope float64) float64 { return b.highest(slope, 0) - b.lowest(slope, 0) }

// slopes finds the slopes of the lines in the band, within maxDrift. The gap is
// a concave function of the slope.
func (b *band) slopes() bool {
	best := 0.0
	if b.gap(0) < 0 {
		best = peak(-maxDrift, maxDrift, b.gap)
	}
	if b.gap(best) < 0 {
		return false
	}
	b.minSlope = edgeOf(best, -maxDrift, b.gap)
	b.maxSlope = edgeOf(best, maxDrift, b.gap)
	return true
}

// peak returns where the concave function f is largest.
func peak(from, to float64, f func(float64) float64) float64 {
	for range 80 {
		a, b := from+(to-from)*0.382, from+(to-from)*0.618
		if f(a) < f(b) {
			from = a
		} else {
			to = b
		}
	}
	return (from + to) / 2
}

// edgeOf returns the last point on the way from in to out where f is not negative.
func edgeOf(in, out float64, f func(float64) float64) float64 {
	if f(out) >= 0 {
		return out
	}
	for range 60 {
		if mid := (in + out) / 2; f(mid) >= 0 {
			in = mid
		} else {
			out = mid
		}
	}
	return in
}

// line fills in the line in the middle of the band. Without a drift, if that is
// possible.
func (b *band) line(fit *bandLine) {
	if b.minSlope > 0 || b.maxSlope < 0 {
		fit.Slope = (b.minSlope + b.maxSlope) / 2
	}
	half := float64(fit.To-fit.From) / 2
	lo, hi := math.Inf(1), math.Inf(-1)
	var midLo, midHi float64
	for _, t := range [...]float64{-half, 0, half} {
		l, h := b.bottom(t), b.top(t)
		if t == 0 {
			midLo, midHi = l, h
		}
		lo, hi = min(lo, l-fit.Slope*t), max(hi, h-fit.Slope*t)
	}
	off := (lo + hi) / 2
	fit.At, fit.Off = b.origin.t, b.origin.v+int64(math.Round(off))
	fit.Err = max(midHi-off, off-midLo)
	if half > 0 {
		fit.SlopeErr = max(0, ((hi-lo)/2-fit.Err)/half)
	}
}

// peel removes the points of a hull from list.
func peel(list, h []point) []point {
	var left []point
	k := 0
	for _, p := range list {
		for k < len(h) && h[k].t < p.t {
			k++
		}
		if k < len(h) && h[k] == p {
			k++
			continue
		}
		left = append(left, p)
	}
	return left
}

// Where in a band the true line lies, nobody can know: a message takes some time at least, its
// floor, and only the sum of the floors of both directions shows. What can be known is how near
// to its floor the shortest delay of a direction came. Near a floor there are about as many
// delays in one stretch as in the next, so the shortest of n is as far above the floor as the
// next ones are apart, on average. The floors of both directions are taken to be equal, as for
// NTP, up to what a hop between hosts takes; what is beyond that is not the network's, and is
// divided as the shortest delays are apart. A direction of few and uneven delays has
// most of it then, and one in which many are about equal has next to none.
const (
	// hop is about what a message takes at least from one process to one of another host, in ns.
	hop = 250_000
	// lowest is of how many of the shortest delays the distances are looked at.
	lowest = 8
	// minApart is how exactly a floor can be told at all, in ns: clocks of processes are
	// calibrated to about that.
	minApart = 1000
)

// settle moves the line from the middle of the band to where the floors are, and widens its error
// so that it still covers all of the band.
func (f *bandLine) settle(los, his []point) {
	up, down := f.apart(los, -1), f.apart(his, 1)
	width := 2 * f.Err
	rest := max(0, width-up-down)
	if rest > 2*hop {
		beyond := rest - 2*hop
		up, down = up+beyond*up/(up+down), down+beyond*down/(up+down)
	} else if up+down > width {
		up, down = width*up/(up+down), width*down/(up+down)
	}
	f.Loose = math.Abs(up - down)
	by := (up - down) / 2
	f.Off += int64(math.Round(by))
	f.Err += math.Abs(by)
}

// apart returns how far the lowest of some limits are from each other, on average, on the side of the
// line that sign tells.
func (f *bandLine) apart(list []point, sign float64) float64 {
	low := make([]float64, 0, lowest+1)
	for _, p := range list {
		v := sign * (p.v - f.Slope*p.t)
		k, _ := slices.BinarySearch(low, v)
		if k < lowest {
			low = slices.Insert(low, k, v)
			low = low[:min(len(low), lowest)]
		}
	}
	if len(low) < 2 {
		return math.Max(minApart, f.Err) // a single one shows nothing of its floor
	}
	return max(minApart, (low[len(low)-1]-low[0])/float64(len(low)-1))
}

// robustPoints is how many limits of a side the search for the slope looks at.
const robustPoints = 2000

// consistent returns the limits that lines can keep together, and leaves the band
// with their hulls.
func (b *band) consistent(los, his []point) (lo, hi []point) {
	slope := l1Slope(stride(los, robustPoints), stride(his, robustPoints))
	from, to := mostKept(los, his, slope)
	// Those that are kept by the offset that keeps most. Twice: with the band that they
	// leave, those come back that only the slope was wrong for.
	lo = order.Only(los, func(p point) bool { return p.v-slope*p.t <= from })
	hi = order.Only(his, func(p point) bool { return p.v-slope*p.t >= to })
	for range 2 {
		b.lo, b.hi = hull(lo, 1), hull(hi, -1)
		if len(lo) == 0 || len(hi) == 0 || !b.slopes() {
			return lo, hi
		}
		kept := *b
		mid := (kept.minSlope + kept.maxSlope) / 2 // most limits are kept by any slope
		lo = order.Only(los, func(p point) bool { return p.v <= kept.highest(mid, p.t) || p.v <= kept.top(p.t) })
		hi = order.Only(his, func(p point) bool { return p.v >= kept.lowest(mid, p.t) || p.v >= kept.bottom(p.t) })
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
	lo = order.Only(los, func(p point) bool { return p.v <= b.lowest(mid, p.t) })
	hi = order.Only(his, func(p point) bool { return p.v >= b.highest(mid, p.t) })
	return lo, hi
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
	steps := order.Each(los, func(p point) step { return step{p.v - slope*p.t, true} })
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
