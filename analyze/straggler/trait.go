package straggler

import "slices"

// What lateness comes with must tell late steps from others, not only be more frequent
// among them.
const (
	leastTelling = 0.5  // part of the late steps that have it, minus that of the others
	traitLevel   = 0.01 // largest P
	shifts       = 400  // with which that is compared
)

// trait returns the trait that tells best when a rank is late. Batches stay large for a
// while, and bursts of lateness last, too. So what two such series have in common by
// chance is found by shifting one of them, round and round, along the other.
func (g *SyncSamples) trait(l *lateSteps) Pattern {
	var best Pattern
	most := leastTelling
	for t := range g.Traits {
		values := make([]float64, len(l.at))
		for i, at := range l.at {
			values[i] = g.traits[g.SyncPoints[at].row/len(g.Names)*len(g.Traits)+t]
		}
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
