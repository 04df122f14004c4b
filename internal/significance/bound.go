package significance

import (
	"math"

	"github.com/sgtrace/sgtrace/internal/order"
	"gonum.org/v1/gonum/stat/distuv"
)

// A Sample is one side of a comparison. [How] it is compared determines which field counts.
type Sample struct {
	Quantity Quantity
	Pieces   []Piece
}

// How selects the test that compares two samples.
type How uint8

const (
	ByScatter How = iota // quantities of many pieces, by compare
	ByRanks              // few pieces, by compareFew
	ByCapture            // each piece is a capture, by compareCaptures
)

// Compare compares two samples.
func (how How) Compare(before, after Sample) Change {
	switch how {
	case ByCapture:
		return compareCaptures(before.Pieces, after.Pieces)
	case ByRanks:
		return compareFew(before.Pieces, after.Pieces)
	}
	return compare(before.Quantity, after.Quantity)
}

// A Crossing is the evidence that a ratio is beyond a bound. P is the one-sided probability of observations
// like these, or worse, if the ratio is exactly the bound. Least is the smallest P that captures of this length
// could show, whatever happened in them: if that is above a level, nothing can be significant at that level.
// Both are NaN if the captures are too short for a test.
type Crossing struct{ P, Least float64 }

// Above tests whether after / before is above bound.
func (how How) Above(before, after Sample, bound float64) Crossing {
	c, least := how.against(before, after, bound)
	if c.Ratio > 1 {
		return Crossing{c.P / 2, least}
	}
	return Crossing{1 - c.P/2, least}
}

// Below tests whether after / before is below bound.
func (how How) Below(before, after Sample, bound float64) Crossing {
	c, least := how.against(before, after, bound)
	if c.Ratio < 1 {
		return Crossing{c.P / 2, least}
	}
	return Crossing{1 - c.P/2, least}
}

// against compares after with bound times before.
func (how How) against(before, after Sample, bound float64) (c Change, least float64) {
	before = Sample{before.Quantity.times(bound), times(before.Pieces, bound)}
	c = how.Compare(before, after)
	switch {
	case math.IsNaN(c.P) || math.IsNaN(c.Ratio):
		c.P, least = math.NaN(), math.NaN()
	case how == ByRanks:
		least = 1 / ways(len(quotients(before.Pieces)), len(quotients(after.Pieces)))
	case how == ByScatter:
		least = leastOf(&before.Quantity, &after.Quantity)
	}
	return c, least // least is 0: captures can be arbitrarily similar
}

// leastOf returns the smallest one-sided probability that two quantities could show: farther out, one of their
// intervals has no end, and no ratio is impossible.
func leastOf(before, after *Quantity) float64 {
	if !before.known() || !after.known() {
		return math.NaN()
	}
	k := min(before.reach, after.reach)
	if math.IsInf(k, 1) {
		return 0
	}
	return distuv.StudentsT{Sigma: 1, Nu: welch(before, after)}.CDF(-k)
}

// times returns a quantity multiplied by a factor.
func (q Quantity) times(factor float64) Quantity {
	if of := q.bounds; of != nil {
		q.bounds = func(k float64) (low, high float64) {
			low, high = of(k)
			return factor * low, factor * high
		}
	}
	q.Value, q.err = factor*q.Value, factor*q.err
	return q
}

// times returns pieces with sums multiplied by a factor.
func times(pieces []Piece, factor float64) []Piece {
	return order.Each(pieces, func(p Piece) Piece { return Piece{factor * p.Sum, p.Of} })
}

// compareCaptures compares a quantity whose pieces are the values of whole captures, several before and several
// after a change. The scatter among captures of one side is the scatter from day to day. It is Student's test
// on logarithms, with one variance for both sides. With fewer than four captures in all, or a capture without a
// value, P and the interval are NaN.
func compareCaptures(before, after []Piece) Change {
	x, y := quotients(before), quotients(after)
	c := Change{Ratio: math.NaN(), Low: math.NaN(), High: math.NaN(), P: math.NaN()}
	b, sb, okB := logarithms(x)
	a, sa, okA := logarithms(y)
	if !okB || !okA {
		return c
	}
	c.Ratio = math.Exp(a - b)
	freedom := float64(len(x) + len(y) - 2)
	if freedom < MinCaptures-2 {
		return c
	}
	err := math.Sqrt((sb + sa) / freedom * (1/float64(len(x)) + 1/float64(len(y))))
	t := distuv.StudentsT{Sigma: 1, Nu: freedom}
	k := t.Quantile((1 + confidence) / 2)
	c.Low, c.High = math.Exp(a-b-k*err), math.Exp(a-b+k*err)
	switch {
	case a == b:
		c.P = 1
	case err == 0:
		c.P = 0
	default:
		c.P = min(1, 2*t.CDF(-math.Abs(a-b)/err))
	}
	return c
}

// MinCaptures is the smallest number of captures on both sides together that shows how much days differ.
const MinCaptures = 4

// logarithms returns the mean of the logarithms of values, and the sum of their squared distances from it. ok
// is false if there are no values, or if one has no logarithm.
func logarithms(values []float64) (mean, squares float64, ok bool) {
	if len(values) == 0 {
		return 0, 0, false
	}
	for _, v := range values {
		if v <= 0 {
			return 0, 0, false
		}
		mean += math.Log(v) / float64(len(values))
	}
	for _, v := range values {
		squares += (math.Log(v) - mean) * (math.Log(v) - mean)
	}
	return mean, squares, true
}

// FewestPieces returns how many pieces the smaller of two captures needs so that compareFew can reach level,
// one-sided, if the other one has larger pieces.
func FewestPieces(larger int, level float64) int {
	n := 1
	for 1/ways(n, max(n, larger)) > level {
		n++
	}
	return n
}

// FewestValues returns how many independent values are needed so that the interval of a quantile has both ends
// at level, one-sided, with the given number of pieces.
func FewestValues(share, level float64, pieces int) int {
	k := distuv.StudentsT{Sigma: 1, Nu: float64(max(2, 2*pieces-2))}.Quantile(1 - level)
	beyond := min(share, 1-share)
	return int(math.Ceil(k * k * share * (1 - share) / (beyond * beyond)))
}

// AtLeast returns the probability that k or more of some independent events happen, whose probabilities are p:
// Poisson's binomial distribution, exactly.
func AtLeast(k int, p []float64) float64 {
	if k <= 0 {
		return 1
	}
	if k > len(p) {
		return 0
	}
	// happen[i] is the probability that i of the events so far have happened; happen[k] stands for k or more.
	happen := make([]float64, k+1)
	happen[0] = 1
	for _, one := range p {
		happen[k] += happen[k-1] * one
		for i := k - 1; i > 0; i-- {
			happen[i] = happen[i]*(1-one) + happen[i-1]*one
		}
		happen[0] *= 1 - one
	}
	return min(1, happen[k])
}

// AtLeastOf returns the probability that k or more of n independent events happen that all have the probability
// p.
func AtLeastOf(k, n int, p float64) float64 {
	return max(0, distuv.Binomial{N: float64(n), P: p}.Survival(float64(k-1)))
}
