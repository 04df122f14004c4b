package straggler

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// NoArrival is the arrival of a rank that was absent.
const NoArrival = math.MinInt64

// SyncSamples records when the ranks of a group arrived at sync points: the ends of steps, or collectives. It takes
// 16 B per sync point and rank.
type SyncSamples struct {
	Names             []string // of the ranks
	Group, What, Verb string   // see Straggler
	// Floor is the lateness, in ns, that clocks or other duties of a rank may cause, and Share the largest lateness
	// that does not matter, as a fraction of a sync point's time.
	Floor int64
	Share float64

	// Apart says that the ranks don't wait for each other: they do the same work side by side, and arrivals are how
	// long it took. A slow rank costs only its own time.
	Apart bool
	// Recorded says that profilers recorded the sync points: long gaps between them were not recorded.
	Recorded bool
	// Blur is how far the times of sync points may be off, ns; math.MaxInt64 if only their order is known. Then the
	// time that they took is that which ranks spent in them.
	Blur int64
	// Intermittent says that each sync point is one step, so that a rank may be late at some of them only. Traits are
	// what that may depend on.
	Intermittent bool
	Traits       []Trait

	SyncPoints []syncPoint
	arrivals   []int64   // one per sync point and rank; may be NoArrival
	stays      []int64   // as arrivals, but may be shorter: see Leave; nil without stays
	traits     []float64 // one per sync point and trait, in the order of arrivals

	arranged bool // see arrange

	// See settle. late and offset have one value per sync point and rank.
	settled bool
	late    []int64 // arrival minus the median of the others' arrivals
	offset  []int64 // arrival minus the median of all arrivals

	order *ranking // see orderIn

	// See judgeAll.
	judging       sync.Mutex
	judged        bool
	guilty        []bool // by rank: it is in found
	found, likely []Straggler
}

// A syncPoint is one step or collective of a group.
type syncPoint struct {
	At   trace.Time
	Took int64 // ns; including what the others lose
	row  int   // index in arrivals
	last int   // rank that arrived after all others; -1 if several arrived last
	lost int64 // ns: sum of the others' waits for last
	here int   // number of ranks present
}

// Matters is the share of their time that the others have to lose to be worth reporting: devices of one kind differ
// by a percent or so in clock speed.
const Matters = 0.02

// NewSyncSamples returns samples for ranks with these names. Lateness below floor ns does not count.
func NewSyncSamples(names []string, floor int64) *SyncSamples {
	return &SyncSamples{Names: names, Floor: floor, Share: Matters}
}

// Undated reports whether the times of sync points are unknown.
func (g *SyncSamples) Undated() bool { return g.Blur == math.MaxInt64 }

// Grow makes room for n more sync points.
func (g *SyncSamples) Grow(n int) {
	g.SyncPoints, g.arrivals = memory.Grow(g.SyncPoints, n), memory.Grow(g.arrivals, n*len(g.Names))
}

// Meet records a sync point. at determines the order of sync points, and the time since which a rank is slow.
// arrivals are one per rank, in ns from any instant; they are copied. took is how long the group spent on it, in ns;
// if it is 0, for unknown, any fraction of it matters. traits are the values of g.Traits.
func (g *SyncSamples) Meet(at trace.Time, arrivals []int64, took int64, traits ...float64) {
	here := order.Count(arrivals, func(a int64) bool { return a != NoArrival })
	if here < 2 {
		return
	}
	g.SyncPoints = memory.Append(g.SyncPoints, syncPoint{At: at, Took: max(0, took), row: len(g.arrivals), here: here})
	g.arrivals, g.traits = memory.Append(g.arrivals, arrivals...), memory.Append(g.traits, traits...)
	g.arranged, g.settled, g.judged, g.order = false, false, false, nil
}

// Leave records how long each rank stayed at the last sync point recorded by [SyncSamples.Meet], in ns. A rank that
// leaves when it has its own part waits no longer than that.
func (g *SyncSamples) Leave(stays []int64) {
	for len(g.stays) < len(g.arrivals)-len(stays) {
		g.stays = memory.Append(g.stays, math.MaxInt64)
	}
	g.stays = memory.Append(g.stays, stays...)
}

// wait returns how long a rank waits at a sync point for one that arrives at until, ns.
func (g *SyncSamples) wait(m *syncPoint, rank int, until int64) int64 {
	at := m.row + rank
	if wait := until - g.arrivals[at]; at >= len(g.stays) || wait < g.stays[at] {
		return wait
	}
	return g.stays[at]
}

// EachWait calls f for each sync point with a single last rank, with how long each rank waited for it, ns. The slice
// is valid until f returns.
func (g *SyncSamples) EachWait(f func(at trace.Time, last int, waits []int64)) {
	g.arrange()
	waits := make([]int64, len(g.Names))
	for i := range g.SyncPoints {
		m := &g.SyncPoints[i]
		if m.last < 0 {
			continue
		}
		latest := g.arrivals[m.row+m.last]
		for rank, a := range g.arrivals[m.row : m.row+len(g.Names)] {
			if waits[rank] = 0; a != NoArrival {
				waits[rank] = g.wait(m, rank, latest)
			}
		}
		f(m.At, m.last, waits)
	}
}

// Lost returns how long ranks waited for the last one, ns, summed over ranks and sync points.
func (g *SyncSamples) Lost() (ns int64) {
	g.arrange()
	for i := range g.SyncPoints {
		if g.SyncPoints[i].last >= 0 {
			ns = distribution.AddTimes(ns, g.SyncPoints[i].lost)
		}
	}
	return ns
}

// arrange sorts the sync points by time, and finds the last rank of each.
func (g *SyncSamples) arrange() {
	if g.arranged {
		return
	}
	g.arranged = true
	slices.SortStableFunc(g.SyncPoints, func(x, y syncPoint) int { return cmp.Compare(x.At, y.At) })
	for i := range g.SyncPoints {
		g.findLast(&g.SyncPoints[i])
	}
}

// findLast finds the last rank at a sync point, and what the others lose to it.
func (g *SyncSamples) findLast(m *syncPoint) {
	arrivals := g.arrivals[m.row : m.row+len(g.Names)]
	latest, again := slices.Max(arrivals), false
	m.last, m.lost = -1, 0
	for rank, a := range arrivals {
		if a == latest {
			again = m.last >= 0
			m.last = rank
		}
	}
	if again {
		m.last = -1
		return
	}
	for rank, a := range arrivals {
		if a != NoArrival {
			m.lost += g.wait(m, rank, latest)
		}
	}
}

// settle computes the lateness of each rank at each sync point.
func (g *SyncSamples) settle() {
	if g.settled {
		return
	}
	g.arrange()
	g.settled = true
	k := len(g.Names)
	g.makeSettled()
	sorted := make([]int64, 0, k)
	for i := range g.SyncPoints {
		arrivals := g.arrivals[g.SyncPoints[i].row : g.SyncPoints[i].row+k]
		sorted = sorted[:0]
		for _, a := range arrivals {
			if a != NoArrival {
				sorted = append(sorted, a)
			}
		}
		slices.Sort(sorted)
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

// settledTables reuses the tables late and offset: a job has samples for each group of its ranks, and judges one
// after another.
var settledTables sync.Pool

// makeSettled makes late and offset with arbitrary contents.
func (g *SyncSamples) makeSettled() {
	n := len(g.arrivals)
	if tables, _ := settledTables.Get().(*[2][]int64); tables != nil && cap(tables[0]) >= n && cap(tables[1]) >= n {
		g.late, g.offset = tables[0][:n], tables[1][:n]
		return
	}
	g.late, g.offset = memory.Make[int64](n), memory.Make[int64](n)
}

// unsettle releases late and offset, and the cached ranking.
func (g *SyncSamples) unsettle() {
	settledTables.Put(&[2][]int64{g.late, g.offset})
	g.settled, g.late, g.offset, g.order = false, nil, nil, nil
}

// medianOfOthers returns the median (nearest rank) of sorted values without one of value own.
func medianOfOthers(sorted []int64, own int64) int64 {
	middle := len(sorted)/2 - 1 // index of the others' median: ceil((n-1)/2), from 0
	if own <= sorted[middle] {
		middle++
	}
	return sorted[middle]
}

// Measure sums up the lateness of every rank.
func (g *SyncSamples) Measure() []Lateness {
	g.settle()
	all := make([]Lateness, len(g.Names))
	for r := range all {
		all[r] = g.lateness(r, 0, len(g.SyncPoints))
	}
	return all
}

// lateness sums up the lateness of a rank over the sync points [from, to).
func (g *SyncSamples) lateness(rank, from, to int) Lateness {
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

// Parts are equal parts of a period. The end of the period is in the last part.
type Parts struct {
	From, To trace.Time
	n        int
}

// Of returns the part that contains a moment.
func (p *Parts) Of(at trace.Time) int {
	if p.To == p.From {
		return 0
	}
	return min(p.n-1, int(float64(at-p.From)/float64(p.To-p.From)*float64(p.n)))
}

// Parts divides the time from the first sync point to the last into n parts; both ends are 0 without sync points.
func (g *SyncSamples) Parts(n int) Parts {
	g.arrange()
	if len(g.SyncPoints) == 0 {
		return Parts{n: n}
	}
	return Parts{g.SyncPoints[0].At, g.SyncPoints[len(g.SyncPoints)-1].At, n}
}

// A History is the lateness of the ranks of a group over time.
type History struct {
	Parts
	Names       []string
	Group, What string
	// Late has a piece for each rank and part; without sync points its rows are nil.
	Late [][]Piece
}

// A Piece is the lateness of a rank in a part of the time.
type Piece struct {
	N    int     // sync points at which it was present
	Mean int64   // ns: mean of its arrival minus the median of the others' arrivals
	Part float64 // Mean as a fraction of the mean duration of sync points; 0 if unknown
}

// History divides the time from the first sync point to the last into equal parts. Without sync points there are no
// pieces.
func (g *SyncSamples) History(parts int) *History {
	c := &History{Parts: g.Parts(parts), Names: g.Names, Group: g.Group, What: g.What, Late: make([][]Piece, len(g.Names))}
	if len(g.SyncPoints) == 0 {
		return c
	}
	took, points := make([]float64, parts), make([]int, parts) // means, ns
	for i := range g.SyncPoints {
		p := c.Of(g.SyncPoints[i].At)
		took[p] += float64(g.SyncPoints[i].Took)
		points[p]++
	}
	for p := range took {
		took[p] /= float64(max(1, points[p]))
	}
	g.settle()
	for rank := range c.Late {
		c.Late[rank] = g.pieces(c, rank, took)
	}
	return c
}

// pieces sums up a rank in each part. took is the mean duration of sync points there, ns.
func (g *SyncSamples) pieces(c *History, rank int, took []float64) []Piece {
	list, sums := make([]Piece, len(took)), make([]float64, len(took))
	for i := range g.SyncPoints {
		if late := g.late[i*len(g.Names)+rank]; late != NoArrival {
			p := c.Of(g.SyncPoints[i].At)
			list[p].N++
			sums[p] += float64(late)
		}
	}
	for p := range list {
		if list[p].N == 0 {
			continue
		}
		mean := sums[p] / float64(list[p].N)
		list[p].Mean = int64(mean)
		if took[p] > 0 {
			list[p].Part = mean / took[p]
		}
	}
	return list
}
