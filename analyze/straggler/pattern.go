package straggler

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
)

// A Trait is something about sync points that lateness may come with.
type Trait struct {
	// Phrase says which sync points have a value of least or more: "with 12 requests or
	// more in the batch".
	Phrase func(least float64) string
}

// A Pattern says when an occasional straggler is late.
type Pattern struct {
	// Trait is what its lateness comes with; nil is none. It is late in the part With
	// of the sync points at which the trait is Least or more, and in Without of the others.
	Trait         *Trait
	Least         float64
	With, Without float64
	// Period is how long it is from one time to the next, in ns, or in sync points
	// if EverySteps; 0 is no period.
	Period     float64
	EverySteps bool
	// Burst is how many late sync points follow each other, on average; 0 where that
	// may be chance.
	Burst float64
}

// String says it in words.
func (p *Pattern) String() string {
	var period, burst string
	switch {
	case p.Trait != nil:
		return fmt.Sprintf("mostly %s (%s %% of these, %s %% of the others)", p.Trait.Phrase(p.Least), words.InPercent(p.With), words.InPercent(p.Without))
	case p.EverySteps:
		period = fmt.Sprintf("every %.0f steps", p.Period)
	case p.Period > 0:
		period = "every " + words.Nearly(int64(p.Period))
	}
	if p.Burst > 0 {
		burst = fmt.Sprintf("in bursts of %.0f steps on average", p.Burst)
	}
	return cmp.Or(words.JoinNonEmpty(", ", period, burst), "at random")
}

// pattern looks for when a rank is late: with a trait of the sync points, periodically,
// in bursts.
func (g *SyncSamples) pattern(l lateSteps) Pattern {
	const minSteps = 3 // in a period: every rank is regular by the step
	p := g.trait(&l)
	if p.Trait != nil {
		return p
	}
	starts := l.starts()
	p.Burst = l.burst(len(starts))
	times, indexes := make([]float64, len(starts)), make([]float64, len(starts))
	for i, s := range starts {
		times[i], indexes[i] = float64(g.SyncPoints[l.at[s]].At-g.SyncPoints[l.at[0]].At), float64(s)
	}
	byTime, timeR := period(times, minSteps*float64(g.SyncPoints[l.at[len(l.at)-1]].At-g.SyncPoints[l.at[0]].At)/float64(len(l.at)))
	bySteps, stepsR := period(indexes, minSteps)
	switch {
	case byTime > 0 && timeR >= stepsR:
		p.Period = byTime
	case bySteps > 0:
		p.Period, p.EverySteps = bySteps, true
	}
	return p
}

// starts returns where lateness begins: at a late sync point after one that is not.
func (l *lateSteps) starts() []int {
	var starts []int
	for i, late := range l.late {
		if late && (i == 0 || !l.late[i-1]) {
			starts = append(starts, i)
		}
	}
	return starts
}

func (l *lateSteps) count() int {
	return order.Count(l.late, func(late bool) bool { return late })
}

// burst returns how many late sync points follow each other on average, if that is more
// than chance and half as much again: the number of runs is compared with that of sync
// points in random order (Wald and Wolfowitz, 1940).
func (l *lateSteps) burst(runs int) float64 {
	const deviations, more = 4, 1.5
	n, late := float64(len(l.late)), float64(l.count())
	if late < 2 || late == n {
		return 0
	}
	expected := late * (n - late + 1) / n
	variance := late * (late - 1) * (n - late) * (n - late + 1) / (n * n * (n - 1))
	if expected-float64(runs) < deviations*math.Sqrt(variance) || expected < more*float64(runs) {
		return 0
	}
	return late / float64(runs)
}

// period returns the period of least or more with which events come, and how regular they
// are: the mean of their unit vectors on a clock of that period, from 0 to 1 (Rayleigh's
// test). It is 0 if they are not regular, or chance may have found one period among all
// that were tried.
func period(events []float64, least float64) (length, regular float64) {
	const fewest, most, maxTried, level, enough, nearly = 10, 500, 10_000, 1e-4, 0.5, 0.9
	events = events[:min(most, len(events))]
	n := len(events)
	if n < fewest {
		return 0, 0
	}
	span := events[n-1] - events[0]
	least = max(least, span/float64(2*n), 4*span/maxTried)
	// Rates that differ by a step turn a clock by a quarter over the whole span.
	step := 1 / (4 * span)
	first := 4 / span
	tried := int((1/least - first) / step)
	best, regular := 0, 0.0
	fits := make([]float64, max(0, tried))
	for i := range fits {
		if fits[i] = coherence(events, first+float64(i)*step); fits[i] > regular {
			best, regular = i, fits[i]
		}
	}
	if regular < enough || float64(tried)*math.Exp(-float64(n)*regular*regular) > level {
		return 0, 0
	}
	// A clock of half the period, or a third, fits as well: the longest one is meant.
	best = slices.IndexFunc(fits[:best+1], func(r float64) bool { return r >= nearly*regular })
	rate := first + float64(best)*step
	for fine := -2 * step; fine <= 2*step; fine += step / 16 {
		at := first + float64(best)*step + fine
		if r := coherence(events, at); r > fits[best] {
			rate, fits[best] = at, r
		}
	}
	return 1 / rate, fits[best]
}

// coherence returns the mean of the unit vectors of events on a clock of a rate.
func coherence(events []float64, rate float64) float64 {
	x, y := 0.0, 0.0
	for _, e := range events {
		sin, cos := math.Sincos(2 * math.Pi * rate * e)
		x, y = x+cos, y+sin
	}
	return math.Hypot(x, y) / float64(len(events))
}

// What lateness comes with must tell late steps from others, not only be more frequent
// among them.
const (
	minTelling = 0.5  // part of the late steps that have it, minus that of the others
	traitLevel = 0.01 // largest P
	shifts     = 400  // with which that is compared
)

// trait returns the trait that tells best when a rank is late. Batches stay large for a
// while, and bursts of lateness last, too. So what two such series have in common by
// chance is found by shifting one of them, round and round, along the other.
func (g *SyncSamples) trait(l *lateSteps) Pattern {
	var best Pattern
	most := minTelling
	for t := range g.Traits {
		values := order.Each(l.at, func(at int) float64 { return g.traits[g.SyncPoints[at].row/len(g.Names)*len(g.Traits)+t] })
		c := newContrasts(values)
		least, telling := c.best(l.late, 0)
		if telling < most {
			continue
		}
		by, tried := 0, min(shifts, len(l.late)-1)
		for s := 1; s <= tried; s++ {
			if _, other := c.best(l.late, s*len(l.late)/(tried+1)); other >= telling {
				by++
			}
		}
		if float64(by+1) > traitLevel*float64(tried+1) {
			continue
		}
		most = telling
		best = Pattern{Trait: &g.Traits[t], Least: least}
		best.With, best.Without = lateWith(values, l.late, least)
	}
	return best
}

// contrasts compare late sync points with others by the value of a trait.
type contrasts struct {
	distinct []float64 // values, in order
	class    []int     // of every sync point: its value in distinct
	late     []int     // scratch: of every class
	all      []int
}

func newContrasts(values []float64) *contrasts {
	c := &contrasts{distinct: slices.Compact(slices.Sorted(slices.Values(values)))}
	c.late, c.all = make([]int, len(c.distinct)), make([]int, len(c.distinct))
	for _, v := range values {
		k, _ := slices.BinarySearch(c.distinct, v)
		c.class = append(c.class, k)
		c.all[k]++
	}
	return c
}

// best returns the value from which on most sync points are late and below which few are,
// and the part of the late ones that is there, minus that of the others. Lateness is
// shifted along the values.
func (c *contrasts) best(late []bool, shift int) (least, telling float64) {
	clear(c.late)
	n, total := len(late), 0
	for i, is := range late {
		if is {
			c.late[c.class[(i+shift)%n]]++
			total++
		}
	}
	with, without := 0, 0
	for k := len(c.distinct) - 1; k > 0; k-- {
		with += c.late[k]
		without += c.all[k] - c.late[k]
		if d := float64(with)/float64(max(1, total)) - float64(without)/float64(max(1, n-total)); d > telling {
			least, telling = c.distinct[k], d
		}
	}
	return least, telling
}

// lateWith returns the part of the sync points that is late, of those with a value of
// least or more and of the others.
func lateWith(values []float64, late []bool, least float64) (with, without float64) {
	var n, of [2]float64
	for i, v := range values {
		k := 0
		if v >= least {
			k = 1
		}
		of[k]++
		if late[i] {
			n[k]++
		}
	}
	return n[1] / max(1, of[1]), n[0] / max(1, of[0])
}
