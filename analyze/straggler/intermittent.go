package straggler

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
)

// A rank may be late in some of its steps only, such as by a few ms in one step of seven. On average that may be too
// little to matter, and "535 of 1,211 steps, 1.32 ms late" does not explain what happens. So the lateness of each
// rank is split into two groups, late and on time, if these are clearly apart. The share of late steps is then judged
// like lateness, in blocks of time, against the other ranks, which are interrupted now and then, too.
const (
	minOccasions = 0.04   // least share of steps that are late, beyond that of the others
	maxOccasions = 0.75   // with a larger share, the rank is late as a rule
	minLate      = 0.04   // least lateness of late steps, as a fraction of a step
	minApart     = 3      // least difference of the groups' medians, in units of their spreads
	occasionCost = 0.0025 // share of their time that the others have to lose
	nearlyAll    = 0.9    // share of late steps that the period in which a rank is often late must have
)

// Intermittent describes the lateness of a straggler that is late in some steps only.
type Intermittent struct {
	// Steps is the number of steps in which it is late, and Share their share of all its steps, both without the mean
	// share of late steps of the other ranks.
	Steps     int
	Share     float64
	Low, High int64 // ns: 10th and 90th percentile of the lateness in late steps
	When      Pattern
}

// A split divides the lateness of a rank in two groups.
type split struct {
	limit         float64 // ns: a step with at least this lateness is late
	early, late   float64 // ns: medians of both groups
	early0, late0 float64 // ns: their spreads, median absolute deviations
}

// splitLateness finds the two groups of a rank's lateness, and reports whether they are apart and the first one is on
// time.
func (g *SyncSamples) splitLateness(rank int) (split, bool) {
	const tail, rounds = 0.98, 4
	d := g.latenessOf(rank)
	if len(d) < FewestSyncPoints {
		return split{}, false
	}
	slices.Sort(d)
	lowest, highest := -float64(g.Floor), d[int(tail*float64(len(d)-1))]
	for i := range d {
		d[i] = max(lowest, min(highest, d[i]))
	}
	if d[0] == d[len(d)-1] {
		return split{}, false
	}
	s := split{limit: widest(d)}
	for range rounds {
		k, _ := slices.BinarySearch(d, s.limit)
		if k == 0 || k == len(d) {
			return split{}, false
		}
		s.early, s.early0 = spread(d[:k], float64(g.Floor)/10)
		s.late, s.late0 = spread(d[k:], float64(g.Floor)/10)
		// Midway, but lower if the lateness of late steps varies a lot.
		s.limit = max(s.early+6*s.early0, min((s.early+s.late)/2, s.late-4*s.late0))
	}
	onTime := s.early <= max(float64(g.Floor), (s.late-s.early)/4)
	return s, onTime && s.late-s.early >= minApart*(s.early0+s.late0)
}

// latenessOf returns the lateness of a rank at each sync point where it was present, in ns.
func (g *SyncSamples) latenessOf(rank int) []float64 {
	var d []float64
	for i := range g.SyncPoints {
		if l := g.late[i*len(g.Names)+rank]; l != NoArrival {
			d = append(d, float64(l))
		}
	}
	return d
}

// widest splits sorted values into the two groups whose means are most certainly apart (Otsu's method), and returns
// the first value of the upper group.
func widest(sorted []float64) float64 {
	total, below, best, at := 0.0, 0.0, -1.0, 1
	for _, v := range sorted {
		total += v
	}
	n := float64(len(sorted))
	for k := 1; k < len(sorted); k++ {
		below += sorted[k-1]
		low, high := float64(k), n-float64(k)
		if by := below/low - (total-below)/high; low*high*by*by > best {
			best, at = low*high*by*by, k
		}
	}
	return sorted[at]
}

// spread returns the median of sorted values, and the median absolute deviation from it, but at least least.
func spread(sorted []float64, least float64) (median, deviation float64) {
	median = sorted[len(sorted)/2]
	off := order.Each(sorted, func(v float64) float64 { return math.Abs(v - median) })
	return median, max(least, distribution.LowerMedian(off))
}

// occasional judges whether a rank is late in some of its steps, all the time or in a part of it.
func (g *SyncSamples) occasional(rank int) (Straggler, verdict) {
	if !g.Intermittent {
		return Straggler{}, innocent
	}
	sp, ok := g.splitLateness(rank)
	if !ok {
		return Straggler{}, innocent
	}
	run, ok := g.oftenLate(rank, sp.limit)
	if !ok {
		return Straggler{}, innocent
	}
	s := g.straggler(rank, run)
	share := g.lateShares(sp.limit, run.from, run.to)
	o := Intermittent{Share: beyondOthers(share, rank)}
	matters := sp.late >= max(float64(g.Floor), minLate*s.took) && o.Share >= minOccasions && share[rank] <= maxOccasions
	if !matters || s.LostShare < occasionCost || !g.hasItsPart(&s, run) {
		return Straggler{}, innocent
	}
	s.P = min(1, float64(run.tried)*g.chanceOfLate(rank, sp.limit, run))
	if s.P > LikelyLevel {
		return Straggler{}, innocent
	}
	steps := g.lateSteps(rank, sp.limit, run)
	o.Steps = int(math.Round(o.Share * float64(s.SyncPoints)))
	o.Low, o.High = g.lateRange(rank, steps)
	o.When = g.pattern(steps)
	s.Intermittent, s.Bulk = &o, g.bulk(rank, run.from, run.to, nil)
	if s.P > ErrorLevel {
		return s, suspected
	}
	return s, guilty
}

// lateShares returns, by rank, the share of sync points [from, to) at which it is late by at least limit; 0 if it was
// absent from all.
func (g *SyncSamples) lateShares(limit float64, from, to int) []float64 {
	k := len(g.Names)
	late, here := make([]float64, k), make([]float64, k)
	for i := from * k; i < to*k; i++ {
		if d := g.late[i]; d != NoArrival {
			here[i%k]++
			if float64(d) >= limit {
				late[i%k]++
			}
		}
	}
	for r := range late {
		late[r] /= max(1, here[r])
	}
	return late
}

// beyondOthers returns the share of a rank's late steps without the mean share of the others. What interrupts the
// others is taken to interrupt this rank in its other steps, too.
func beyondOthers(share []float64, rank int) float64 {
	others := 0.0
	for r, v := range share {
		if r != rank {
			others += v / float64(len(share)-1)
		}
	}
	return (share[rank] - others) / max(1-others, 0.01)
}

// oftenLate divides the sync points where the share of late ones changes, and returns the costliest run of parts in
// which a rank is often late.
func (g *SyncSamples) oftenLate(rank int, limit float64) (slowRun, bool) {
	var is []bool
	var at []int // sync point of each
	for i := range g.SyncPoints {
		if d := g.late[i*len(g.Names)+rank]; d != NoArrival {
			is, at = append(is, float64(d) >= limit), append(at, i)
		}
	}
	part := changepoint.Count(is).Share
	changes := changepoint.Shares(is, changepoint.Options{Alpha: ErrorLevel, Keep: func(from, k, to int) bool {
		before, after := part(from, k), part(k, to)
		return math.Abs(after-before) >= max(minOccasions, max(before, after)/2)
	}})
	at = append(at, len(g.SyncPoints))
	for i := range changes {
		changes[i] = changes[i].Of(func(k int) int { return at[k] })
	}
	run, ok := g.costliest(rank, changes, false, func(from, to int) (slow, joined bool) {
		slow = beyondOthers(g.lateShares(limit, from, to), rank) >= minOccasions
		return slow, slow
	})
	whole := slowRun{to: len(g.SyncPoints), tried: run.tried}
	inRun, all := g.lateSteps(rank, limit, run), g.lateSteps(rank, limit, whole)
	if float64(inRun.count()) < nearlyAll*float64(all.count()) {
		return whole, true // the run is one burst of several
	}
	return run, ok
}

// lateSteps are the sync points of a run at which a rank was present, and whether it was late.
type lateSteps struct {
	at   []int // indexes into SyncPoints
	late []bool
}

func (g *SyncSamples) lateSteps(rank int, limit float64, run slowRun) lateSteps {
	var l lateSteps
	for i := run.from; i < run.to; i++ {
		if d := g.late[i*len(g.Names)+rank]; d != NoArrival {
			l.at, l.late = append(l.at, i), append(l.late, float64(d) >= limit)
		}
	}
	return l
}

// lateRange returns the 10th and the 90th percentile of the lateness in late steps, in ns.
func (g *SyncSamples) lateRange(rank int, l lateSteps) (low, high int64) {
	var late []int64
	for i, at := range l.at {
		if l.late[i] {
			late = append(late, g.late[at*len(g.Names)+rank])
		}
	}
	slices.Sort(late)
	return request.NearestRank(late, 10), request.NearestRank(late, 90)
}

// chanceOfLate bounds the probability that any rank is late so often if all are alike. Then, in a block of time, the
// shares of late steps may belong to the ranks in any order. So P is the probability of the sum of one share drawn
// from each block, by Chernoff's bound. If late steps persist over several blocks, the blocks are worth fewer
// independent ones, which reduces the exponent in proportion.
func (g *SyncSamples) chanceOfLate(rank int, limit float64, run slowRun) float64 {
	n := min(MaxBlocksJudged, (run.to-run.from)/MinInBlock)
	shares, excess, sum := make([][]float64, n), make([]float64, n), 0.0
	for b := range shares {
		shares[b] = g.lateShares(limit, run.from+b*(run.to-run.from)/n, run.from+(b+1)*(run.to-run.from)/n)
		excess[b] = shares[b][rank] - stat.Mean(shares[b], nil)
		sum += shares[b][rank]
	}
	worth := worthOf(excess)
	if worth < minWorth {
		return 1
	}
	least := chernoff(sum, func(theta float64) float64 {
		return order.Sum(shares, func(block []float64) float64 { return logMeanExp(theta, block) })
	})
	return min(1, float64(len(g.Names))*math.Exp(least*worth/float64(n)))
}
