package change

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
)

// courseFollowsLoad tells that of the time in which a course is another one; and beside its beginning alone, where as much is asked
// for: what came long before it, or later, does not explain it.
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

// A span is a time, in seconds since the beginning of what is searched.
type span struct{ from, to float64 }

// followsWithin tells it of what came in a time. When a course may have begun, and may not, counts on neither side.
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

// sameDemand returns the part of a time around the beginning of a course in which neither more nor fewer requests come, nor others,
// for all that is known; what changed at about that time may be why it began.
func (w *observer) sameDemand(of []*work.Pace, c *paceCourse, within span) span {
	lag := float64(w.lag) / 1e9
	for i := range w.demands {
		f := &w.demands[i]
		if f.Location.Scope == place.OneRank && !slices.ContainsFunc(of, func(p *work.Pace) bool { return w.ranks.Places[p.Rank] == f.Location }) {
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

// followsLoad reports whether more work came while servers were slower, by as large a factor or more: a step takes no longer by a
// larger factor than the work in it is more. What comes does not depend on how fast servers are, as what is there at a time does.
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

// A side is one of two times that are compared, or neither.
type side int8

const (
	before side = iota
	after
	sides
	neither side = -1
)

// A demand is what came in two times that are compared, and what ran then.
type demand [sides]arrived

// arrived is the work that came in some time, in units, and the speed of what ran then.
type arrived struct{ length, units, squares, ran, speed float64 }

// demandOf sums up what came on either side, which are so many seconds long.
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

// scatter returns by which part the sum of units may be off, as they came by chance.
func (a *arrived) scatter() float64 { return math.Sqrt(a.squares) / a.units }
