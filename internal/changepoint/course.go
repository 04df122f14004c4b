package changepoint

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/internal/parallel"
)

// An Observation is what was measured from From to To, on average: how long a token took of
// a request that was decoded meanwhile. An instant has From == To. Times have any unit, and
// any origin that is not far away, as they are float64.
type Observation struct {
	From, To float64
	Value    float64
	// Weight is how much it tells, in relation to others; it is positive.
	Weight float64
}

func (o *Observation) middle() float64 { return o.From + (o.To-o.From)/2 }

// A Shape is how a level goes on over time.
type Shape uint8

const (
	Steady   Shape = iota // it stays what it is
	Stepped               // it is another one from some time on
	Spell                 // it is another one for some time
	Ramped                // it rises or falls by as much in every unit of time
	Bent                  // it is steady, and then rises or falls by as much in every unit of time
	Settling              // it begins elsewhere, and comes closer and closer to what it stays: a warm-up
	Waving                // it goes up and down, as days do
	Sloped                // it is steady, then rises or falls by as much in every unit of time, and is steady again
	shapes
)

// parameters are how many numbers a shape has beside the level: it has to explain that much
// more than a simpler one (Schwarz, Ann. Statist. 6, 1978).
var parameters = [shapes]float64{Stepped: 2, Spell: 3, Ramped: 1, Bent: 2, Settling: 2, Waving: 3, Sloped: 3}

// A Course is how the level of some observations went on.
type Course struct {
	Shape Shape
	// At is when Stepped, Spell, Bent, and Sloped begin, between First and Last with a confidence of
	// 95 %; End is when Spell is over, and when Sloped has come to its other level. Of Settling At is how long it takes until a third is
	// left, of Waving the length of a wave.
	At, First, Last, End float64
	// Size is by how much the level is another one: of Ramped and Bent in a unit of time, of
	// Settling at the beginning, of Waving the amplitude.
	Size float64
	// Level is what it is at the beginning; of Settling at the end, of Waving on average.
	Level float64
	// P bounds the probability that a steady level looks like that.
	P float64

	from float64 // of the first observation
}

// Of returns by how much the level differs from Level, on average from from to to.
func (c *Course) Of(from, to float64) float64 {
	t := track{from: c.from}
	return c.Size * t.basis(c.Shape, &Observation{From: from, To: to}, c.At, c.End)
}

// Courses tells how the levels of several series went on that have a cause in common, if any:
// servers that do the same work. One shape explains all that are not steady, and the one that
// does best after it paid for its parameters (BIC). Together is what all did alike, at one
// time and by as much; if it is Steady, each is what every one did on its own: steps and spells in turn, where they
// explain more than one shape.
//
// The noise is what the best shape leaves; neighbors resemble each other (see serial.go), and
// single observations that are far off count as being less far off.
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

// Date returns when the level of observations changed that is known to have changed once, with
// bounds of 95 %; ok is false if there are too few.
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
	values []float64     // without the mean of the series
	weight []float64     // over the mean; of a family, one over the variance of what is independent
	series []series
	// noise is the variance of an observation of weight 1, and tau how many neighbors are worth
	// one that is independent.
	noise, tau float64
	worth      float64 // independent observations
	from, to   float64
	fits       [shapes]fit
	best       Shape
	turns      turns // that explain more than the best shape does
}

// A fit is the best that a shape does.
type fit struct {
	at, end float64 // or what other times the shape has
	gain    float64 // what it takes off the sum of squares
	size    float64
	ok      bool
}

const (
	fewestObserved = 12
	// maxObserved is into how many a series is thinned: neighbors are taken together.
	maxObserved = 1200
	// far is how many standard deviations an observation is off at most.
	far = 3.5
)

// newTrack prepares a series, and fits all shapes; nil if there are too few observations. What
// is far off is known only beside a shape, so that it is pulled closer twice: to the
// observations around it, and then to the shape that fits best.
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

// fittedAround fits all shapes to a series, once what is far from what it should be is closer to that: see clipped.
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
		t.weight[i] = o.Weight * sum / squares // so that they add up to what they are worth
	}
	t.center()
	t.series = []series{t.newSeries()}
	t.measure()
	return t
}

// localMedians returns those of the observations around each: a quarter of them may be off on
// either side without moving the median by much.
func localMedians(list []Observation) []float64 {
	const window = 25
	local := make([]float64, len(list))
	begin := func(i int) int { return min(max(0, i-window/2), max(0, len(list)-window)) } // of those that are near
	parallel.Rows(len(list), window*8, func(from, to int) {
		first := begin(from)
		near := order.EachRow(list[first:min(len(list), first+window)], func(o *Observation) float64 { return o.Value }) // in order
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

// levels returns the values of what explains a track best, for the observations.
func (t *track) levels(list []Observation) []float64 {
	of := t.chosen()
	level := t.withoutAll(of, -1).mean()
	return order.EachRow(list, func(o *Observation) float64 {
		return level + order.SumRows(of, func(x *turn) float64 { return x.fit.size * t.basis(x.shape, o, x.fit.at, x.fit.end) })
	})
}

// chosen is what explains a track best: changes in turn, or one shape.
func (t *track) chosen() []turn {
	if t.turns.list != nil {
		return t.turns.list
	}
	return []turn{{t.best, t.fits[t.best]}}
}

// mean returns that of the observations.
func (t *track) mean() float64 {
	mean, sum := 0.0, 0.0
	for i, o := range t.list {
		mean, sum = mean+t.weight[i]*o.Value, sum+t.weight[i]
	}
	return mean / sum
}

// clipped returns observations of which those are pulled closer that are far from what they should be.
func clipped(list []Observation, levels []float64, least, most float64) []Observation {
	off, mean := memory.Make[float64](len(list)), 0.0
	defer memory.Free(off)
	for i := range list {
		off[i] = math.Abs(list[i].Value - levels[i])
		mean += off[i] / float64(len(off))
	}
	// Of a normal distribution the median is that part of a standard deviation, and so is the
	// mean. Where the mean is far larger, many are off, and not few by accident: values of two
	// kinds.
	limit := far * max(1.4826*order.Nth(off, len(off)/2), 1.2533*mean/2)
	out := memory.Make[Observation](len(list))
	for i, o := range list {
		// What is between levels of the course may be there because it changes elsewhere.
		o.Value = min(max(o.Value, min(levels[i], least)-limit), max(levels[i], most)+limit)
		out[i] = o
	}
	return out
}

// thin takes neighbors together until there are few enough, in a list of its own.
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

// center takes the mean out of the values.
func (t *track) center() {
	t.from, t.to = math.Inf(1), math.Inf(-1)
	mean := t.mean()
	t.values = make([]float64, len(t.list))
	for i, o := range t.list {
		t.from, t.to = min(t.from, o.From), max(t.to, o.To)
		t.values[i] = o.Value - mean
	}
}

// measure fits all shapes, and takes as noise what the best one leaves, or several changes in turn.
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

// residuals returns the values, each by its weight.
func (t *track) residuals() []float64 {
	list := make([]float64, len(t.values))
	for i, v := range t.values {
		list[i] = v * math.Sqrt(t.weight[i])
	}
	return list
}

// score returns how much better than a steady level a shape explains a track, once it has paid for
// its parameters.
func (t *track) score(s Shape) float64 {
	if !t.fits[s].ok {
		return math.Inf(-1)
	}
	return t.explained(s) - parameters[s]*math.Log(t.worth)
}

// explained returns twice the logarithm of the likelihood ratio.
func (t *track) explained(s Shape) float64 { return t.fits[s].gain / (t.noise * t.tau) }

// course describes a track by a shape that was looked for in as many.
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

// level returns the mean of what a shape leaves.
func (t *track) level(s Shape) float64 { return t.withoutAll([]turn{{s, t.fits[s]}}, -1).mean() }

// chance bounds the probability that a steady level seems to have a shape to that degree,
// somewhere. It is that of a supremum for shapes that were looked for at all places, and of
// as many independent ones as there may be for others.
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

// A family is several tracks, and all of them as one.
type family struct {
	tracks []*track
	all    *track
}

// newFamily puts tracks together, such that what is noisier counts less.
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

// choose returns the shape that explains most, and whether all have it in common; Steady if
// none explains more than chance does: any other one tells that, and then the best may be one for
// which too few observations are independent to tell it alone.
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

// inTurn returns how much better than steady levels the changes in turn explain the tracks that have them, beside the best step or spell of
// the others; 0 if none has them.
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

// abrupt is the step or the spell that explains more.
func (t *track) abrupt() Shape {
	if t.score(Spell) > t.score(Stepped) {
		return Spell
	}
	return Stepped
}

// abruptly describes a track by that, if it explains anything.
func (t *track) abruptly(tracks float64) []Course {
	s := t.abrupt()
	if t.score(s) <= 0 {
		return nil
	}
	return []Course{t.course(s, tracks)}
}

// surely is the probability of error with which a level is not steady.
const surely = 0.001

// least bounds the probability that a steady level seems to be another one: chance pays for all shapes.
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
