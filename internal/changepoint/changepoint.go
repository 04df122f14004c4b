package changepoint

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Change divides the observations before At from those from At on.
type Change struct {
	At int // index of the first observation after the change
	// First and Last are the earliest and the latest At that the observations
	// allow, with a confidence of 95 %.
	First, Last int
	// From and To are the neighboring changes, or the ends of the sequence: the change divides [From, To).
	From, To int
	// P bounds the probability of finding such a change anywhere in a sequence without any.
	P float64
}

// Of converts c to the indexes of a longer sequence, if the searched one is a part or a summary of it. at maps an
// index of the searched sequence, its end included, to the longer one.
func (c Change) Of(at func(k int) int) Change {
	return Change{At: at(c.At), First: at(c.First), Last: at(c.Last), From: at(c.From), To: at(c.To), P: c.P}
}

// Options tune a search.
type Options struct {
	// Alpha is the largest P that a reported change may have.
	Alpha float64
	// Keep reports whether a change at k between the observations [from, k) and [k, to) is large enough to matter.
	// Nil keeps every change.
	Keep func(from, k, to int) bool
}

// A sequence is searched for changes. All methods describe a split of the observations [from, to) at k, from <
// k < to.
type sequence interface {
	len() int
	// gain is the square of the split's normal deviate, if neighbors are independent. It is highest at the best
	// place.
	gain(from, k, to int) float64
	// mostGain is an upper bound of the gain of all splits of the window, bound one of the gain of the split at k.
	// Both are cheaper to compute than the gain; infinity is no bound.
	mostGain(from, to int) float64
	bound(from, k, to int) float64
	// deviate is the normal deviate of the split, with neighbors that resemble each other: at most the root of
	// gain.
	deviate(from, k, to int) float64
	// loss returns a function of places: twice the logarithm of how much less likely a split there is than the one
	// at k, which is the best.
	loss(from, k, to int) func(other int) float64
	// least is the smallest number of observations on either side of a split, and shortest the smallest number in a
	// window that is searched on its own.
	least(from, to int) int
	shortest() int
}

// A window is the observations [from, to) of a sequence.
type window struct{ from, to int }

// find returns the changes of s in order.
func find(s sequence, o Options) []Change {
	f := &finder{s: s, Options: o}
	f.search(window{0, s.len()})
	slices.SortFunc(f.found, func(x, y Change) int { return x.At - y.At })
	f.settle()
	for i := range f.found {
		f.bound(i)
	}
	f.dropSmall()
	for i := range f.found {
		w := f.around(i)
		f.found[i].From, f.found[i].To = w.from, w.to
	}
	return f.found
}

type finder struct {
	s sequence
	Options
	found []Change
	known struct { // the last result of leastGain: windows of one length follow each other
		length      int
		times, gain float64
	}
}

// search finds the most significant change in a window, and goes on with the
// parts to both sides of it.
func (f *finder) search(w window) {
	best := Change{P: math.Inf(1)}
	windows := seeded(w, f.s.shortest())
	for i, v := range windows {
		// The whole window gets half of the error, the others share the other half. They overlap so much that three
		// of them count as one.
		times := 2.0
		if i > 0 {
			times = max(2, 2*float64(len(windows)-1)/3)
		}
		if k, p := f.best(v, times); p < best.P {
			best = Change{At: k, P: p}
		}
	}
	if best.P > f.Alpha {
		return
	}
	f.found = append(f.found, best)
	f.search(window{w.from, best.At})
	f.search(window{best.At, w.to})
}

// best returns the best split of a window, and times the probability of a split that good by chance; infinity
// if that exceeds alpha.
func (f *finder) best(w window, times float64) (k int, p float64) {
	if times*f.chance(w, math.Sqrt(f.s.mostGain(w.from, w.to))) > f.Alpha {
		return -1, math.Inf(1) // wherever the split is
	}
	if k = f.peak(w, f.leastGain(w, times)); k < 0 {
		return k, math.Inf(1)
	}
	if times*f.chance(w, math.Sqrt(f.s.gain(w.from, k, w.to))) > f.Alpha {
		return k, math.Inf(1) // even if neighbors were independent
	}
	if p = times * f.chance(w, f.s.deviate(w.from, k, w.to)); p > f.Alpha {
		return k, math.Inf(1)
	}
	return k, p
}

// chance returns the probability that the best split of a window has at least this deviate by chance.
func (f *finder) chance(w window, deviate float64) float64 {
	return supremum(deviate, float64(f.s.least(w.from, w.to))/float64(w.to-w.from))
}

// leastGain returns the gain at which times the probability of the window's best split reaches alpha, rounded
// down a little.
func (f *finder) leastGain(w window, times float64) float64 {
	if length := w.to - w.from; f.known.length != length || f.known.times != times {
		f.known.length, f.known.times, f.known.gain = length, times, f.solveGain(w, times)
	}
	return f.known.gain
}

func (f *finder) solveGain(w window, times float64) float64 {
	low, high := 0.0, float64(farthest)
	for range 20 {
		if z := (low + high) / 2; times*f.chance(w, z) > f.Alpha {
			low = z
		} else {
			high = z
		}
	}
	return low * low
}

// peak returns the split of a window with the highest gain, or -1 if the window is too short. In a short window
// it also returns -1 if no gain exceeds leastGain. In a long one it tries a few hundred places, and then those
// around the best, whatever their gain: a true change makes a wide hill.
func (f *finder) peak(w window, leastGain float64) int {
	const places = 256
	least := f.s.least(w.from, w.to)
	at, highest := -1, math.Inf(-1)
	if w.to-w.from < 2*places {
		highest = leastGain
	}
	try := func(from, to, step int) {
		for k := max(from, w.from+least); k <= min(to, w.to-least); k += step {
			if f.s.bound(w.from, k, w.to) < highest {
				continue
			}
			if g := f.s.gain(w.from, k, w.to); g > highest {
				at, highest = k, g
			}
		}
	}
	step := max(1, (w.to-w.from)/places)
	try(w.from, w.to, step)
	if step > 1 && at >= 0 {
		try(at-step, at+step, 1)
	}
	return at
}

// around returns the window between the neighbors of the i-th change.
func (f *finder) around(i int) window {
	w := window{0, f.s.len()}
	if i > 0 {
		w.from = f.found[i-1].At
	}
	if i+1 < len(f.found) {
		w.to = f.found[i+1].At
	}
	return w
}

// settle moves every change to the best place between its neighbors, which were not known when it was found,
// and drops changes that are not significant between them.
func (f *finder) settle() {
	for i := range f.found {
		if k := f.peak(f.around(i), math.Inf(-1)); k >= 0 {
			f.found[i].At = k
		}
	}
	f.drop(func(i int) bool {
		w := f.around(i)
		return f.chance(w, f.s.deviate(w.from, f.found[i].At, w.to)) > f.Alpha
	})
}

// dropSmall drops the changes that Keep rejects. It comes last: an undetected small change would make the
// sequence look unsteady, and hide larger ones.
func (f *finder) dropSmall() {
	if f.Keep == nil {
		return
	}
	f.drop(func(i int) bool {
		w := f.around(i)
		return !f.Keep(w.from, f.found[i].At, w.to)
	})
}

// drop removes unfit changes one by one, the least certain first, since each removal leaves its neighbors more
// room.
func (f *finder) drop(unfit func(i int) bool) {
	for {
		worst, lowest := -1, math.Inf(1)
		for i := range f.found {
			w := f.around(i)
			if d := f.s.deviate(w.from, f.found[i].At, w.to); d < lowest && unfit(i) {
				worst, lowest = i, d
			}
		}
		if worst < 0 {
			return
		}
		f.found = slices.Delete(f.found, worst, worst+1)
	}
}

// plausible bounds, with a probability of 0.95, the loss at the true place of a change. Loss has the
// distribution function (1 - exp(-x/2))^2: Yao, Ann. Statist. 15 (1987); Hansen, Econometrica 68 (2000).
var plausible = -2 * math.Log(1-math.Sqrt(0.95))

// bound fills in the interval of the i-th change.
func (f *finder) bound(i int) {
	c, w := &f.found[i], f.around(i)
	c.First, c.Last = c.At, c.At
	loss := f.s.loss(w.from, c.At, w.to)
	for k := w.from + 1; k < w.to; k++ {
		if loss(k) <= plausible {
			c.First, c.Last = min(c.First, k), max(c.Last, k)
		}
	}
}

// supremum returns the probability that the best split of a sequence without a change has a normal deviate of
// at least z in absolute value, if either side has at least a share trim of the observations. It is
//
//	z phi(z) ((1 - 1/z^2) ln(((1-trim)/trim)^2) + 4/z^2)
//
// for the supremum of a standardized Brownian bridge: Vostrikova, Theory Probab. Appl. 26 (1981); Csörgő and
// Horváth, Limit Theorems in Change-Point Analysis (1997), 1.3.26. Sequences are discrete and stay a little
// below that.
func supremum(z, trim float64) float64 {
	if z < 1.5 {
		return 1 // beyond the reach of the formula, and never significant
	}
	trim = min(max(trim, 1e-6), 0.5)
	places := 2 * math.Log((1-trim)/trim)
	p := z * distuv.UnitNormal.Prob(z) * ((1-1/(z*z))*places + 4/(z*z))
	return min(max(p, twoSided(z)), 1)
}

// twoSided returns the probability of a normal deviate of at least z in absolute value.
func twoSided(z float64) float64 { return math.Erfc(z / math.Sqrt2) }

// farthest is the largest deviate: float64 cannot hold the probabilities of larger ones.
const farthest = 38

// normal converts Student's t with df degrees of freedom to the normal deviate of the same probability.
func normal(t, df float64) float64 {
	const many = 1e5 // beyond it, t is normal
	if df > many {
		return min(t, farthest)
	}
	p := distuv.StudentsT{Sigma: 1, Nu: df}.Survival(t)
	if p < 1e-300 {
		return min(t, farthest)
	}
	return min(t, -distuv.UnitNormal.Quantile(p))
}

// Mean returns the mean of observations whose neighbors may resemble each other, the variance of that mean, and
// the number of independent observations that would be worth as much.
func Mean(x []float64) (value, variance, worth float64) {
	m := side(x)
	return m.value, m.variance, m.worth
}

// seeded returns a window and shorter ones inside it, in layers: each layer's windows are shorter by the root
// of 2 and overlap by half, down to the shortest. There are about 7 n / shortest of them.
func seeded(w window, shortest int) []window {
	windows := []window{w}
	n := w.to - w.from
	for layer := 1; ; layer++ {
		length := float64(n) * math.Pow(2, -float64(layer)/2)
		if length < float64(max(2, shortest)) {
			return windows
		}
		count := 2*int(math.Ceil(math.Pow(2, float64(layer)/2))) - 1
		step := (float64(n) - length) / float64(count-1)
		for i := range count {
			from := w.from + int(float64(i)*step)
			to := min(w.to, w.from+int(math.Ceil(float64(i)*step+length)))
			windows = append(windows, window{from, to})
		}
	}
}

// A series is the observations of a track that share a level, in the order of their middles. It keeps prefix
// sums, so that measuring a shape made of lines looks only at the observations in which a line begins.
type series struct {
	list           []Observation
	begin          float64   // start of the first observation
	times          []float64 // middles of the observations, from begin on
	weight, values []float64
	scale          float64   // factor on its weights
	half           float64   // half the length of the longest observation
	before         []moments // sums over the first 0, 1, 2, ... observations
}

// Moments are weighted sums of 1, the time, its square, the value, and the value times the time.
type moments struct{ one, time, square, value, both float64 }

func (t *track) newSeries() series {
	n := len(t.list)
	s := series{list: t.list, begin: t.from, times: make([]float64, n), weight: t.weight, values: t.values, scale: 1, before: make([]moments, n+1)}
	for i := range t.list {
		o, w, v := &t.list[i], t.weight[i], t.values[i]
		at := o.middle() - t.from
		s.times[i], s.half = at, max(s.half, (o.To-o.From)/2)
		m := s.before[i]
		s.before[i+1] = moments{m.one + w, m.time + w*at, m.square + w*at*at, m.value + w*v, m.both + w*v*at}
	}
	return s
}

// A line is a part of a shape: level + slope*t from a time on.
type line struct{ from, level, slope float64 }

// linesOf returns the n lines that make up a shape of size 1, which is 0 before the first one. at and end count
// from any origin.
func linesOf(s Shape, at, end float64) (of [2]line, n int) {
	switch s {
	case Stepped:
		return [2]line{{at, 1, 0}}, 1
	case Spell:
		return [2]line{{at, 1, 0}, {end, 0, 0}}, 2
	case Bent:
		return [2]line{{at, -at, 1}}, 1
	case Sloped:
		return [2]line{{at, -at / (end - at), 1 / (end - at)}, {end, 1, 0}}, 2
	}
	return of, 0
}

// measure returns two weighted sums for a shape of size 1: of the values times the shape, and of the squared
// distances of the shape from its mean.
func (x *series) measure(t *track, s Shape, at, end float64) (product, square float64) {
	sum := 0.0
	each := func(from, to int) {
		for i := from; i < to; i++ {
			b := t.basis(s, &x.list[i], at, end)
			w := x.weight[i] * b
			sum, product, square = sum+w, product+w*x.values[i], square+w*b
		}
	}
	n, seen := len(x.list), 0
	lines, count := linesOf(s, at-x.begin, end-x.begin)
	if count == 0 {
		each(0, n)
	} else {
		seen = x.first(lines[0].from - x.half) // the shape is 0 before
	}
	for k := range count {
		l := &lines[k]
		from, to := max(seen, x.first(l.from+x.half)), n
		if k+1 < count {
			to = max(from, x.first(lines[k+1].from-x.half))
		}
		each(seen, from)
		a, b := &x.before[from], &x.before[to]
		one, time := b.one-a.one, b.time-a.time
		sum += l.level*one + l.slope*time
		product += l.level*(b.value-a.value) + l.slope*(b.both-a.both)
		square += l.level*l.level*one + 2*l.level*l.slope*time + l.slope*l.slope*(b.square-a.square)
		seen = to
	}
	return x.scale * product, x.scale * (square - sum*sum/x.before[n].one)
}

// first returns the index of the first observation whose middle is at or after a time.
func (x *series) first(at float64) int {
	i, _ := slices.BinarySearch(x.times, at)
	return i
}
