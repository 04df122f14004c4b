package straggler

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
)

// A Trait is a property of sync points that lateness may depend on.
type Trait struct {
	// Phrase describes sync points with a value of at least least: "with 12 requests or more in the batch".
	Phrase func(least float64) string
}

// A Pattern says when an intermittent straggler is late.
type Pattern struct {
	// Trait is what its lateness depends on; nil is nothing. It is late at the share With of the sync points whose
	// trait is at least Least, and at the share Without of the others.
	Trait         *Trait
	Least         float64
	With, Without float64
	// Period is the time from one late step to the next, in ns, or in sync points if EverySteps; 0 is no period.
	Period     float64
	EverySteps bool
	// Burst is the mean number of consecutive late sync points; 0 if that may be chance.
	Burst float64
}

// String describes the pattern in words.
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

// pattern looks for when a rank is late: with a trait of the sync points, periodically, or in bursts.
func (g *SyncSamples) pattern(l lateSteps) Pattern {
	const minSteps = 3 // least period, because a shorter one may only reflect the steps themselves
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

// starts returns where lateness begins: late sync points after one that is not late.
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

// burst returns the mean number of consecutive late sync points if that is more than chance, and more than 1.5 times
// the mean in random order, or else 0. The number of runs is compared with that in random order (Wald and Wolfowitz,
// 1940).
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

// period returns the period of events, at least least, and how regular they are: the length of their mean unit vector
// on a clock of that period, from 0 to 1 (Rayleigh's test). It returns 0 if events are not regular, or if chance may
// have found a period among all those tried.
func period(events []float64, least float64) (length, regular float64) {
	const fewest, most, maxTried, level, enough, nearly = 10, 500, 10_000, 1e-4, 0.5, 0.9
	events = events[:min(most, len(events))]
	n := len(events)
	if n < fewest {
		return 0, 0
	}
	span := events[n-1] - events[0]
	least = max(least, span/float64(2*n), 4*span/maxTried)
	// Adjacent rates differ by a quarter turn over the whole span.
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
	// Clocks of half or a third of the period fit as well, so take the longest.
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

// coherence returns the length of the mean unit vector of events on a clock of the given rate.
func coherence(events []float64, rate float64) float64 {
	x, y := 0.0, 0.0
	for _, e := range events {
		sin, cos := math.Sincos(2 * math.Pi * rate * e)
		x, y = x+cos, y+sin
	}
	return math.Hypot(x, y) / float64(len(events))
}

// A trait must distinguish late steps from the others, not only be more frequent among them.
const (
	minTelling = 0.5  // least share of the late steps with the trait, minus that of the others
	traitLevel = 0.01 // largest P
	shifts     = 400  // number of shifts to compare with
)

// trait returns the trait that best explains when a rank is late. Batches stay large for a while, and bursts of
// lateness last, too. So the agreement expected by chance is found by cyclically shifting one series along the other.
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

// contrasts compares late sync points with others by the value of a trait.
type contrasts struct {
	distinct []float64 // sorted values
	class    []int     // of every sync point: index of its value in distinct
	late     []int     // scratch space: by class
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

// best returns the value that best separates late sync points, at or above it, from the others. telling is the share
// of late sync points at or above it minus that of the others. Lateness is shifted along the values by shift.
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

// lateWith returns the share of sync points that are late, among those with a value of at least least and among the
// others.
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
