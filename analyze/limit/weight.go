package limit

import (
	"maps"
	"slices"
)

// A weights says for how much of the waiting each of some numbers of requests is so, in
// request ns: each ns of each request that waits counts once.
type weights map[int]float64

// weigh weighs numbers of requests in a spell.
func (p *spell) weigh(of func(s *segment) int32) weights {
	w := weights{}
	for i := range p.segments {
		s := &p.segments[i]
		w[int(of(s))] += float64(s.to-s.from) * float64(s.n[p.wait])
	}
	return w
}

// numbers are those that have a weight, in order: sums of floats depend on it.
func (w weights) numbers() []int { return slices.Sorted(maps.Keys(w)) }

// beyond is the part of the weight that larger numbers have.
func (w weights) beyond(n int) float64 {
	sum := 0.0
	for _, k := range w.numbers() {
		if k > n {
			sum += w[k]
		}
	}
	return sum / w.whole()
}

// whole is the weight of all numbers.
func (w weights) whole() float64 {
	sum := 0.0
	for _, n := range w.numbers() {
		sum += w[n]
	}
	return sum
}

// mean is the weighted mean of the numbers.
func (w weights) mean() float64 {
	sum := 0.0
	for _, n := range w.numbers() {
		sum += float64(n) * w[n]
	}
	return sum / w.whole()
}

// usual is the number that has most of the weight; of two, the smaller one.
func (w weights) usual() int {
	return slices.MaxFunc(w.numbers(), func(x, y int) int {
		if w[x] > w[y] || w[x] == w[y] && x < y {
			return 1
		}
		return -1
	})
}

// isStuck reports whether the number is nearly always the same, and hardly ever larger.
func (w weights) isStuck() bool {
	n := w.usual()
	return w[n] >= nearlyAll*w.whole() && w.beyond(n) <= rarely
}

// bounds returns the numbers between which nine tenths of the weight lie.
func (w weights) bounds() (fewest, greatest int) {
	const tail = 0.05 // of the weight, at either end
	numbers, whole := w.numbers(), w.whole()
	fewest, sum := numbers[0], 0.0
	for _, n := range numbers {
		if sum <= tail*whole {
			fewest = n
		}
		if sum < (1-tail)*whole {
			greatest = n
		}
		sum += w[n]
	}
	return fewest, greatest
}
