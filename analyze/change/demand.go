package change

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
)

// courseFollowsLoad reports whether more work arrived while the course was elevated, which
// would explain it: over the whole search window, and also within the stretch around the onset
// in which demand was steady. Load long before or after the onset explains nothing.
func (w *observer) courseFollowsLoad(of []*work.Pace, c *paceCourse, by func(*work.Piece) float64) bool {
	all := span{0, w.seconds(w.to)}
	if !w.followsWithin(of, c, by, all) {
		return false
	}
	beside := all
	if c.Shape != changepoint.Ramped {
		beside = w.sameDemand(of, c, all)
	}
	return beside == all || w.followsWithin(of, c, by, beside)
}

// A span is a stretch of time, in seconds since the beginning of the search.
type span struct{ from, to float64 }

// followsWithin reports that for arrivals within a span. Times between First and Last, when
// the course may have begun, count on neither side.
func (w *observer) followsWithin(of []*work.Pace, c *paceCourse, by func(*work.Piece) float64, within span) bool {
	until, from, to := c.First, c.Last, within.to
	switch c.Shape {
	case changepoint.Spell:
		to = min(c.End, to)
	case changepoint.Ramped:
		until, from = to/2, to/2
	}
	return w.followsLoad(of, by, func(at float64) side {
		switch {
		case at >= from && at < to:
			return after
		case at >= within.from && at < until || at >= to && at < within.to:
			return before
		}
		return neither
	}, [...]float64{until - within.from + within.to - to, to - from})
}

// sameDemand narrows a span to the stretch around the onset of a course in which neither the number nor the kind of requests
// changed. A change of demand within lag of the onset does not narrow it: that may have caused the course.
func (w *observer) sameDemand(of []*work.Pace, c *paceCourse, within span) span {
	lag := float64(w.lag) / 1e9
	for i := range w.demands {
		f := &w.demands[i]
		if f.Location.Scope == place.OneRank && !slices.ContainsFunc(of, func(p *work.Pace) bool { return w.isOf(p, &f.Location) }) {
			continue
		}
		if last := w.seconds(f.Last); last < c.First-lag {
			within.from = max(within.from, last)
		} else if first := w.seconds(f.First); first > c.Last+lag {
			within.to = min(within.to, first)
		}
	}
	return within
}

// followsLoad reports whether work arrived faster while servers were slower, by at least the same factor: steps don't slow down
// by more than their work grows. It counts arrivals, not running requests, as these depend on how fast servers are.
func (w *observer) followsLoad(of []*work.Pace, by func(*work.Piece) float64, sideOf func(at float64) side, lengths [sides]float64) bool {
	d := w.demandOf(of, by, sideOf, lengths)
	for k := range d {
		if x := &d[k]; x.units == 0 || x.speed == 0 || x.length <= 0 {
			return false
		}
	}
	const deviations = 2
	more := d[after].units / d[after].length / (d[before].units / d[before].length)
	surely := more * math.Exp(-deviations*math.Hypot(d[before].scatter(), d[after].scatter()))
	return surely >= d[before].speed/d[before].ran/(d[after].speed/d[after].ran)
}

// A side is one of the two times that are compared, or neither.
type side int8

const (
	before side = iota
	after
	sides
	neither side = -1
)

// A demand is the work that arrived on each side, and what ran then.
type demand [sides]arrived

// arrived is the work that arrived on one side: the length of the side in s, the sum of the units of work, the sum of
// their squares, and the units that ran, plain and times their speed.
type arrived struct{ length, units, squares, ran, speed float64 }

// demandOf sums up what arrived and ran on each side; lengths are those of the sides, in seconds.
func (w *observer) demandOf(of []*work.Pace, by func(*work.Piece) float64, sideOf func(at float64) side, lengths [sides]float64) (d demand) {
	for k := range d {
		d[k].length = lengths[k]
	}
	for _, p := range of {
		for i := range p.Pieces {
			x := &p.Pieces[i]
			if k := sideOf(w.seconds(x.From)); k != neither {
				d[k].ran, d[k].speed = d[k].ran+x.Units, d[k].speed+x.Units*(1+by(x))
			}
		}
		unknown := p.MeanAsked()
		for _, a := range p.Asked {
			if k := sideOf(w.seconds(a.At)); k != neither && w.inside(a.At) {
				tokens := cmp.Or(a.Tokens, unknown)
				d[k].units, d[k].squares = d[k].units+tokens, d[k].squares+tokens*tokens
			}
		}
	}
	return d
}

// scatter returns the relative standard error of the sum of units, if requests arrive at random.
func (a *arrived) scatter() float64 { return math.Sqrt(a.squares) / a.units }
