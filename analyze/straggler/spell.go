package straggler

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

// A Spell is a time in which the ranks of a group wait for one of them more than for any other, or the few sync
// points at which they wait for one amid spells of others.
type Spell struct {
	Rank       int        // in the group
	From, To   trace.Time // the beginning of the first one, and the end of the last one, are 0
	Ended      trace.Time // the end of the last sync point
	Stalls     bool       // it is all of Bulk, and no time; the others begin and end as if it were not there
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
// A rank that stalls in spells of others comes first, by itself.
func (g *SyncSamples) Spells() []Spell {
	if len(g.SyncPoints) == 0 {
		return nil
	}
	g.arrange()
	all := g.Lost()
	if all == 0 {
		return nil
	}
	price := newSpell * float64(all)
	stalls, of := g.stalling(all, price)
	bins := g.lostInBins(of)
	var spells []Spell
	var begins []int // sync points
	n := len(g.SyncPoints)
	for bin, rank := range blamed(bins, price) {
		if k := len(spells); k == 0 || spells[k-1].Rank != rank {
			spells, begins = append(spells, Spell{Rank: rank}), append(begins, bin*n/len(bins))
		}
	}
	g.refine(spells, begins, (n+len(bins)-1)/len(bins), of)
	begins = append(begins, n)
	stalls = g.amidOthers(stalls, spells, begins, of)
	for k := range spells {
		s := &spells[k]
		if k+1 < len(spells) {
			s.To = g.time(begins[k+1])
			spells[k+1].From = s.To
		}
		for i := begins[k]; i < begins[k+1]; i++ {
			if of[i] < 0 {
				g.addTo(s, i)
			}
		}
		s.Bulk = g.bulk(s.Rank, begins[k], begins[k+1], of)
		for i := begins[k]; i < begins[k+1] && s.Bulk.N > 0; i++ {
			if m := &g.SyncPoints[i]; m.last == s.Rank && of[i] < 0 && m.lost/int64(m.here-1) >= s.Bulk.Low {
				s.Moments = append(s.Moments, g.moment(i))
			}
		}
	}
	return append(stalls, slices.DeleteFunc(spells, func(s Spell) bool { return s.All == 0 })...)
}

// addTo adds a sync point to a spell.
func (g *SyncSamples) addTo(s *Spell, i int) {
	m := &g.SyncPoints[i]
	s.SyncPoints++
	s.Ended = m.At
	s.All += m.lost
	s.Later += g.later(*m, s.Rank)
	if m.last == s.Rank {
		s.Last++
		s.Lost += m.lost
	}
}

// moment returns the time from the sync point before one to that.
func (g *SyncSamples) moment(i int) Moment {
	return Moment{g.SyncPoints[max(0, i-1)].At, g.SyncPoints[i].At}
}

// stalling returns the ranks that the others wait for at a few sync points, if they lose as much there as least of all that is lost, and
// of every sync point the index of the one that stalls there; -1 is none.
func (g *SyncSamples) stalling(lost int64, least float64) (stalls []Spell, of []int) {
	of = make([]int, len(g.SyncPoints))
	for i := range of {
		of[i] = -1
	}
	by := make([]int64, len(g.Names))
	for i := range g.SyncPoints {
		if m := &g.SyncPoints[i]; m.last >= 0 {
			by[m.last] += m.lost
		}
	}
	for rank := range g.Names {
		if float64(by[rank]) < least { // so few are looked at, however many ranks there are
			continue
		}
		b := g.stalls(rank, lost)
		if float64(b.Lost) < least {
			continue
		}
		for i := range g.SyncPoints {
			if m := &g.SyncPoints[i]; m.last == rank && m.lost/int64(m.here-1) >= b.Low {
				of[i] = len(stalls)
			}
		}
		stalls = append(stalls, Spell{Rank: rank, Bulk: b, Stalls: true})
	}
	return stalls, of
}

// amidOthers leaves out who stalls in spells of its own only: it is late then, and its stalls are a part of that. It
// sums up the others.
func (g *SyncSamples) amidOthers(stalls, spells []Spell, begins, of []int) (out []Spell) {
	amid := make([]bool, len(stalls))
	for k := range spells {
		for _, stall := range of[begins[k]:begins[k+1]] {
			if stall >= 0 && stalls[stall].Rank != spells[k].Rank {
				amid[stall] = true
			}
		}
	}
	for i, stall := range of {
		if stall < 0 {
			continue
		}
		if !amid[stall] {
			of[i] = -1
			continue
		}
		s := &stalls[stall]
		g.addTo(s, i)
		s.Moments, s.To = append(s.Moments, g.moment(i)), s.Ended
		s.From = s.Moments[0].From
	}
	for k := range stalls {
		if amid[k] {
			out = append(out, stalls[k])
		}
	}
	return out
}

// refine moves the beginnings of spells to the very sync points: where most is waited for the one
// rank before, and for the other behind, within a bin of so many sync points on each side.
func (g *SyncSamples) refine(spells []Spell, begins []int, bin int, stall []int) {
	for k := 1; k < len(spells); k++ {
		from, to := max(begins[k]-bin, begins[k-1]+1), min(begins[k]+bin, len(g.SyncPoints)-1)
		gain, most := int64(0), int64(math.MinInt64)
		for i := from; i <= to; i++ {
			if gain > most {
				most, begins[k] = gain, i
			}
			switch m := &g.SyncPoints[i]; {
			case stall[i] >= 0:
			case m.last == spells[k-1].Rank:
				gain += m.lost
			case m.last == spells[k].Rank:
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
// points, ns; without stalls.
func (g *SyncSamples) lostInBins(stall []int) (bins [][]float64) {
	n := len(g.SyncPoints)
	bins = make([][]float64, max(1, min(n/MinCounted, maxBins)))
	for bin := range bins {
		bins[bin] = make([]float64, len(g.Names))
		for i := bin * n / len(bins); i < (bin+1)*n/len(bins); i++ {
			if m := &g.SyncPoints[i]; m.last >= 0 && stall[i] < 0 {
				bins[bin][m.last] += float64(m.lost)
			}
		}
	}
	return bins
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
