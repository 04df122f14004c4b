package align

import (
	"cmp"
	"math"
	"slices"
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

// A bandLine is a line in a band: where delays in both directions most likely have their floors (see
// floors.go).
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

// width is how far the line may be off at the ends of what it was found from.
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
	los, his := b.points(lo), b.points(hi)
	b.lo, b.hi = hull(los, 1), hull(his, -1)
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
	slices.Sort(values)
	b.origin = point64{from + (to-from)/2, values[len(values)/2]}
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
	slices.SortFunc(list, func(p, q point) int { return cmp.Or(cmp.Compare(p.t, q.t), cmp.Compare(p.v, q.v)) })
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
