package straggler

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// NoArrival is the arrival of a rank that was not there.
const NoArrival = math.MinInt64

// A Gathering collects when the ranks of a group arrived where they meet: at the
// end of a step, in a collective. It holds 16 B per sync point and rank.
type Gathering struct {
	Names             []string // of the ranks
	Group, What, Verb string   // see Straggler
	// Floor is the lateness, in ns, that may come from clocks, or from what a rank does
	// besides, and share the part of the time of a sync point that does not matter.
	Floor int64
	Share float64

	// Apart tells that nobody waits for the ranks: they do the same work side by side, and
	// arrivals are how long it took them. A slow one costs its own time.
	Apart bool
	// Occasions tells that each sync point is one step, in which a rank may be late
	// though it mostly is not. Traits are what that may come with.
	Occasions bool
	Traits    []Trait

	SyncPoints []syncPoint
	arrivals   []int64   // of every sync point, one per rank; NoArrival
	traits     []float64 // of every sync point, one per trait; in the order of arrivals

	// From here on: see settle. Both are of every sync point and rank.
	settled bool
	late    []int64 // arrival minus the median of those of the others
	offset  []int64 // arrival minus the median of all

	order *order // see orderIn

	// See judgeAll.
	judged        bool
	guilty        []bool // of every rank: it is among those found
	found, likely []Straggler
}

// A syncPoint is one step, or collective, of a group.
type syncPoint struct {
	at   trace.Time
	Took int64 // ns; what the others lose is a part of it
	row  int   // in arrivals
	last int   // rank that arrived after all others; -1 if several did
	lost int64 // ns that the others waited for it, together
	here int   // ranks that were there
}

// Matters is the part of their time that the others have to lose before that is worth
// telling: devices of one kind differ by a percent or so in how fast they clock.
const Matters = 0.02

// NewGathering is for ranks of these names. Lateness of less than floor ns is
// nothing.
func NewGathering(names []string, floor int64) *Gathering {
	return &Gathering{Names: names, Floor: floor, Share: Matters}
}

// Grow makes room for n more sync points.
func (g *Gathering) Grow(n int) {
	g.SyncPoints, g.arrivals = memory.Grow(g.SyncPoints, n), memory.Grow(g.arrivals, n*len(g.Names))
}

// Meet notes a sync point at a time, which the order goes by and the time since which
// a rank is slow. Arrivals are one per rank, in ns from any instant; they are copied.
// took is how long the group was at it, in ns; 0 is unknown, and any part of it
// matters. traits are the values of g.Traits.
func (g *Gathering) Meet(at trace.Time, arrivals []int64, took int64, traits ...float64) {
	here := 0
	for _, a := range arrivals {
		if a != NoArrival {
			here++
		}
	}
	if here < 2 {
		return
	}
	g.SyncPoints = memory.Append(g.SyncPoints, syncPoint{at: at, Took: max(0, took), row: len(g.arrivals), here: here})
	g.arrivals, g.traits = memory.Append(g.arrivals, arrivals...), memory.Append(g.traits, traits...)
	g.settled, g.judged, g.order = false, false, nil
}

// settle puts the sync points in order, and finds out who was late at each.
func (g *Gathering) settle() {
	if g.settled {
		return
	}
	g.settled = true
	slices.SortStableFunc(g.SyncPoints, func(x, y syncPoint) int { return cmp.Compare(x.at, y.at) })
	k := len(g.Names)
	g.makeSettled()
	sorted := make([]int64, 0, k)
	for i := range g.SyncPoints {
		m := &g.SyncPoints[i]
		arrivals := g.arrivals[m.row : m.row+k]
		sorted = sorted[:0]
		for _, a := range arrivals {
			if a != NoArrival {
				sorted = append(sorted, a)
			}
		}
		slices.Sort(sorted)
		m.judge(arrivals, sorted)
		median := request.NearestRank(sorted, 50)
		for r, a := range arrivals {
			g.late[i*k+r], g.offset[i*k+r] = NoArrival, NoArrival
			if a != NoArrival {
				g.late[i*k+r] = a - medianOfOthers(sorted, a)
				g.offset[i*k+r] = a - median
			}
		}
	}
}

// settledTables are what gatherings had for late and offset: a job has a gathering for each group
// of its ranks, and judges one after another.
var settledTables sync.Pool

// makeSettled makes late and offset, which may hold anything.
func (g *Gathering) makeSettled() {
	n := len(g.arrivals)
	if tables, _ := settledTables.Get().(*[2][]int64); tables != nil && cap(tables[0]) >= n && cap(tables[1]) >= n {
		g.late, g.offset = tables[0][:n], tables[1][:n]
		return
	}
	g.late, g.offset = memory.Make[int64](n), memory.Make[int64](n)
}

// unsettle gives up what settle found out, and the order.
func (g *Gathering) unsettle() {
	settledTables.Put(&[2][]int64{g.late, g.offset})
	g.settled, g.late, g.offset, g.order = false, nil, nil, nil
}

// judge finds the last one of the arrivals, which are there sorted, too.
func (m *syncPoint) judge(arrivals, sorted []int64) {
	latest := sorted[len(sorted)-1]
	m.last, m.lost = slices.Index(arrivals, latest), 0
	if sorted[len(sorted)-2] == latest {
		m.last = -1
		return
	}
	for _, a := range sorted {
		m.lost += latest - a
	}
}

// medianOfOthers returns the median (nearest rank) of sorted values without one of
// value own.
func medianOfOthers(sorted []int64, own int64) int64 {
	middle := len(sorted)/2 - 1 // of the others: ceil((n-1)/2), from 0
	if own <= sorted[middle] {
		middle++
	}
	return sorted[middle]
}

// Measure sums up every rank.
func (g *Gathering) Measure() []Lateness {
	g.settle()
	all := make([]Lateness, len(g.Names))
	for r := range all {
		all[r] = g.lateness(r, 0, len(g.SyncPoints))
	}
	return all
}

// lateness sums up a rank over the sync points [from, to).
func (g *Gathering) lateness(rank, from, to int) Lateness {
	var l Lateness
	var late []int64
	var sum, sumLast, time int64
	for i, m := range g.SyncPoints[from:to] {
		d := g.late[(from+i)*len(g.Names)+rank]
		if d == NoArrival {
			continue
		}
		late = append(late, d)
		sum += d
		time += int64(m.here-1) * m.Took
		if m.last == rank {
			l.Last++
			l.Lost += m.lost
			sumLast += d
		}
	}
	if l.SyncPoints = len(late); l.SyncPoints == 0 {
		l.LostShare = math.NaN()
		return l
	}
	slices.Sort(late)
	l.P50, l.P99, l.Mean = request.NearestRank(late, 50), request.NearestRank(late, 99), sum/int64(l.SyncPoints)
	l.LastMean = sumLast / int64(max(1, l.Last))
	l.LostShare = distribution.Ratio(float64(l.Lost), float64(time))
	return l
}
