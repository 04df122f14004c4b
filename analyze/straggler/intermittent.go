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

// A rank may be late in some of its steps only: a few ms in one step of seven. On average
// that may be too little to matter, and "535 of 1,211 steps, 1.32 ms late" tells nobody what
// happens. So the lateness of each rank is split in two, late and on time, wherever two
// groups are apart. Late steps are then judged like lateness is: by blocks of time, against
// those of the other ranks, which are interrupted now and then, too.
const (
	minOccasions = 0.04   // part of the steps that are late, beyond what the others have
	maxOccasions = 0.75   // with more, it is a rank that is late as a rule
	minLate      = 0.04   // of a step, that a late one is late by
	minApart     = 3      // difference of the medians of both groups, in their spreads
	occasionCost = 0.0025 // part of their time that the others have to lose
	nearlyAll    = 0.9    // part of all late steps that a time in which a rank is often late has
)

// Intermittent tells when a straggler is late that is not always.
type Intermittent struct {
	// Steps in which it is late, and what part of its steps that is. Steps in which
	// the other ranks are as late, on average, are taken off.
	Steps     int
	Share     float64
	Low, High int64 // 10th and 90th percentile of the lateness in those, ns
	When      Pattern
}

// A split divides the lateness of a rank.
type split struct {
	limit         float64 // from here on it is late, ns
	early, late   float64 // medians of both groups, ns
	early0, late0 float64 // their spreads: median absolute deviations, ns
}

// splitLateness finds the two groups of a rank's lateness, and reports whether they are
// apart, with the first one on time.
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
		// Midway, but lower where late steps differ much in how late they are.
		s.limit = max(s.early+6*s.early0, min((s.early+s.late)/2, s.late-4*s.late0))
	}
	onTime := s.early <= max(float64(g.Floor), (s.late-s.early)/4)
	return s, onTime && s.late-s.early >= minApart*(s.early0+s.late0)
}

// latenessOf returns the lateness of a rank wherever it was, in ns.
func (g *SyncSamples) latenessOf(rank int) []float64 {
	var d []float64
	for i := range g.SyncPoints {
		if l := g.late[i*len(g.Names)+rank]; l != NoArrival {
			d = append(d, float64(l))
		}
	}
	return d
}

// widest returns the first value of the upper one of the two groups of sorted values whose
// means are most certainly apart (Otsu's method).
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

// spread returns the median of sorted values and the median deviation from it, which is
// least at least.
func spread(sorted []float64, least float64) (median, deviation float64) {
	median = sorted[len(sorted)/2]
	off := order.Each(sorted, func(v float64) float64 { return math.Abs(v - median) })
	return median, max(least, distribution.LowerMedian(off))
}

// occasional judges whether a rank is late in some of its steps, all the time or in a
// part of it.
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

// lateShares returns in which part of the sync points [from, to) each rank is late by a
// limit; 0 where it never was there.
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

// beyondOthers returns the share of a rank without what is usual of the others. What
// interrupts them interrupts this rank in its steps on time, too.
func beyondOthers(share []float64, rank int) float64 {
	others := 0.0
	for r, v := range share {
		if r != rank {
			others += v / float64(len(share)-1)
		}
	}
	return (share[rank] - others) / max(1-others, 0.01)
}

// oftenLate divides the sync points where the share of late ones changed, and returns
// the run of parts in which a rank is often late that costs most.
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

// lateSteps are the sync points of a run at which a rank was, and whether it was late.
type lateSteps struct {
	at   []int // in SyncPoints
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

// lateRange returns the 10th and the 90th percentile of how late a rank is where it is.
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

// chanceOfLate bounds the probability that any of the ranks is late so often if all
// are alike. In a block of time, who was late how often is then in any order of the
// ranks; so P is that of a sum of one number drawn from each block, bounded by
// Chernoff's inequality. Late steps that last over several blocks make these worth fewer,
// and the exponent as much smaller.
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
