package significance

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Change is the difference of a quantity between two captures.
type Change struct {
	Ratio float64 // after / before; NaN if one of them is 0
	// Low and High bound Ratio with a confidence of 95 %; 0 and +Inf are no bound. NaN means that the captures are
	// too short for a test.
	Low, High float64
	// P is the probability of a difference of this size by chance; NaN as above.
	P float64
}

// confidence is the confidence of the intervals.
const confidence = 0.95

// farthest is a deviate beyond all doubt.
const farthest = 1e6

// compare compares two quantities. It combines the sides of their intervals that face each other, on the scale
// of logarithms (Zou and Donner, Statistics in Medicine 27, 2008), with Student's t and Welch's degrees of
// freedom. P is the level at which the resulting interval would reach the ratio 1, so that the two always
// agree.
//
// For means, the end of the interval that faces 1 is also that of the plain difference, if that is nearer: a
// capture in which by chance no queue built up has a small mean that looks exact, and its logarithm would be
// far from any other.
func compare(before, after Quantity) Change {
	c := Change{Ratio: math.NaN(), Low: math.NaN(), High: math.NaN(), P: math.NaN()}
	if before.Value > 0 && after.Value > 0 {
		c.Ratio = after.Value / before.Value
	}
	if !before.known() || !after.known() {
		return c
	}
	t := distuv.StudentsT{Sigma: 1, Nu: welch(&before, &after)}
	c.Low, c.High = bounds(&before, &after, t.Quantile((1+confidence)/2))
	if c.Low == 0 && math.IsInf(c.High, 1) { // no bounds at all
		c.Low, c.High = math.NaN(), math.NaN()
		return c
	}
	c.P = min(1, 2*t.CDF(-reach(&before, &after)))
	return c
}

// bounds returns the ends of the interval of k standard errors around the ratio of the values.
func bounds(before, after *Quantity, k float64) (low, high float64) {
	d := math.Log(after.Value / before.Value)
	beforeLow, beforeHigh := before.bounds(k)
	afterLow, afterHigh := after.bounds(k)
	low = d - math.Hypot(math.Log(after.Value/afterLow), math.Log(beforeHigh/before.Value))
	high = d + math.Hypot(math.Log(afterHigh/after.Value), math.Log(before.Value/beforeLow))
	low, high = math.Exp(low), math.Exp(high)
	plain := k * math.Hypot(before.err, after.err) / before.Value
	if ratio := after.Value / before.Value; ratio > 1 {
		low = min(low, max(0, ratio-plain))
	} else {
		high = max(high, ratio+plain)
	}
	return low, high
}

// reach returns the number of standard errors at which the interval reaches 1.
func reach(before, after *Quantity) float64 {
	if before.Value == after.Value {
		return 0
	}
	holds := func(k float64) bool {
		low, high := bounds(before, after, k)
		return low <= 1 && high >= 1
	}
	if !holds(farthest) {
		return farthest
	}
	from, to := 0.0, 1.0
	for !holds(to) {
		from, to = to, 2*to
	}
	for range 40 {
		if middle := (from + to) / 2; holds(middle) {
			to = middle
		} else {
			from = middle
		}
	}
	return from
}

// welch returns the degrees of freedom of the difference of two estimates with different errors, by their
// intervals at one standard error; the smaller of the two degrees of freedom if an interval has no bound.
func welch(before, after *Quantity) float64 {
	least := min(before.freedom, after.freedom)
	width := func(q *Quantity) float64 {
		low, high := q.bounds(1)
		return math.Log(high/low) / 2
	}
	b, a := width(before)*width(before), width(after)*width(after)
	if math.IsInf(a+b, 0) || a+b == 0 {
		return least
	}
	return max(least, (b+a)*(b+a)/(b*b/before.freedom+a*a/after.freedom))
}

// Appeared returns the probability by chance that something shows in seen of the pieces of one capture, and in
// no piece of the other: Fisher's exact test, two-sided.
func Appeared(seen, pieces, otherPieces int) float64 {
	p := 2.0
	for i := range seen {
		p *= float64(pieces-i) / float64(pieces+otherPieces-i)
	}
	return min(1, p)
}

// Holm adjusts probabilities for having asked all questions at once: the probability that any result is below
// 0.05 is at most 0.05 if nothing differs, however the questions depend on each other (Holm, Scandinavian
// Journal of Statistics 6, 1979). NaN is a question that could not be asked; it stays, and costs nothing.
func Holm(p []float64) []float64 {
	out := slices.Clone(p)
	order := sortedKnown(p)
	worst := 0.0
	for rank, i := range order {
		worst = max(worst, min(1, p[i]*float64(len(order)-rank)))
		out[i] = worst
	}
	return out
}
