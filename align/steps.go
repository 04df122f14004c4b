package align

import (
	"cmp"
	"github.com/sgtrace/sgtrace/internal/order"
	"math"
	"slices"
)

// A Jump is that clock B minus clock A became another one between two instants, by more than
// clocks drift: one of them was set.
type Jump struct {
	A, B             int
	BeforeA, BeforeB int64 // what the clocks showed before at the latest
	AfterA, AfterB   int64 // what they showed afterward at the earliest
	By               int64 // ns, by how much B minus A grew
	Err              int64 // ns, how far By may be off
}

// How jumps are searched for: in this many bounds of each direction on either side, of which
// one may be wrong.
const (
	jumpWindow = 32
	fewBounds  = 4
	minJump    = 10_000_000 // ns; clocks that NTP keeps are set when they are off by more
	maxJumps   = 8          // of one pair of clocks
)

// A crossed limit is a bound of two clocks, by what both show.
type crossed struct{ a, b, v int64 }

// A pairLimits has the bounds of B minus A, A < B: from below, and from above.
type pairLimits struct{ lo, hi []crossed }

// Jumps finds the pairs of clocks of which bounds on one side of an instant contradict those
// on the other side, in the order of the pairs and of time.
func Jumps(bounds []Bound) (list []Jump) {
	pairs := map[[2]int]*pairLimits{}
	var keys [][2]int
	for i := range bounds {
		x := &bounds[i]
		if x.A == x.B || !x.sound() {
			continue
		}
		key := [2]int{min(x.A, x.B), max(x.A, x.B)}
		if pairs[key] == nil {
			pairs[key] = &pairLimits{}
			keys = append(keys, key)
		}
		pairs[key].add(x)
	}
	slices.SortFunc(keys, func(x, y [2]int) int { return slices.Compare(x[:], y[:]) })
	for _, key := range keys {
		list = append(list, pairs[key].jumps(key)...)
	}
	return list
}

// add notes a bound by the times of both clocks.
func (l *pairLimits) add(x *Bound) {
	if x.Hi != NoHi { // A showed At-Hi before B showed At
		if a := sub(x.At, x.Hi); x.A < x.B {
			l.hi = append(l.hi, crossed{a, x.At, x.Hi})
		} else {
			l.lo = append(l.lo, crossed{x.At, a, -x.Hi})
		}
	}
	if x.Lo != NoLo {
		if a := sub(x.At, x.Lo); x.A < x.B {
			l.lo = append(l.lo, crossed{a, x.At, x.Lo})
		} else {
			l.hi = append(l.hi, crossed{x.At, a, -x.Lo})
		}
	}
}

// jumps finds one jump after the other, the clearest first. A clock that is set back shows
// some times twice, so the times of the other one are tried, too.
func (l *pairLimits) jumps(key [2]int) (list []Jump) {
	for len(list) < maxJumps {
		best, ok := l.jump(func(x crossed) int64 { return x.a })
		if !ok {
			best, ok = l.jump(func(x crossed) int64 { return x.b })
		}
		if !ok {
			break
		}
		best.A, best.B = key[0], key[1]
		list = append(list, best)
		for _, side := range [...][]crossed{l.lo, l.hi} {
			for i := range side {
				if side[i].a >= best.AfterA {
					side[i].v -= best.By
				}
			}
		}
	}
	slices.SortFunc(list, func(x, y Jump) int { return cmp.Compare(x.AfterA, y.AfterA) })
	return list
}

// jump finds the instant, by one of the clocks, on whose sides the bounds contradict each other
// most.
func (l *pairLimits) jump(at func(crossed) int64) (best Jump, ok bool) {
	if lo, hi := (window{l.lo, l.hi}).extremes(); float64(lo)-float64(hi) <= minJump {
		return best, false // all of them agree
	}
	order := func(x, y crossed) int { return cmp.Or(cmp.Compare(at(x), at(y)), cmp.Compare(x.v, y.v)) }
	slices.SortFunc(l.lo, order)
	slices.SortFunc(l.hi, order)
	most := 0.0
	j := 0
	for i := range l.lo {
		for j < len(l.hi) && at(l.hi[j]) < at(l.lo[i]) {
			j++
		}
		if i < fewBounds || j < fewBounds || len(l.lo)-i < fewBounds || len(l.hi)-j < fewBounds {
			continue
		}
		before := window{l.lo[max(0, i-jumpWindow):i], l.hi[max(0, j-jumpWindow):j]}
		after := window{l.lo[i:min(len(l.lo), i+jumpWindow)], l.hi[j:min(len(l.hi), j+jumpWindow)]}
		if by := before.against(after); by > most {
			best, most, ok = between(before, after), by, true
		}
	}
	return best, ok
}

// Refuting counts the other clocks that contradict that one was set forward by ns after it showed one time, and before it
// showed another one: what it has to do with them before and afterward leaves no room for that.
func Refuting(bounds []Bound, clock int, before, after, by int64) (n int) {
	sides := map[int]*[2]window{} // of another clock minus this one
	for i := range bounds {
		x := &bounds[i]
		other := x.A + x.B - clock
		if x.A == x.B || x.A != clock && x.B != clock || !x.sound() {
			continue
		}
		var l pairLimits
		y := *x
		y.A, y.B = 0, 1
		if l.add(&y); x.B == clock {
			l.lo, l.hi = flipped(l.hi), flipped(l.lo)
		}
		if sides[other] == nil {
			sides[other] = &[2]window{}
		}
		for side, in := range [2]func(int64) bool{func(t int64) bool { return t <= before }, func(t int64) bool { return t >= after }} {
			w, is := &sides[other][side], func(c crossed) bool { return in(c.a) }
			w.lo, w.hi = append(w.lo, order.Only(l.lo, is)...), append(w.hi, order.Only(l.hi, is)...)
		}
	}
	byTime := func(x, y crossed) int { return cmp.Compare(x.a, y.a) }
	for _, w := range sides {
		for _, list := range [...]*[]crossed{&w[0].lo, &w[0].hi, &w[1].lo, &w[1].hi} {
			slices.SortStableFunc(*list, byTime)
		}
		was := window{last(w[0].lo), last(w[0].hi)}
		is := window{first(w[1].lo), first(w[1].hi)}
		if min(len(was.lo), len(was.hi), len(is.lo), len(is.hi)) < fewBounds {
			continue
		}
		lo1, hi1 := was.extremes()
		lo2, hi2 := is.extremes()
		if float64(lo2)+float64(by)-float64(hi1) > minJump || float64(lo1)-float64(hi2)-float64(by) > minJump {
			n++
		}
	}
	return n
}

// first and last are the bounds next to an instant that they follow, or precede.
func first(list []crossed) []crossed { return list[:min(len(list), jumpWindow)] }
func last(list []crossed) []crossed  { return list[max(0, len(list)-jumpWindow):] }

// flipped has bounds of B minus A as those of A minus B, by the times of B.
func flipped(list []crossed) []crossed {
	return order.Each(list, func(c crossed) crossed { return crossed{c.b, c.a, -c.v} })
}

// A window is some bounds that follow each other.
type window struct{ lo, hi []crossed }

// extremes returns the limits that all bounds of a window leave but one of each direction, which may be
// wrong.
func (w window) extremes() (lo, hi int64) { return second(w.lo, 1), -second(w.hi, -1) }

// second returns the value, times sign, that only one other exceeds.
func second(list []crossed, sign int64) int64 {
	first, next := int64(math.MinInt64), int64(math.MinInt64)
	for i := range list {
		switch v := sign * list[i].v; {
		case v > first:
			first, next = v, first
		case v > next:
			next = v
		}
	}
	return next
}

// spread returns how far the limits are apart that limit most, times sign the lowest, in ns.
func spread(list []crossed, sign int64) float64 {
	values := order.Each(list, func(x crossed) int64 { return sign * x.v })
	slices.Sort(values)
	return float64(values[min(len(values), 2*fewBounds)-1] - values[0])
}

// against returns by how much two windows contradict each other more than a drift explains, in ns;
// 0 if each is not sound by itself.
func (w window) against(o window) float64 {
	lo1, hi1 := w.extremes()
	lo2, hi2 := o.extremes()
	from, to := w.lo[0].a, o.lo[len(o.lo)-1].a
	drift := float64(minJump) + 2*maxDrift*math.Abs(float64(to-from))
	if float64(lo1-hi1) > drift || float64(lo2-hi2) > drift {
		return 0
	}
	return max(0, max(float64(lo2-hi1), float64(lo1-hi2))-drift)
}

// between returns the jump between two windows. The least delays of each direction are about
// the same before and afterward. What is beyond the middle of the two offsets tells on which
// side it is: the split itself may be a few bounds off.
func between(before, after window) Jump {
	lo1, hi1 := before.extremes()
	lo2, hi2 := after.extremes()
	// The direction whose extremes are closer together tells more exactly how far it moved.
	los, his := max(1, spread(before.lo, -1), spread(after.lo, -1)), max(1, spread(before.hi, 1), spread(after.hi, 1))
	by := lo2 - lo1 + int64(float64(hi2-hi1-(lo2-lo1))*los/(los+his))
	x := Jump{By: by, Err: max(lo2-lo1, hi2-hi1, by) - min(lo2-lo1, hi2-hi1, by) + 1,
		BeforeA: math.MinInt64, BeforeB: math.MinInt64, AfterA: math.MaxInt64, AfterB: math.MaxInt64}
	middle := (lo1+hi1)/2 + x.By/2
	for _, w := range [...]window{before, after} {
		for _, c := range w.lo {
			if c.v > middle {
				x.note(c, x.By > 0)
			}
		}
		for _, c := range w.hi {
			if c.v < middle {
				x.note(c, x.By < 0)
			}
		}
	}
	return x
}

// note takes a bound that is on one side of the jump.
func (x *Jump) note(c crossed, after bool) {
	if after {
		x.AfterA, x.AfterB = min(x.AfterA, c.a), min(x.AfterB, c.b)
	} else {
		x.BeforeA, x.BeforeB = max(x.BeforeA, c.a), max(x.BeforeB, c.b)
	}
}
