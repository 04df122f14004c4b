package straggler

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/trace"
)

// A Spell is a period in which the ranks of a group wait for one rank more than for any other, or the few sync points
// at which they wait for a rank amid spells of others.
type Spell struct {
	Rank       int        // in the group
	From, To   trace.Time // 0 for the beginning of the first spell and the end of the last
	Ended      trace.Time // the end of its last sync point
	Stalls     bool       // it is only the sync points of Bulk, not a period; other spells are divided without regard to it
	SyncPoints int
	Last       int   // number of sync points at which the rank came after all others
	Lost       int64 // ns: sum of the others' waits for the rank
	All        int64 // ns: sum of all waits for the last rank
	Bulk       Bulk  // of Lost
	Moments    []Moment
	// Later is how much later the rank came than the mean of the others, summed over sync points, ns. All leave
	// together, so it is also how much longer the rank computed, or idled, in between.
	Later int64
}

// A Moment is the time from one sync point to the next, where a part of a bulk is lost.
type Moment struct{ From, To trace.Time }

const (
	// maxBins is the largest number of bins that sync points are divided into. Each has at least MinCounted of them,
	// because one long wait is not a spell.
	maxBins = 400
	// newSpell is the share of all waiting that a spell must explain beyond other divisions: coming last now and then
	// is not a spell.
	newSpell = 0.05
)

// Spells divides the time of a group by the rank that it waits for, so that the waiting for the rank of each spell,
// minus a price of [newSpell] per spell, is largest in sum. It returns nil if nobody waits. Ranks that stall amid
// spells of others come first, separately.
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
	var begins []int // indexes into SyncPoints
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

// moment returns the time from the sync point before i to sync point i.
func (g *SyncSamples) moment(i int) Moment {
	return Moment{g.SyncPoints[max(0, i-1)].At, g.SyncPoints[i].At}
}

// stalling returns the ranks for which the others wait at a few sync points only, and lose at least least there. of
// is, for every sync point, the index in stalls of the rank that stalls there, or -1.
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
		if float64(by[rank]) < least { // this leaves few ranks to examine, however many there are
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

// amidOthers drops ranks that stall only in spells of their own: their stalls are a part of these. It sums up the
// others.
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

// refine moves the beginnings of spells from bins to exact sync points, within a bin on each side: to where the
// waiting for the one rank before it plus that for the other rank after it is largest.
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

// later returns how much later a rank came to a sync point than the mean of the others, ns; 0 if it was absent.
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

// lostInBins returns how long the others waited for each rank, in equal bins of sync points, ns, without stalls.
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

// blamed chooses a rank for each bin so that the sum of what is lost to them, minus price for each change of rank, is
// largest.
func blamed(bins [][]float64, price float64) []int {
	ranks := len(bins[0])
	sum := make([]float64, ranks) // by rank: the largest sum up to the current bin if that bin is the rank's
	came := make([][]bool, len(bins))
	best := make([]int, len(bins)) // rank of the largest sum up to the previous bin
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
