package changepoint

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
)

// maxBlocks is the largest number of blocks in which the observations of a level are averaged. Neighbors
// resemble each other, so that this loses nothing that matters, and it makes long sequences cheap.
const maxBlocks = 400

// Levels finds changes in the mean rank of observations (Mann-Whitney), whatever their distribution.
func Levels(values []float64, o Options) []Change {
	return findBlocks(ranks(values), o)
}

// Excesses finds changes in the share of observations at or above limit: in the tail of their distribution.
// Consecutive high ones count once, as they may well be one crowd that waited together.
func Excesses(values []float64, limit float64, o Options) []Change {
	if len(values) == 0 {
		return nil
	}
	e := &excesses{draws: draws{trues: make([]float64, len(values)+1)}, high: make([]float64, len(values))}
	for i, v := range values {
		e.trues[i+1] = e.trues[i]
		if v < limit {
			continue
		}
		e.high[i] = 1
		if i == 0 || e.high[i-1] == 0 {
			e.trues[i+1]++
		}
	}
	e.dispersion = max(1, e.measure())
	return find(e, o)
}

// TailLimit returns the observation at which the tail begins: the one above the widest gap in the highest quarter,
// if that gap is a factor of 1.5 or more, else the highest tenth. Observations are positive.
func TailLimit(values []float64) float64 {
	const (
		fewest = 8
		wide   = 1.5
	)
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	if n == 0 {
		return 0
	}
	at, widest := max(0, n-max(1, n/10)), wide
	for i := 1 + 3*n/4; i <= n-max(fewest, n/100); i++ {
		if gap := sorted[i] / max(sorted[i-1], 1); gap > widest {
			at, widest = i, gap
		}
	}
	return sorted[at]
}

// excesses are high observations. A draw is true for a high observation that does not follow another high one.
type excesses struct {
	draws
	high []float64 // 1 for a high observation, else 0
}

func (e *excesses) least(from, to int) int { return leastLasting(to - from) }
func (e *excesses) shortest() int          { return shortestLasting(len(e.high)) }

// deviate returns the smaller of two deviates: of the draws, and of all high observations.
func (e *excesses) deviate(from, k, to int) float64 {
	size := (to - from + maxBlocks - 1) / maxBlocks
	c := compare(inBlocks(e.high[from:k], size), inBlocks(e.high[k:to], size))
	return min(c.deviate, e.draws.deviate(from, k, to))
}

// Compare reports whether the level of a sequence differs after a place that was not searched for. p is the
// probability of such a difference if nothing changed. delta is Cliff's: the probability that a later
// observation is larger than an earlier one, minus that of the opposite.
//
// The scatter is that of the steadier side: if nothing changed, either side would do, and a queue that grows
// without end is no measure.
func Compare(before, after []float64) (p, delta float64) {
	if len(before) == 0 || len(after) == 0 {
		return 1, 0
	}
	scores := ranks(slices.Concat(before, after))
	size := (len(scores) + maxBlocks - 1) / maxBlocks
	b, a := side(inBlocks(scores[:len(before)], size)), side(inBlocks(scores[len(before):], size))
	steady, n, other := b, len(before), len(after)
	if a.worth > b.worth {
		steady, n, other = a, other, n
	}
	if steady.worth < independent {
		return 1, 0
	}
	worth := float64(other) / (float64(n) / steady.worth) // if the other side were as steady
	deviation := math.Sqrt(steady.variance * (steady.worth - 1) * (1/steady.worth + 1/worth))
	shift := order.Mean(scores[len(before):]) - order.Mean(scores[:len(before)])
	if shift == 0 {
		return 1, 0 // if all values are the same, the deviation is zero
	}
	// Means of ranks are rounded, even if the sides do not overlap.
	delta = min(max(2*shift, -1), 1)
	return twoSided(normal(math.Abs(shift)/deviation, steady.worth-1)), delta
}

// ranks returns the rank of every value, from -0.5 for the lowest to 0.5 for the highest. Equal values share
// the mean of their ranks.
func ranks(values []float64) []float64 {
	keys := make([]order.Key, len(values))
	for i, v := range values {
		keys[i] = order.Key{Time: order.Float(v), Index: uint32(i)}
	}
	keys, _ = order.ByTime(keys, nil)
	ranks := make([]float64, len(values))
	for from := 0; from < len(keys); {
		to := from + 1
		for to < len(keys) && values[keys[to].Index] == values[keys[from].Index] {
			to++
		}
		for _, k := range keys[from:to] {
			ranks[k.Index] = float64(from+to)/2/float64(len(values)) - 0.5
		}
		from = to
	}
	return ranks
}

// inBlocks returns the means of blocks of size values.
func inBlocks(x []float64, size int) []float64 {
	if size <= 1 {
		return x
	}
	var means []float64
	for block := range slices.Chunk(x, size) {
		means = append(means, order.Mean(block))
	}
	return means
}

// scores is a sequence whose mean may change.
type scores struct {
	values       []float64
	sums, powers []float64 // of the values before each, and of their squares
}

func newScores(values []float64) *scores {
	s := &scores{values: values, sums: make([]float64, len(values)+1), powers: make([]float64, len(values)+1)}
	for i, v := range values {
		s.sums[i+1] = s.sums[i] + v
		s.powers[i+1] = s.powers[i] + v*v
	}
	return s
}

func (s *scores) len() int { return len(s.values) }

// A change of a latency lasts; a busy spell does not. So a window is a quarter of the sequence or more, and
// either side at least a tenth of the window.
func leastLasting(window int) int { return max(5, window/10) }
func shortestLasting(all int) int { return max(40, all/4) }

func (s *scores) least(from, to int) int { return leastLasting(to - from) }
func (s *scores) shortest() int          { return shortestLasting(len(s.values)) }

func (s *scores) mostGain(_, _ int) float64 { return math.Inf(1) }

func (s *scores) bound(_, _, _ int) float64 { return math.Inf(1) }

// between returns the part of the sum of squares that a split explains.
func (s *scores) between(from, k, to int) float64 {
	n, m := float64(k-from), float64(to-k)
	apart := (s.sums[to]-s.sums[k])/m - (s.sums[k]-s.sums[from])/n
	return apart * apart / (1/n + 1/m)
}

// gain returns the square of Student's t.
func (s *scores) gain(from, k, to int) float64 {
	n := float64(to - from)
	sum := s.sums[to] - s.sums[from]
	all := s.powers[to] - s.powers[from] - sum*sum/n
	explained := s.between(from, k, to)
	if explained <= 1e-12*n {
		return 0 // the scores are practically equal
	}
	return explained / max(all-explained, 1e-12*n) * (n - 2)
}

func (s *scores) deviate(from, k, to int) float64 {
	return compare(s.values[from:k], s.values[k:to]).deviate
}

func (s *scores) loss(from, k, to int) func(int) float64 {
	c := compare(s.values[from:k], s.values[k:to])
	best, unit := s.between(from, k, to), max(c.variance*c.tau, 1e-12)
	return func(other int) float64 { return (best - s.between(from, other, to)) / unit }
}

// findBlocks finds the changes of the mean of scores.
func findBlocks(values []float64, o Options) []Change {
	size := max(1, (len(values)+maxBlocks-1)/maxBlocks)
	place := func(block int) int { return min(block*size, len(values)) }
	ofBlocks := o
	if o.Keep != nil {
		ofBlocks.Keep = func(from, k, to int) bool { return o.Keep(place(from), place(k), place(to)) }
	}
	found := find(newScores(inBlocks(values, size)), ofBlocks)
	for i := range found {
		c := &found[i]
		c.From, c.To = place(c.From), place(c.To)
		c.At, c.First, c.Last = place(c.At), max(1, place(c.First)-size+1), min(len(values)-1, place(c.Last)+size-1)
	}
	return found
}
