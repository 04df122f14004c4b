package changepoint

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
)

const (
	// maxTurns is the largest number of changes of a level, and maxPieces the number of pieces that a series is
	// divided into to find them.
	maxTurns, maxPieces = 8, 240
	// again is the share of a step within which a level counts as back at an earlier one. If a step is smaller than
	// this share of the largest one, there are no turns.
	again = 0.2
)

// A turn is one of several changes of a level: a step, or a spell.
type turn struct {
	shape Shape
	fit   fit
}

// Turns are several changes that explain a track together, with their reduction of the sum of squares and their
// number of parameters.
type turns struct {
	list             []turn
	gain, parameters float64
}

// findTurns finds the times between which a level is constant, if it changes more than once: those that explain
// most after they paid for their parameters, by dynamic programming (Jackson and others, IEEE Signal Processing
// Letters 12, 2005). Three steps in a row in the same direction are a slope, or fewer steps.
func (t *track) findTurns() (found turns) {
	c := newCuts(t)
	n := c.useful()
	noise := c.noise(c.bounds(n))
	for fewer := c.best(n, noise); fewer < n; fewer = c.best(n, noise) {
		n, noise = fewer, c.noise(c.bounds(fewer))
	}
	for ; n > 1 && found.list == nil; n-- {
		found.list = c.turns(c.bounds(n), noise)
	}
	if len(found.list) < 2 {
		return turns{}
	}
	for range 3 { // refit each with the others removed
		for k, x := range found.list {
			if f := t.withoutAll(found.list, k).fit(x.shape); f.ok {
				found.list[k].fit = f
			}
		}
	}
	found.gain = t.squares() - t.withoutAll(found.list, -1).squares()
	found.parameters = order.SumRows(found.list, func(x *turn) float64 { return parameters[x.shape] })
	return found
}

// withoutAll returns a track from which all turns are subtracted, except the one at index but.
func (t *track) withoutAll(list []turn, but int) *track {
	left := &track{weight: t.weight, from: t.from, to: t.to, noise: t.noise, tau: t.tau, worth: t.worth, list: slices.Clone(t.list)}
	for i := range left.list {
		o := &left.list[i]
		for k, x := range list {
			if k != but {
				o.Value -= x.fit.size * t.basis(x.shape, o, x.fit.at, x.fit.end)
			}
		}
	}
	left.center()
	left.series = []series{left.newSeries()}
	return left
}

// squares returns the sum of the squares of the values.
func (t *track) squares() float64 {
	sum := 0.0
	for i, v := range t.values {
		sum += t.weight[i] * v * v
	}
	return sum
}

// courses describes the turns of a track. The level of each includes the turns before it.
func (t *track) courses(tracks float64) []Course {
	list := t.turns.list
	out := make([]Course, len(list))
	for k, x := range list {
		alone := t.withoutAll(list, k)
		alone.fits[x.shape] = alone.try(x.shape, x.fit.at, x.fit.end)
		c := alone.course(x.shape, tracks)
		for j, o := range list {
			if j != k {
				c.Level += o.fit.size * t.basis(o.shape, &Observation{From: x.fit.at, To: x.fit.at}, o.fit.at, o.fit.end)
			}
		}
		out[k] = c
	}
	return out
}

// Cuts are the best times between which a level is constant, for each number of them. They lie between pieces,
// which have the same number of observations.
type cuts struct {
	t              *track
	first          []int     // first observation of each piece, and the number of observations
	weight, values []float64 // sums over the first 0, 1, 2, ... pieces
	gain           [maxTurns + 1]float64
	last           [maxTurns + 1][]int16 // by the number of cuts, and the piece that the level ends before: the last cut
}

func newCuts(t *track) *cuts {
	c := &cuts{t: t, weight: []float64{0}, values: []float64{0}}
	size := (len(t.list) + maxPieces - 1) / maxPieces
	w, v := 0.0, 0.0
	for i := range t.list {
		if i%size == 0 && i > 0 {
			c.weight, c.values = append(c.weight, w), append(c.values, v)
		}
		if i%size == 0 {
			c.first = append(c.first, i)
		}
		w, v = w+t.weight[i], v+t.weight[i]*t.values[i]
	}
	c.first, c.weight, c.values = append(c.first, len(t.list)), append(c.weight, w), append(c.values, v)
	n := len(c.first) - 1
	before := make([]float64, n+1) // what the best cuts explain of the first j pieces
	for j := 1; j <= n; j++ {
		before[j] = c.explained(0, j)
	}
	for m := 1; m <= maxTurns; m++ {
		now := make([]float64, n+1)
		c.last[m] = make([]int16, n+1)
		for j := range now {
			now[j] = math.Inf(-1)
			for i := 1; i < j; i++ {
				if x := before[i] + c.explained(i, j); x > now[j] && c.lasts(i, j) && (m > 1 || c.lasts(0, i)) {
					now[j], c.last[m][j] = x, int16(i)
				}
			}
		}
		c.gain[m], before = now[n], now
	}
	return c
}

// explained returns how much the mean of the pieces [i, j) reduces the sum of squares.
func (c *cuts) explained(i, j int) float64 {
	v := c.values[j] - c.values[i]
	return v * v / (c.weight[j] - c.weight[i])
}

// lasts reports whether the pieces [i, j) have enough observations, and take enough time: as much as a spell,
// or at the ends of the series as the side of a step.
func (c *cuts) lasts(i, j int) bool {
	n, list := len(c.first)-1, c.t.list
	from, to := c.first[i], c.first[j]
	if i == 0 || j == n {
		return float64(to-from) >= max(beside, edge*float64(len(list)))
	}
	return float64(to-from) >= max(5, lasting*float64(len(list))) && list[to-1].middle()-list[from].middle() >= lasting*(c.t.to-c.t.from)
}

// useful returns the largest number of cuts for which there are valid ones.
func (c *cuts) useful() int {
	for m := maxTurns; m > 0; m-- {
		if !math.IsInf(c.gain[m], -1) {
			return m
		}
	}
	return 0
}

// best returns the number of cuts, up to most, that explains most after they paid for their parameters.
func (c *cuts) best(most int, noise noise) (best int) {
	score := 0.0
	for m := 1; m <= most; m++ {
		if x := c.gain[m]/(noise.variance*noise.tau) - float64(m)*parameters[Stepped]*math.Log(noise.worth); x > score {
			best, score = m, x
		}
	}
	return best
}

// bounds returns the pieces before which the best m cuts lie, and the end.
func (c *cuts) bounds(m int) []int {
	list := []int{len(c.first) - 1}
	for ; m > 0; m-- {
		list = append(list, int(c.last[m][list[len(list)-1]]))
	}
	slices.Reverse(list)
	return list
}

// A noise is the variance of an observation of weight 1, the number of neighbors that are worth one independent
// observation, and the number of independent observations.
type noise struct{ variance, tau, worth float64 }

// noise returns the noise around the levels between cuts.
func (c *cuts) noise(bounds []int) noise {
	t, from, all, n := c.t, 0, 0.0, 0.0
	left := make([]float64, 0, len(t.list))
	for _, to := range bounds {
		level := (c.values[to] - c.values[from]) / (c.weight[to] - c.weight[from])
		for i := c.first[from]; i < c.first[to]; i++ {
			x := t.values[i] - level
			all, n = all+t.weight[i]*x*x, n+t.weight[i]
			left = append(left, x*math.Sqrt(t.weight[i]))
		}
		from = to
	}
	tau := correlationTime(left, len(bounds))
	return noise{max(all, 1e-300) / max(1, n-1-parameters[Stepped]*float64(len(bounds)-1)), tau, n / tau}
}

// turns makes steps of cuts, and spells of those after which an earlier level returns. It returns nil if they
// are a slope, or if one is so small that it may only be the misfit of a larger one.
func (c *cuts) turns(bounds []int, noise noise) (list []turn) {
	const deviations = 3
	type level struct{ mean, variance float64 }
	levels := make([]level, len(bounds))
	from := 0
	for k, to := range bounds {
		w := c.weight[to] - c.weight[from]
		levels[k], from = level{(c.values[to] - c.values[from]) / w, noise.variance * noise.tau / w}, to
	}
	var open []int     // indexes of turns without an end so far
	var before []level // the level before each of them
	steps := 0         // consecutive ones in one direction
	for k := 1; k < len(bounds); k++ {
		was, is := levels[k-1], levels[k]
		if steps++; k > 1 && (is.mean > was.mean) != (was.mean > levels[k-2].mean) {
			steps = 1
		}
		if steps > 2 {
			return nil
		}
		at := c.time(bounds[k-1])
		over := -1
		for j := len(open) - 1; j >= 0 && over < 0; j-- {
			was := before[j]
			if math.Abs(is.mean-was.mean) <= max(again*math.Abs(list[open[j]].fit.size), deviations*math.Sqrt(is.variance+was.variance)) {
				over = j
			}
		}
		if over < 0 {
			open, before = append(open, len(list)), append(before, was)
			list = append(list, turn{Stepped, fit{at: at, end: math.Inf(1), size: is.mean - was.mean, ok: true}})
			continue
		}
		for _, j := range open[over:] {
			list[j].shape, list[j].fit.end = Spell, at
		}
		open, before = open[:over], before[:over]
	}
	sizes := order.EachRow(list, func(x *turn) float64 { return math.Abs(x.fit.size) })
	if len(sizes) > 0 && slices.Min(sizes) < again*slices.Max(sizes) {
		return nil
	}
	return list
}

// time returns when a piece begins: midway between the observations before and after that.
func (c *cuts) time(piece int) float64 {
	i := c.first[piece]
	return (c.t.list[i-1].middle() + c.t.list[i].middle()) / 2
}
