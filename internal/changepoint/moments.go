package changepoint

import "slices"

// A series is the observations of a track that have a level of their own, in the order of their
// middles. It has sums over the first of them, so that a shape of lines is measured without a look at
// each observation: only at those that a line begins in.
type series struct {
	list           []Observation
	begin          float64   // of the first one
	times          []float64 // their middles, from there on
	weight, values []float64
	scale          float64   // times which its weights count
	half           float64   // of the longest observation
	before         []moments // of the first 0, 1, 2, ... observations
}

// Moments are sums of products with the weights: of 1, the time, its square, the value, and the value
// times the time.
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

// A line is a part of a shape: level + slope*t from some time on.
type line struct{ from, level, slope float64 }

// linesOf returns the lines that a shape consists of, and how many they are; before the first one it
// is 0. Times are from any origin.
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

// measure returns the sum of the products of the values and a shape of size 1, and of the squares of
// what the shape differs from its mean by.
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
		seen = x.first(lines[0].from - x.half) // it is 0 before
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

// first returns which observation is the first whose middle is not before a time.
func (x *series) first(at float64) int {
	i, _ := slices.BinarySearch(x.times, at)
	return i
}
