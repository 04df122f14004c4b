package align

import (
	"cmp"
	"github.com/sgtrace/sgtrace/internal/order"
	"math"
	"slices"
)

// A Jump is a change of clock B minus clock A between two instants by more than clocks drift: one of them was set.
type Jump struct {
	A, B             int
	BeforeA, BeforeB int64 // latest times on both clocks before the jump
	AfterA, AfterB   int64 // earliest times on both clocks after the jump
	By               int64 // ns, growth of B minus A
	Err              int64 // ns, how far off By may be
}

// Jumps are searched for by comparing up to jumpWindow bounds of each direction before and
// after an instant, at least fewBounds of each, one of which may be wrong.
const (
	jumpWindow = 32
	fewBounds  = 4
	minJump    = 10_000_000 // ns; clocks under NTP are set only if they are off by more
	maxJumps   = 8          // for one pair of clocks
)

// A crossed is a limit v for the difference of two clocks, with the times on both.
type crossed struct{ a, b, v int64 }

// A pairLimits has the lower and the upper limits for B minus A, A < B.
type pairLimits struct{ lo, hi []crossed }

// Jumps finds the jumps of pairs of clocks, where bounds before an instant contradict those after it; ordered by pair, then by time.
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

// add adds a bound with the times on both clocks.
func (l *pairLimits) add(x *Bound) {
	if x.Hi != NoHi { // At-Hi on A is no later than At on B
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

// jumps finds jumps one by one, the clearest first. A clock that is set back shows some times
// twice, so instants on the other clock are tried, too.
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

// jump finds the instant, on one of the clocks, before and after which bounds contradict each other most.
func (l *pairLimits) jump(at func(crossed) int64) (best Jump, ok bool) {
	if lo, hi := (window{l.lo, l.hi}).extremes(); float64(lo)-float64(hi) <= minJump {
		return best, false // all bounds agree
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

// Refuting counts the clocks that contradict a jump of one clock forward by `by` ns, which showed at most
// before until then, and at least after since then: bounds with them before and after leave no room for it.
func Refuting(bounds []Bound, clock int, before, after, by int64) (n int) {
	sides := map[int]*[2]window{} // by other clock: limits of that clock minus this one, before and after
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

// first and last return the limits next to an instant: the first ones after it, or the last ones before it.
func first(list []crossed) []crossed { return list[:min(len(list), jumpWindow)] }
func last(list []crossed) []crossed  { return list[max(0, len(list)-jumpWindow):] }

// flipped turns limits of B minus A into limits of A minus B, by the times of B.
func flipped(list []crossed) []crossed {
	return order.Each(list, func(c crossed) crossed { return crossed{c.b, c.a, -c.v} })
}

// A window is a stretch of successive limits.
type window struct{ lo, hi []crossed }

// extremes returns the tightest limits of a window, after dropping one in each direction, which may be wrong.
func (w window) extremes() (lo, hi int64) { return second(w.lo, 1), -second(w.hi, -1) }

// second returns the second largest value times sign.
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

// spread returns how far apart the tightest limits are, in ns: the lowest ones, times sign.
func spread(list []crossed, sign int64) float64 {
	values := order.Each(list, func(x crossed) int64 { return sign * x.v })
	slices.Sort(values)
	return float64(values[min(len(values), 2*fewBounds)-1] - values[0])
}

// against returns by how much two windows contradict each other beyond drift, in ns; 0 if either contradicts itself.
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

// between returns the jump between two windows, assuming that the least delays of each direction are about the same before and
// after. A limit beyond the middle of the two offsets shows on which side of the jump it is: the split may be a few limits off.
func between(before, after window) Jump {
	lo1, hi1 := before.extremes()
	lo2, hi2 := after.extremes()
	// The direction whose extremes are closer together gives the size of the jump more exactly.
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

// note records that a limit is before or after the jump.
func (x *Jump) note(c crossed, after bool) {
	if after {
		x.AfterA, x.AfterB = min(x.AfterA, c.a), min(x.AfterB, c.b)
	} else {
		x.BeforeA, x.BeforeB = max(x.BeforeA, c.a), max(x.BeforeB, c.b)
	}
}
