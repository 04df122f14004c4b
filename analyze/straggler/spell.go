package straggler

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

// A Spell is a time in which the ranks of a group wait for one of them more than for any other.
type Spell struct {
	Rank       int        // in the group
	From, To   trace.Time // the beginning of the first one, and the end of the last one, are 0
	SyncPoints int
	Last       int   // to how many of them the rank came after all others
	Lost       int64 // how long the others waited for it together, ns
	All        int64 // how long any waited for whoever came last, ns
	Bulk       Bulk  // of Lost
	Moments    []Moment
	// Later is how much later it came than the mean of the others, in sum, ns. All leave together, so
	// it is also how much more the rank did, or idled, in between.
	Later int64
}

// A Moment is the time from one sync point to the next, at which a part of a bulk is lost.
type Moment struct{ From, To trace.Time }

const (
	// maxBins is into how many parts the sync points are divided at most; each has MinCounted of
	// them or more, since one long wait is no spell.
	maxBins = 400
	// newSpell is the part of all waiting that another rank has to explain for a spell of its own to
	// begin: who comes last now and then is none.
	newSpell = 0.05
)

// Spells divides the time of a group by whom its ranks wait for: so that as much waiting as
// possible is for the rank of each spell, less [newSpell] for each one. None if nobody waits.
func (g *SyncSamples) Spells() []Spell {
	if len(g.SyncPoints) == 0 {
		return nil
	}
	g.arrange()
	bins, all := g.lostInBins()
	if all == 0 {
		return nil
	}
	var spells []Spell
	var begins []int // sync points
	n := len(g.SyncPoints)
	for bin, rank := range blamed(bins, newSpell*float64(all)) {
		if k := len(spells); k == 0 || spells[k-1].Rank != rank {
			spells, begins = append(spells, Spell{Rank: rank}), append(begins, bin*n/len(bins))
		}
	}
	g.refine(spells, begins, (n+len(bins)-1)/len(bins))
	for k := range spells {
		s := &spells[k]
		to := n
		if k+1 < len(spells) {
			to = begins[k+1]
			s.To = g.time(to)
			spells[k+1].From = s.To
		}
		for _, m := range g.SyncPoints[begins[k]:to] {
			s.SyncPoints++
			s.All += m.lost
			s.Later += g.later(m, s.Rank)
			if m.last == s.Rank {
				s.Last++
				s.Lost += m.lost
			}
		}
		s.Bulk = g.bulk(s.Rank, begins[k], to)
		for i := begins[k]; i < to && s.Bulk.N > 0; i++ {
			if m := &g.SyncPoints[i]; m.last == s.Rank && m.lost/int64(m.here-1) >= s.Bulk.Low {
				s.Moments = append(s.Moments, Moment{g.SyncPoints[max(0, i-1)].At, m.At})
			}
		}
	}
	return spells
}

// refine moves the beginnings of spells to the very sync points: where most is waited for the one
// rank before, and for the other behind, within a bin of so many sync points on each side.
func (g *SyncSamples) refine(spells []Spell, begins []int, bin int) {
	for k := 1; k < len(spells); k++ {
		from, to := max(begins[k]-bin, begins[k-1]+1), min(begins[k]+bin, len(g.SyncPoints)-1)
		gain, most := int64(0), int64(math.MinInt64)
		for i := from; i <= to; i++ {
			if gain > most {
				most, begins[k] = gain, i
			}
			switch m := &g.SyncPoints[i]; m.last {
			case spells[k-1].Rank:
				gain += m.lost
			case spells[k].Rank:
				gain -= m.lost
			}
		}
	}
}

// later returns how much later a rank came to a sync point than the mean of the others, ns; 0 if it
// was not there.
func (g *SyncSamples) later(m syncPoint, rank int) (ns int64) {
	own := g.arrivals[m.row+rank]
	if own == NoArrival {
		return 0
	}
	for _, a := range g.arrivals[m.row : m.row+len(g.Names)] {
		if a != NoArrival {
			ns += own - a
		}
	}
	return ns / int64(m.here-1)
}

// lostInBins returns how long the others waited for each rank, in equal parts of the sync
// points, and how long in all, ns.
func (g *SyncSamples) lostInBins() (bins [][]float64, all int64) {
	n := len(g.SyncPoints)
	bins = make([][]float64, max(1, min(n/MinCounted, maxBins)))
	for bin := range bins {
		bins[bin] = make([]float64, len(g.Names))
		for _, m := range g.SyncPoints[bin*n/len(bins) : (bin+1)*n/len(bins)] {
			if m.last >= 0 {
				bins[bin][m.last] += float64(m.lost)
				all += m.lost
			}
		}
	}
	return bins, all
}

// blamed returns a rank for each bin, so that the sum of what is lost by them is largest, less a
// price for each change of the rank.
func blamed(bins [][]float64, price float64) []int {
	ranks := len(bins[0])
	sum := make([]float64, ranks) // the most up to the bin at hand, if it is of that rank
	came := make([][]bool, len(bins))
	best := make([]int, len(bins)) // rank of the largest sum up to the bin before
	for bin, lost := range bins {
		top := slices.Index(sum, slices.Max(sum))
		best[bin], came[bin] = top, make([]bool, ranks)
		before := sum[top] - price
		for rank := range sum {
			if sum[rank] < before {
				sum[rank], came[bin][rank] = before, true
			}
			sum[rank] += lost[rank]
		}
	}
	out := make([]int, len(bins))
	rank := slices.Index(sum, slices.Max(sum))
	for bin := len(bins) - 1; bin >= 0; bin-- {
		out[bin] = rank
		if came[bin][rank] {
			rank = best[bin]
		}
	}
	return out
}
