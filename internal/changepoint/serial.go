package changepoint

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
)

// A mean is the mean of observations whose neighbors may resemble each other.
type mean struct {
	value    float64
	variance float64 // of value
	// worth is the number of independent observations that would be worth as much.
	worth float64
}

// correlationTime returns the number of neighboring observations that are worth one independent one, given the
// residuals after the means are removed.
//
// It is tau = 1 + 2 sum rho(lag), and the variance of a mean of n observations is that of one, times tau/n. It
// is the larger of two estimates: that of a first-order autoregression, (1+rho)/(1-rho), and the sum of the
// measured correlations up to a lag of three times itself (Sokal's window: Monte Carlo Methods in Statistical
// Mechanics, 1997, section 3). Correlations of short sequences come out too small, by (1+3rho)/n for every mean
// that was removed (Kendall, Biometrika 41, 1954), and are corrected for that.
func correlationTime(residuals []float64, means int) float64 {
	n := float64(len(residuals))
	power := dot(residuals, residuals)
	if power == 0 {
		return 1
	}
	rho := dot(residuals[1:], residuals[:len(residuals)-1]) / power
	rho += float64(means) * (1 + 3*rho) / n
	rho = min(max(rho, 0), 1-2*float64(means)/n)
	tau := (1 + rho) / (1 - rho)

	sum := 1.0
	for lag := 1; lag < len(residuals)/2 && float64(lag) < 3*sum; lag++ {
		sum += 2 * dot(residuals[lag:], residuals[:len(residuals)-lag]) / power
	}
	sum /= max(0.2, 1-2*float64(means)*sum/n)
	return max(1, tau, sum)
}

func dot(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

// side measures observations on their own.
func side(x []float64) mean {
	m := mean{worth: float64(len(x))}
	for _, v := range x {
		m.value += v / m.worth
	}
	// Means of equal values are rounded differently, which would look like strongly correlated neighbors.
	const rounding = 1e-12
	same := !slices.ContainsFunc(x, func(v float64) bool { return math.Abs(v-x[0]) > rounding*max(1, math.Abs(x[0])) })
	if same {
		m.value = x[0]
	}
	left := make([]float64, len(x))
	for i, v := range x {
		if !same {
			left[i] = v - m.value
		}
	}
	m.worth /= correlationTime(left, 1)
	m.variance = dot(left, left) / float64(len(x)) / max(m.worth-1, 0.5)
	return m
}

// independent is the smallest number of independent observations that either side of a change must be worth:
// with fewer, one crowd of requests that waited together looks like a change.
const independent = 5

// A contrast is the difference of the means before and after a split.
type contrast struct {
	deviate float64 // normal
	// variance is that of an observation after the means are removed, and tau the correlation time of the
	// residuals.
	variance, tau float64
}

// compare estimates the variance of the difference twice: from both sides together, which is steadier, and from
// each alone (Welch), since a queue that has filled up is far less steady than an empty one. The smaller
// deviate counts.
func compare(before, after []float64) contrast {
	b, a := side(before), side(after)
	left := order.Each(before, func(v float64) float64 { return v - b.value })
	for _, v := range after {
		left = append(left, v-a.value)
	}
	n := float64(len(left))
	c := contrast{variance: dot(left, left) / max(1, n-2), tau: correlationTime(left, 2)}
	apart := math.Abs(a.value - b.value)
	switch {
	case apart == 0 || min(b.worth, a.worth) < independent:
		return c
	case c.variance == 0:
		c.deviate = farthest
		return c
	}
	together := c.variance * c.tau * (1/float64(len(before)) + 1/float64(len(after)))
	separate := b.variance + a.variance
	freedom := separate * separate / (b.variance*b.variance/(b.worth-1) + a.variance*a.variance/(a.worth-1))
	c.deviate = min(
		normal(apart/math.Sqrt(together), max(1, n/c.tau-2)),
		normal(apart/math.Sqrt(separate), max(1, freedom)),
	)
	return c
}
