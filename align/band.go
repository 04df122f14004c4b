package align

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
)

// maxDrift is how much two clocks drift apart at worst if nothing else is known: the crystals of servers
// are within 50 ppm. (Disciplined by NTP or PTP, they are within about 1 ppm, but that can't be assumed.)
const maxDrift = 50e-6

// A limit is one side of a bound between two clocks a and b: at time T of b, b minus a is at least (or at most) V.
type limit struct{ T, V int64 }

// A band is the set of all lines that satisfy some limits. If the limits are true, the true line is one of them.
type band struct {
	lo, hi             []point // limits that are tight for some slope, ascending
	origin             point64
	minSlope, maxSlope float64
}

// point64 is the origin of the coordinates of points.
type point64 struct{ t, v int64 }

type point struct{ t, v float64 }

// A bandLine is a line in a band: the one at which delays in both directions most likely have their floors.
type bandLine struct {
	At, Off       int64 // b minus a is Off at time At of b
	Slope         float64
	Err, SlopeErr float64 // ns at At, and its growth per ns of distance from At
	From, To      int64
	Used, Wrong   int // numbers of limits
	// Loose is how much more of the width of the band, in ns, belongs to the direction whose
	// shortest delays are farther apart: how much shorter these can be is unknown.
	Loose float64
}

// width returns how far off the line may be at the ends of the time that its limits cover.
func (f *bandLine) width() float64 { return f.Err + f.SlopeErr*float64(f.To-f.From)/2 }

// lineBetween finds the line between the limits. ok is false unless there are limits on both sides.
//
// If no line with a possible slope satisfies all limits, some are wrong: requests were joined wrongly, or
// clocks were set meanwhile. Then the slope is that of the line that violates the limits least in sum,
// which a few wrong ones hardly move, and the offset that satisfies most limits shows which ones are wrong.
// For each wrong limit, one tight limit on each side is dropped, too: it may be wrong without showing.
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

// maxPeel is how many tight limits on a side are dropped at most.
const maxPeel = 16

// place chooses the origin: the middle of the time, and the median of the limits.
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

// points returns limits as points, ordered by time. Values are clamped to 1e15 ns from the origin, where they limit nothing.
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
		switch { // no number is NaN, which cmp.Compare would check
		case p.t < q.t:
			return -1
		case p.t > q.t:
			return 1
		}
		return cmp.Compare(p.v, q.v)
	})
	return list
}

// hull returns the upper (side 1) or lower (-1) convex hull of points ordered by time: all points that can limit a line.
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

// cross is positive if r lies to the left of the line from p to q.
func cross(p, q, r point) float64 {
	return (q.t-p.t)*(r.v-p.v) - (q.v-p.v)*(r.t-p.t)
}

// lowest returns the value at t of the lowest line with a slope that satisfies all lower
// limits; highest returns that of the highest line that satisfies all upper limits.
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

// top and bottom return the bounds of the band at t.
func (b *band) top(t float64) float64 {
	f := func(s float64) float64 { return b.highest(s, t) }
	return f(peak(b.minSlope, b.maxSlope, f))
}

func (b *band) bottom(t float64) float64 {
	f := func(s float64) float64 { return -b.lowest(s, t) }
	return -f(peak(b.minSlope, b.maxSlope, f))
}

func (b *band) gap(slope float64) float64 { return b.highest(slope, 0) - b.lowest(slope, 0) }

// slopes finds the range of slopes of the lines in the band, within maxDrift. It relies on the
// gap being a concave function of the slope.
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

// peak returns the argument at which the concave function f is largest.
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

// edgeOf returns the last point between in and out at which f is not negative.
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

// line fills in the line in the middle of the band, with a slope of 0 if that is possible.
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

// peel returns list without the points of a hull.
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

// Where in a band the true line lies cannot be known: a message takes some least time, its floor, and only the sum of the
// floors of both directions shows. But it can be estimated how close the shortest delay of a direction came to its floor.
// Near a floor, delays are about equally dense, so the shortest of n delays is about as far above the floor as the next
// ones are apart, on average. The floors of both directions are assumed to be equal, as in NTP, up to the time of a hop
// between hosts. Anything beyond that is not due to the network, and is divided in proportion to how far apart the
// shortest delays are: a direction with few and uneven delays gets most of it, one with many equal delays next to none.
const (
	// hop is about the least time of a message from a process to one on another host, in ns.
	hop = 250_000
	// lowest is the number of shortest delays whose distances are used.
	lowest = 8
	// minApart is how exactly a floor can be known at best, in ns: clocks of processes are calibrated to about that.
	minApart = 1000
)

// settle moves the line from the middle of the band to the estimated floors, and widens its
// error so that it still covers the whole band.
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

// apart returns the average distance between the limits closest to the line, on the side given by sign.
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
		return math.Max(minApart, f.Err) // a single delay shows nothing about its floor
	}
	return max(minApart, (low[len(low)-1]-low[0])/float64(len(low)-1))
}

// robustPoints is the number of limits on each side that are used to find the slope.
const robustPoints = 2000

// consistent returns the limits that lines can satisfy together, and leaves their hulls in the band.
func (b *band) consistent(los, his []point) (lo, hi []point) {
	slope := l1Slope(stride(los, robustPoints), stride(his, robustPoints))
	from, to := mostKept(los, his, slope)
	// First, the limits satisfied by the offset that satisfies most. Then, twice, all limits
	// consistent with the resulting band: some were violated only because of the slope.
	lo = order.Only(los, func(p point) bool { return p.v-slope*p.t <= from })
	hi = order.Only(his, func(p point) bool { return p.v-slope*p.t >= to })
	for range 2 {
		b.lo, b.hi = hull(lo, 1), hull(hi, -1)
		if len(lo) == 0 || len(hi) == 0 || !b.slopes() {
			return lo, hi
		}
		kept := *b
		mid := (kept.minSlope + kept.maxSlope) / 2 // most limits hold for the middle slope; that test is cheap
		lo = order.Only(los, func(p point) bool { return p.v <= kept.highest(mid, p.t) || p.v <= kept.top(p.t) })
		hi = order.Only(his, func(p point) bool { return p.v >= kept.lowest(mid, p.t) || p.v >= kept.bottom(p.t) })
		b.lo, b.hi = hull(lo, 1), hull(hi, -1)
		if !b.slopes() { // they don't all fit together: use the previous band
			*b = kept
			return b.within(los, his)
		}
	}
	return lo, hi
}

// within returns the limits that every line of the band satisfies.
func (b *band) within(los, his []point) (lo, hi []point) {
	mid := (b.minSlope + b.maxSlope) / 2
	lo = order.Only(los, func(p point) bool { return p.v <= b.lowest(mid, p.t) })
	hi = order.Only(his, func(p point) bool { return p.v >= b.highest(mid, p.t) })
	return lo, hi
}

// stride returns at most n points of list, evenly spread.
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

// l1Slope returns the slope of the line with the least sum of violations: a convex function of
// the line, to which no limit contributes disproportionately.
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
		// As a function of the offset, the cost has a slope of minus the number of lower limits at first, which grows by one at each
		// limit, lower or upper. So the minimum is at:
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

// mostKept returns the interval of offsets, at time 0, that satisfies most limits for a slope; the widest if there are several.
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
