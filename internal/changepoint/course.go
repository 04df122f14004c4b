package changepoint

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
)

// An Observation is a measurement averaged over From to To, such as the time per token of a request that was
// decoded meanwhile. An instant has From == To. Times have any unit; their origin must be near, as they are
// float64.
type Observation struct {
	From, To float64
	Value    float64
	// Weight is relative to that of other observations; it is positive.
	Weight float64
}

func (o *Observation) middle() float64 { return o.From + (o.To-o.From)/2 }

// A Shape is how a level develops over time.
type Shape uint8

const (
	Steady   Shape = iota // constant
	Stepped               // changes once
	Spell                 // changes, and changes back
	Ramped                // rises or falls linearly
	Bent                  // constant, then rises or falls linearly
	Settling              // approaches its final level exponentially: a warm-up
	Waving                // goes up and down, as days do
	Sloped                // constant, then rises or falls linearly, and is constant again
	shapes
)

// parameters is the number of parameters of a shape besides the level. Each one must pay for itself in
// explanation (Schwarz, Ann. Statist. 6, 1978).
var parameters = [shapes]float64{Stepped: 2, Spell: 3, Ramped: 1, Bent: 2, Settling: 2, Waving: 3, Sloped: 3}

// A Course is how the level of some observations developed.
type Course struct {
	Shape Shape
	// At is when Stepped, Spell, Bent, and Sloped begin, between First and Last with a confidence of 95 %. For
	// Settling, At is the time constant, after which a third of the distance is left; for Waving, the length of a
	// wave. End is when Spell is over, and when Sloped reaches its new level.
	At, First, Last, End float64
	// Size is how much the level changes: per unit of time for Ramped and Bent, at the beginning for Settling; for
	// Waving it is the amplitude.
	Size float64
	// Level is the level at the beginning; at the end for Settling, on average for Waving.
	Level float64
	// P bounds the probability that a steady level looks like this course by chance.
	P float64

	from float64 // start of the first observation
}

// Of returns how far the level is from Level, on average over [from, to].
func (c *Course) Of(from, to float64) float64 {
	t := track{from: c.from}
	return c.Size * t.basis(c.Shape, &Observation{From: from, To: to}, c.At, c.End)
}

// Courses finds how the levels of several series developed, which may have a common cause, as those of servers
// that do the same work. All series that are not steady have one shape: the one that explains most after it paid
// for its parameters (BIC). together is the change of all series at the same time and by the same amount. If it
// is Steady, each has the changes of every series on its own: several steps and spells, where these explain more
// than one shape does.
//
// The noise is the residual of the best shape. Neighbors resemble each other (see serial.go), and outliers are
// pulled closer.
func Courses(series [][]Observation) (together Course, each [][]Course) {
	each = make([][]Course, len(series))
	tracks := make([]*track, len(series))
	parallel.Each(len(series), func(i int) { tracks[i] = newTrack(series[i]) })
	var all []*track
	var of []int
	for i, t := range tracks {
		if t != nil {
			all, of = append(all, t), append(of, i)
		}
	}
	if together.P = 1; len(all) == 0 {
		return together, each
	}
	f := newFamily(all)
	shape, joint, score := f.choose()
	if f.inTurn() > score {
		for k, t := range all {
			if each[of[k]] = t.courses(float64(len(all))); t.turns.list == nil {
				each[of[k]] = t.abruptly(float64(len(all)))
			}
		}
		return together, each
	}
	if shape == Steady {
		return together, each
	}
	if joint {
		return f.together(shape), each
	}
	for k, t := range all {
		if t.score(shape) > 0 {
			each[of[k]] = []Course{t.course(shape, float64(len(all)))}
		}
	}
	return together, each
}

// Date returns when the level changed, with 95 % bounds, in observations that are known to have one change. ok
// is false if there are too few.
func Date(list []Observation) (at, first, last float64, ok bool) {
	t := newTrack(list)
	if t == nil || !t.fits[Stepped].ok {
		return 0, 0, 0, false
	}
	c := t.course(Stepped, 1)
	return c.At, c.First, c.Last, true
}

// A track is the observations of one series, or of several that differ by constants.
type track struct {
	list   []Observation // by their middle; thinned
	values []float64     // minus the mean of their series
	weight []float64     // relative to the mean; in a family, divided by the noise variance
	series []series
	// noise is the variance of an observation of weight 1, and tau the number of neighbors that are worth one
	// independent observation.
	noise, tau float64
	worth      float64 // number of independent observations
	from, to   float64
	fits       [shapes]fit
	best       Shape
	turns      turns // set if they explain more than the best shape
}

// A fit is the best fit of a shape.
type fit struct {
	at, end float64 // or the shape's other parameters: see Course
	gain    float64 // reduction of the sum of squares
	size    float64
	ok      bool
}

const (
	fewestObserved = 12
	// maxObserved is the length to which a series is thinned, by averaging neighbors.
	maxObserved = 1200
	// far is the number of standard deviations to which outliers are pulled.
	far = 3.5
)

// newTrack prepares a series and fits all shapes; nil if there are too few observations. Outliers can only be
// told relative to a shape, so they are pulled closer twice: first to the local medians, and then to the best
// fit.
func newTrack(list []Observation) *track {
	if len(list) < fewestObserved {
		return nil
	}
	own := memory.Make[Observation](len(list))
	defer memory.Free(own)
	copy(own, list)
	slices.SortStableFunc(own, func(a, b Observation) int { return cmp.Compare(a.middle(), b.middle()) })
	first := fittedAround(own, localMedians(own), math.Inf(1), math.Inf(-1))
	levels := first.levels(own)
	return fittedAround(own, levels, slices.Min(levels), slices.Max(levels))
}

// fittedAround fits all shapes to a series after pulling its outliers closer to levels: see clipped.
func fittedAround(list []Observation, levels []float64, least, most float64) *track {
	pulled := clipped(list, levels, least, most)
	defer memory.Free(pulled)
	return fitted(pulled)
}

// fitted fits all shapes to a series.
func fitted(list []Observation) *track {
	t := &track{list: thin(list), tau: 1, noise: 1}
	t.weight = make([]float64, len(t.list))
	sum, squares := 0.0, 0.0
	for _, o := range t.list {
		sum, squares = sum+o.Weight, squares+o.Weight*o.Weight
	}
	for i, o := range t.list {
		t.weight[i] = o.Weight * sum / squares // so that they add up to the effective number of observations
	}
	t.center()
	t.series = []series{t.newSeries()}
	t.measure()
	return t
}

// localMedians returns the median of the observations around each one. A quarter of them may be outliers on
// either side without moving it much.
func localMedians(list []Observation) []float64 {
	const window = 25
	local := make([]float64, len(list))
	begin := func(i int) int { return min(max(0, i-window/2), max(0, len(list)-window)) } // first index of the neighborhood
	parallel.Rows(len(list), window*8, func(from, to int) {
		first := begin(from)
		near := order.EachRow(list[first:min(len(list), first+window)], func(o *Observation) float64 { return o.Value }) // sorted
		slices.Sort(near)
		for i := from; i < to; i++ {
			if begin(i) > first {
				out, _ := slices.BinarySearch(near, list[first].Value)
				near = slices.Delete(near, out, out+1)
				in, _ := slices.BinarySearch(near, list[first+window].Value)
				near = slices.Insert(near, in, list[first+window].Value)
				first++
			}
			local[i] = near[len(near)/2]
		}
	})
	return local
}

// levels returns the best explanation of a track at the observations.
func (t *track) levels(list []Observation) []float64 {
	of := t.chosen()
	level := t.withoutAll(of, -1).mean()
	return order.EachRow(list, func(o *Observation) float64 {
		return level + order.SumRows(of, func(x *turn) float64 { return x.fit.size * t.basis(x.shape, o, x.fit.at, x.fit.end) })
	})
}

// chosen returns the best explanation of a track: changes in turn, or one shape.
func (t *track) chosen() []turn {
	if t.turns.list != nil {
		return t.turns.list
	}
	return []turn{{t.best, t.fits[t.best]}}
}

// mean returns the weighted mean of the observations.
func (t *track) mean() float64 {
	mean, sum := 0.0, 0.0
	for i, o := range t.list {
		mean, sum = mean+t.weight[i]*o.Value, sum+t.weight[i]
	}
	return mean / sum
}

// clipped returns the observations with outliers pulled closer to levels.
func clipped(list []Observation, levels []float64, least, most float64) []Observation {
	off, mean := memory.Make[float64](len(list)), 0.0
	defer memory.Free(off)
	for i := range list {
		off[i] = math.Abs(list[i].Value - levels[i])
		mean += off[i] / float64(len(off))
	}
	// These factors turn the median and the mean of absolute deviations into a standard deviation, if values are
	// normal. A mean that is far larger shows many outliers, and not by accident: there are two kinds of values.
	limit := far * max(1.4826*order.Nth(off, len(off)/2), 1.2533*mean/2)
	out := memory.Make[Observation](len(list))
	for i, o := range list {
		// A value between least and most, the extreme levels of the course, may be right: perhaps the course
		// changes at another time.
		o.Value = min(max(o.Value, min(levels[i], least)-limit), max(levels[i], most)+limit)
		out[i] = o
	}
	return out
}

// thin averages neighbors until there are few enough, and returns a new list.
func thin(list []Observation) []Observation {
	size := (len(list) + maxObserved - 1) / maxObserved
	if size <= 1 {
		return slices.Clone(list)
	}
	var out []Observation
	for some := range slices.Chunk(list, size) {
		var sum Observation
		for _, o := range some {
			sum.Weight += o.Weight
			sum.From += o.Weight * o.From
			sum.To += o.Weight * o.To
			sum.Value += o.Weight * o.Value
		}
		out = append(out, Observation{From: sum.From / sum.Weight, To: sum.To / sum.Weight, Value: sum.Value / sum.Weight, Weight: sum.Weight})
	}
	return out
}

// center subtracts the mean from the values.
func (t *track) center() {
	t.from, t.to = math.Inf(1), math.Inf(-1)
	mean := t.mean()
	t.values = make([]float64, len(t.list))
	for i, o := range t.list {
		t.from, t.to = min(t.from, o.From), max(t.to, o.To)
		t.values[i] = o.Value - mean
	}
}

// measure fits all shapes and changes in turn. The noise is the residual of the best of them.
func (t *track) measure() {
	all, n := t.squares(), order.Sum(t.weight, func(w float64) float64 { return w })
	most, paid := 0.0, 0.0
	for s := Stepped; s < shapes; s++ {
		t.fits[s] = t.fit(s)
		if gain := t.fits[s].gain - parameters[s]*all/n; t.fits[s].ok && gain > most {
			t.best, most, paid = s, gain, parameters[s]
		}
	}
	if several := t.findTurns(); several.gain-several.parameters*all/n > most {
		t.turns, paid = several, several.parameters
	}
	left := t.withoutAll(t.chosen(), -1)
	t.noise = max(left.squares(), 1e-12*all, 1e-300) / max(1, n-1-paid)
	t.tau = correlationTime(left.residuals(), 1+int(paid))
	t.worth = n / t.tau
}

// residuals returns the values, scaled by the root of their weights.
func (t *track) residuals() []float64 {
	list := make([]float64, len(t.values))
	for i, v := range t.values {
		list[i] = v * math.Sqrt(t.weight[i])
	}
	return list
}

// score returns how much better than a steady level a shape explains a track, after it paid for its parameters.
func (t *track) score(s Shape) float64 {
	if !t.fits[s].ok {
		return math.Inf(-1)
	}
	return t.explained(s) - parameters[s]*math.Log(t.worth)
}

// explained returns twice the logarithm of the likelihood ratio.
func (t *track) explained(s Shape) float64 { return t.fits[s].gain / (t.noise * t.tau) }

// course describes a track by a shape that was searched for in this number of tracks.
func (t *track) course(s Shape, tracks float64) Course {
	f := &t.fits[s]
	c := Course{Shape: s, from: t.from, At: f.at, First: f.at, Last: f.at, End: f.end, Size: f.size}
	c.P = min(1, tracks*t.least())
	c.Level = t.level(s)
	if s == Stepped || s == Spell || s == Bent || s == Sloped {
		c.At, c.First, c.Last = t.bounds(s)
	}
	return c
}

// level returns the mean after a shape is removed.
func (t *track) level(s Shape) float64 { return t.withoutAll([]turn{{s, t.fits[s]}}, -1).mean() }

// chance bounds the probability that a steady level seems to have a shape to that degree, somewhere. For shapes
// that were searched for everywhere, that is the probability of a supremum; for the others, that of the number
// of independent tries.
func (t *track) chance(s Shape) float64 {
	z := normal(math.Sqrt(max(0, t.explained(s))), max(1, t.worth-1-parameters[s]))
	p := twoSided(z)
	switch s {
	case Stepped:
		p = supremum(z, edge)
	case Spell, Sloped:
		p = min(1, z*z*supremum(z, edge))
	case Bent:
		p = supremum(z, 0.2) // neighboring places explain about the same
	case Settling, Waving:
		p *= scales
	}
	return min(1, p*float64(shapes-1))
}

// A family is several tracks, and all of them combined.
type family struct {
	tracks []*track
	all    *track
}

// newFamily combines tracks, weighted by the inverse of their noise.
func newFamily(tracks []*track) *family {
	f := &family{tracks: tracks, all: tracks[0]}
	if len(tracks) == 1 {
		return f
	}
	type member struct {
		Observation
		value, weight float64
	}
	var list []member
	all := &track{noise: 1, tau: 1, from: math.Inf(1), to: math.Inf(-1)}
	for _, t := range tracks {
		x := t.series[0]
		x.scale = 1 / (t.noise * t.tau)
		all.series, all.worth = append(all.series, x), all.worth+t.worth
		all.from, all.to = min(all.from, t.from), max(all.to, t.to)
		for i, o := range t.list {
			list = append(list, member{o, t.values[i], t.weight[i] * x.scale})
		}
	}
	slices.SortStableFunc(list, func(a, b member) int { return cmp.Compare(a.middle(), b.middle()) })
	for _, m := range list {
		all.list, all.values, all.weight = append(all.list, m.Observation), append(all.values, m.value), append(all.weight, m.weight)
	}
	for s := Stepped; s < shapes; s++ {
		all.fits[s] = all.fit(s)
	}
	f.all = all
	return f
}

// choose returns the shape that explains most, whether all tracks have it in common, and its score; Steady if
// no shape is significant. Any shape may supply the significance: the best one may have too few independent
// observations to be significant itself.
func (f *family) choose() (best Shape, joint bool, most float64) {
	together := f.all.least() <= surely
	for s := Stepped; s < shapes; s++ {
		if f.all.fits[s].ok {
			if score := f.all.score(s); score > most && together {
				best, joint, most = s, true, score
			}
		}
		apart, likely := 0.0, false
		for _, t := range f.tracks {
			if t.fits[s].ok {
				apart += max(0, t.score(s))
				likely = likely || t.score(s) > 0 && float64(len(f.tracks))*t.least() <= surely
			}
		}
		if likely && apart > most {
			best, joint, most = s, false, apart
		}
	}
	return best, joint, most
}

// inTurn returns how much better than steady levels the changes in turn explain the tracks that have them, plus
// the best step or spell of the others; 0 if no track has changes in turn.
func (f *family) inTurn() (score float64) {
	several := false
	for _, t := range f.tracks {
		if t.turns.list != nil {
			several = true
			score += t.turns.gain/(t.noise*t.tau) - t.turns.parameters*math.Log(t.worth)
		} else {
			score += max(0, t.score(t.abrupt()))
		}
	}
	if !several {
		return 0
	}
	return score
}

// abrupt returns Stepped or Spell, whichever explains more.
func (t *track) abrupt() Shape {
	if t.score(Spell) > t.score(Stepped) {
		return Spell
	}
	return Stepped
}

// abruptly describes a track by its step or spell, if that explains anything.
func (t *track) abruptly(tracks float64) []Course {
	s := t.abrupt()
	if t.score(s) <= 0 {
		return nil
	}
	return []Course{t.course(s, tracks)}
}

// surely is the significance level at which a level is not steady.
const surely = 0.001

// least bounds the probability that a steady level seems to have any shape. chance already accounts for the
// number of shapes.
func (t *track) least() float64 {
	least := 1.0
	for s := Stepped; s < shapes; s++ {
		if t.fits[s].ok {
			least = min(least, t.chance(s))
		}
	}
	return least
}

// together describes what all tracks did alike.
func (f *family) together(s Shape) Course { return f.all.course(s, 1) }
