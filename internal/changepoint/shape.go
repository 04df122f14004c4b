package changepoint

import "math"

const (
	// edge is the smallest share, and beside the smallest number, of the observations on either side of a change: one
	// or two observations may be exceptions.
	edge, beside = 0.02, 3
	// lasting is the smallest share of the observations, and of the time, that a spell or the end of a bend takes:
	// a shorter one is a single crowd, or a hiccup.
	lasting = 0.05
	// places is the number of times tried before the search around the best one.
	places = 96
	// better is the factor by which a fit must beat an earlier one, so that rounding does not decide: among equally
	// good times, the first wins.
	better = 1 + 1e-9
	// scales is the number of lengths tried for a warm-up or a wave.
	scales = 12
)

// basis returns the average of a shape of size 1 during an observation. For Waving, end is the phase; fitWave
// combines two of them.
func (t *track) basis(s Shape, o *Observation, at, end float64) float64 {
	switch s {
	case Stepped:
		return after(o, at)
	case Spell:
		return after(o, at) - after(o, end)
	case Ramped:
		return o.middle() - t.from
	case Bent:
		return above(o, at)
	case Settling:
		return math.Exp(-(o.middle() - t.from) / at)
	case Sloped:
		return (above(o, at) - above(o, end)) / (end - at)
	case Waving:
		return math.Cos(2*math.Pi*(o.middle()-t.from)/at - end)
	}
	return 0
}

// after returns the share of an observation that lies after a time.
func after(o *Observation, at float64) float64 {
	switch {
	case o.From >= at:
		return 1
	case o.To <= at:
		return 0
	}
	return (o.To - at) / (o.To - o.From)
}

// above returns how far beyond a time an observation is on average, counting what lies before it as 0.
func above(o *Observation, at float64) float64 {
	switch {
	case o.From >= at:
		return o.middle() - at
	case o.To <= at:
		return 0
	}
	return (o.To - at) * (o.To - at) / (2 * (o.To - o.From))
}

// improve replaces f if the other fit is clearly better.
func (f *fit) improve(by fit) {
	if by.ok && by.gain > f.gain*better {
		*f = by
	}
}

// try fits the size of a shape with given times.
func (t *track) try(s Shape, at, end float64) fit {
	product, square := 0.0, 0.0
	for i := range t.series {
		p, q := t.series[i].measure(t, s, at, end)
		product, square = product+p, square+q
	}
	if square <= 1e-9 {
		return fit{at: at, end: end}
	}
	return fit{at: at, end: end, gain: product * product / square, size: product / square, ok: true}
}

// fit returns the best fit of a shape.
func (t *track) fit(s Shape) fit {
	switch s {
	case Ramped:
		return t.try(s, 0, 0)
	case Settling:
		return t.bestOf(s, func(k int) float64 { return (t.to - t.from) / 4 * math.Pow(0.7, float64(k)) })
	case Waving:
		return t.fitWave()
	case Spell:
		return t.fitSpell()
	case Sloped:
		return t.fitSlope()
	}
	best := t.fitTime(s, math.Inf(1))
	if s == Bent && !t.lasts(best.at) {
		return fit{}
	}
	return best
}

// lasts reports whether there are enough observations, and enough time, after at.
func (t *track) lasts(at float64) bool {
	n := len(t.list)
	return at <= t.list[n-1-int(lasting*float64(n))].middle() && at <= t.to-lasting*(t.to-t.from)
}

// bestOf tries all scales, and returns the best fit.
func (t *track) bestOf(s Shape, scale func(k int) float64) (best fit) {
	for k := range scales {
		best.improve(t.try(s, scale(k), 0))
	}
	return best
}

// fitTime finds the best start of a shape: the best of many times, and then ever closer around that.
func (t *track) fitTime(s Shape, end float64) (best fit) {
	n := len(t.list)
	place := func(part float64) float64 { return t.list[min(n-1, max(0, int(part*float64(n))))].middle() }
	least := max(edge, beside/float64(n))
	first, last := place(least), min(place(1-least), end)
	// Spread the times both by the clock and by the number of observations, which are few at night.
	for k := range places {
		part := (float64(k) + 0.5) / places
		for _, at := range [...]float64{first + part*(last-first), place(least + part*(1-2*least))} {
			if at > last {
				continue
			}
			best.improve(t.try(s, at, end))
		}
	}
	if !best.ok {
		return best
	}
	const closer = 5
	for step := (last - first) / places; step > (last-first)*1e-6; step /= closer {
		center := best.at
		for k := -closer; k <= closer; k++ {
			at := center + float64(k)*step/closer*2
			if at < first || at > last {
				continue
			}
			best.improve(t.try(s, at, end))
		}
	}
	return best
}

// fitSpell finds the two times between which the level differs. It begins with those between which the sum of
// the values is highest or lowest, and moves one time and the other alternately.
func (t *track) fitSpell() fit {
	sum, least, most := 0.0, 0.0, 0.0
	down, up := 0, 0 // places of least and most
	for i, v := range t.values {
		sum += t.weight[i] * v
		if sum < least {
			least, down = sum, i+1
		}
		if sum > most {
			most, up = sum, i+1
		}
	}
	n := len(t.list)
	from, to := min(up, down), max(up, down)
	fewest := max(5, int(lasting*float64(n)))
	if to-from < fewest || n-(to-from) < fewest || from < beside || n-to < beside {
		return fit{}
	}
	shortest := lasting * (t.to - t.from)
	at, end := t.list[from].From, t.list[to-1].To
	if end-at < shortest {
		return fit{}
	}
	best := t.try(Spell, at, end)
	for range 2 {
		for _, move := range [...]bool{false, true} {
			step := (best.end - best.at) / 4
			for ; step > (t.to-t.from)*1e-6; step /= 4 {
				center := best
				for k := -4; k <= 4; k++ {
					a, e := center.at, center.end
					if d := float64(k) * step; move {
						e += d
					} else {
						a += d
					}
					if e-a < shortest || a <= t.from || e >= t.to {
						continue
					}
					best.improve(t.try(Spell, a, e))
				}
			}
		}
	}
	return best
}

// fitSlope finds the two times between which the level goes from one to another: the best on a coarse grid,
// refined by moving one and the other alternately. A slope that takes less than twice the shortest spell is a
// step.
func (t *track) fitSlope() (best fit) {
	const coarse = 12 // times on the grid
	span := t.to - t.from
	shortest := 2 * lasting * span
	move := func(at, end float64) {
		if at < t.from || end > t.to || end-at < shortest {
			return
		}
		best.improve(t.try(Sloped, at, end))
	}
	for a := range coarse {
		for e := a + 1; e < coarse; e++ {
			move(t.from+span*float64(a)/coarse, t.from+span*float64(e)/coarse)
		}
	}
	const closer = 4
	for step := span / coarse / closer; best.ok && step > span*1e-5; step /= closer {
		for range 2 {
			center := best
			for k := -closer; k <= closer; k++ {
				move(center.at+float64(k)*step, center.end)
			}
			center = best
			for k := -closer; k <= closer; k++ {
				move(center.at, center.end+float64(k)*step)
			}
		}
	}
	if best.ok && best.end > t.to-lasting*span {
		return fit{} // it does not level off: that is a bend
	}
	return best
}

// fitWave finds the best wave that completes at least one period. Its phase follows from the fits of sine and
// cosine.
func (t *track) fitWave() (best fit) {
	for k := range scales {
		length := (t.to - t.from) * math.Pow(0.85, float64(k))
		cos, sin := t.try(Waving, length, 0), t.try(Waving, length, math.Pi/2)
		if !cos.ok || !sin.ok {
			continue
		}
		phase := math.Atan2(sin.size, cos.size) // they are nearly orthogonal
		best.improve(t.try(Waving, length, phase))
	}
	return best
}

// bounds returns when a shape began, and the bounds of that time with a confidence of 95 %.
func (t *track) bounds(s Shape) (at, first, last float64) {
	f := &t.fits[s]
	loss := func(at float64) float64 {
		end := f.end
		if (s == Spell || s == Sloped) && at >= end {
			return math.Inf(1)
		}
		return (f.gain - t.try(s, at, end).gain) / (t.noise * t.tau)
	}
	outward := func(sign, limit float64) float64 {
		// Between sparse observations the start is undetermined, however small the step.
		least := (t.to - t.from) * 1e-6
		reach := 0.0
		for step := least; t.from < f.at+sign*step && f.at+sign*step < t.to && step <= 8*max(reach, least); step *= 1.3 {
			if loss(f.at+sign*step) <= limit {
				reach = step
			}
		}
		inside, outside := reach, reach*1.3
		for range 12 {
			if m := (inside + outside) / 2; loss(f.at+sign*m) <= limit {
				inside = m
			} else {
				outside = m
			}
		}
		return min(max(f.at+sign*outside, t.from), t.to)
	}
	// In a gap between observations all places are equally good: take its middle.
	const asGood = 0.01
	at = (outward(-1, asGood) + outward(1, asGood)) / 2
	first, last = outward(-1, limitOfTime), outward(1, limitOfTime)
	return max(at, first), first, last
}

// limitOfTime bounds the loss at the true time, with a probability of 0.95.
var limitOfTime = plausible
