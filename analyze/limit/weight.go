package limit

import (
	"maps"
	"slices"
)

// A weights says for how much of the waiting each number of requests ran, in request ns.
type weights map[int]float64

// byRunning weighs the numbers of requests that run in a spell.
func (p *spell) byRunning() weights {
	w := weights{}
	for i := range p.segments {
		s := &p.segments[i]
		w[int(s.n[running])] += float64(s.to-s.from) * float64(s.n[p.wait])
	}
	return w
}

// usual is the number that has most of the weight; of two, the smaller one.
func (w weights) usual() int {
	numbers := slices.Sorted(maps.Keys(w))
	return slices.MaxFunc(numbers, func(x, y int) int {
		if w[x] > w[y] || w[x] == w[y] && x < y {
			return 1
		}
		return -1
	})
}

// bounds returns the numbers between which nine tenths of the weight lie.
func (w weights) bounds() (fewest, greatest int) {
	const tail = 0.05 // of the weight, at either end
	numbers := slices.Sorted(maps.Keys(w))
	whole := 0.0
	for _, n := range numbers {
		whole += w[n]
	}
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
