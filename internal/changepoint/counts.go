package changepoint

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
)

// Either side of a change of a rate or a share has at least minEvents events. A window that is searched on its
// own has at least 1/finest of all events.
const (
	minEvents = 8
	finest    = 1000
)

// Rates finds changes in the rate of events, at times in order in [from, to], by the likelihood ratio of two
// Poisson processes against one. A change at k lies between the events k-1 and k.
func Rates(times []float64, from, to float64, o Options) []Change {
	n := len(times)
	if n < 2*minEvents || to <= from {
		return nil
	}
	a := &arrivals{times: times, at: make([]float64, n+1)}
	a.at[0], a.at[n] = from, to
	for k := 1; k < n; k++ {
		a.at[k] = (times[k-1] + times[k]) / 2
	}
	a.dispersion = max(1, a.measure())
	a.briefest = (1 + a.dispersion) * (to - from) / float64(n)
	return find(a, o)
}

// arrivals are the events of a Poisson process.
type arrivals struct {
	times []float64
	at    []float64 // the time of a change at k
	// dispersion is the variance of the numbers of events, relative to a Poisson process.
	dispersion float64
	// briefest is the shortest time that a side of a change may take: several events at one time are a batch, not a
	// rate.
	briefest float64
}

func (a *arrivals) len() int           { return len(a.times) }
func (a *arrivals) least(_, _ int) int { return minEvents }
func (a *arrivals) shortest() int      { return max(2*minEvents, len(a.times)/finest) }

// gain returns twice the logarithm of the likelihood ratio, divided by the dispersion.
func (a *arrivals) gain(from, k, to int) float64 {
	before, after := max(a.at[k]-a.at[from], a.briefest), max(a.at[to]-a.at[k], a.briefest)
	rate := float64(to-from) / (before + after)
	return 2 * (surprise(float64(k-from), rate*before) + surprise(float64(to-k), rate*after)) / a.dispersion
}

// surprise returns x ln(x/expected), 0 for x = 0.
func surprise(x, expected float64) float64 {
	if x <= 0 {
		return 0
	}
	return x * math.Log(x/expected)
}

// mostSurprise is an upper bound of surprise(x, expected), by ln z <= z-1, safe against rounding.
func mostSurprise(x, expected float64) float64 {
	const rounding = 1e-9
	return x*(x/expected-1) + rounding*x
}

func (a *arrivals) mostGain(_, _ int) float64 { return math.Inf(1) }

func (a *arrivals) bound(from, k, to int) float64 {
	before, after := max(a.at[k]-a.at[from], a.briefest), max(a.at[to]-a.at[k], a.briefest)
	rate := float64(to-from) / (before + after)
	return 2 * (mostSurprise(float64(k-from), rate*before) + mostSurprise(float64(to-k), rate*after)) / a.dispersion
}

func (a *arrivals) deviate(from, k, to int) float64 { return math.Sqrt(max(0, a.gain(from, k, to))) }

func (a *arrivals) loss(from, k, to int) func(int) float64 {
	best := a.gain(from, k, to)
	return func(other int) float64 { return best - a.gain(from, other, to) }
}

// measure estimates the dispersion twice, and returns the larger result. The gaps between events show batches,
// and slow changes of the rate do not disturb them. Cells of equal length show what goes on over longer times:
// the root of the number of events in a cell has a standard deviation of 1/2, whatever the rate.
func (a *arrivals) measure() float64 {
	n := len(a.times)
	relativeError := math.Sqrt(8 / float64(n)) // of the variation of exponential gaps
	phi := gapVariation(a.times) * max(0, 1-relativeError)
	perEvent := (a.at[n] - a.at[0]) / float64(n)
	return max(phi, dispersion(n, func(events int, offset float64) []float64 {
		width := perEvent * float64(events)
		roots := make([]float64, max(0, int(float64(n)/float64(events)-offset)))
		i := 0
		for cell := range roots {
			start := a.at[0] + width*(float64(cell)+offset)
			for i < n && a.times[i] < start {
				i++
			}
			first := i
			for i < n && a.times[i] < start+width {
				i++
			}
			roots[cell] = 2 * math.Sqrt(float64(i-first)+3./8)
		}
		return roots
	}))
}

// gapVariation returns the squared coefficient of variation of the gaps between events. It is 1 for a Poisson
// process, and 2 b - 1 for batches of b events on average, which is also the dispersion of their counts.
func gapVariation(times []float64) float64 {
	n, sum, squares := float64(len(times)-1), 0.0, 0.0
	for i, t := range times[1:] {
		gap := t - times[i]
		sum += gap
		squares += gap * gap
	}
	if sum == 0 {
		return 1
	}
	return squares*n/(sum*sum) - 1
}

// dispersion returns how much more cells of observations vary than cells of independent ones would: the largest
// result for cells of 8, 16, 32, ... observations, as far as there are enough cells. cells returns a number for
// each cell, with variance 1 if observations are independent. Cells begin at the first observation, a quarter
// of a cell later, and so on. The estimate is the mean square of the differences between neighboring cells,
// without the largest, which may be changes.
func dispersion(n int, cells func(size int, offset float64) []float64) float64 {
	const (
		enough = 24
		kept   = 0.85
		mean   = 0.5206 // of chi-squared with one degree of freedom, below the quantile that is kept
	)
	most := 0.0
	for size := minEvents; size*enough <= n; size *= 2 {
		var squares []float64
		for _, offset := range []float64{0, 0.25, 0.5, 0.75} {
			x := cells(size, offset)
			for i := range x[1:] {
				squares = append(squares, (x[i+1]-x[i])*(x[i+1]-x[i])/2)
			}
		}
		slices.Sort(squares)
		most = max(most, order.Mean(squares[:int(kept*float64(len(squares)))])/mean)
	}
	return most
}

// Crowd returns the first and the last observation of the run in which trues outnumber the rest most. ok
// requires that at least fewest observations come before the run, and that nearly all trues are in it. No test
// tells one crowd from several, but nobody needs one.
func Crowd(is []bool, fewest int) (first, last int, ok bool) {
	const elsewhere = 0.1      // largest share of trues outside the run
	sum, most, from := 0, 0, 0 // sum: trues minus the others since from
	trues, inside := 0, 0
	for i, yes := range is {
		if sum <= 0 {
			sum, from = 0, i
		}
		if yes {
			sum++
			trues++
		} else {
			sum--
		}
		if sum > most {
			most, first, last = sum, from, i
		}
	}
	for _, yes := range is[first:min(last+1, len(is))] {
		if yes {
			inside++
		}
	}
	return first, last, most > 0 && first >= fewest && float64(trues-inside) <= elsewhere*float64(trues)
}

// Shares finds changes in the share of observations that are true, by the likelihood ratio of two binomial
// distributions against one.
func Shares(is []bool, o Options) []Change {
	if len(is) < 2*minEvents {
		return nil
	}
	d := &draws{trues: make([]float64, len(is)+1)}
	for i, yes := range is {
		d.trues[i+1] = d.trues[i]
		if yes {
			d.trues[i+1]++
		}
	}
	// Round-robin draws, as routers make them, vary less than random ones. The bound keeps a single draw out of
	// turn from being a change.
	const steadiest = 0.25
	d.dispersion = max(steadiest, d.measure())
	return find(d, o)
}

// Trues are the numbers of true trials before each trial, and before the end.
type Trues []int

// Count counts trials.
func Count(is []bool) Trues {
	t := Trues(memory.Make[int](len(is) + 1))
	for i, yes := range is {
		t[i+1] = t[i]
		if yes {
			t[i+1]++
		}
	}
	return t
}

// In returns the number of true trials in [from, to).
func (t Trues) In(from, to int) int { return t[to] - t[from] }

// Share returns the share of the trials [from, to) that is true; NaN if there are none.
func (t Trues) Share(from, to int) float64 { return float64(t.In(from, to)) / float64(to-from) }

// draws are trials that are true or false.
type draws struct {
	trues      []float64 // number before each draw
	dispersion float64   // variance of their shares, relative to independent draws
}

func (d *draws) len() int           { return len(d.trues) - 1 }
func (d *draws) least(_, _ int) int { return minEvents }
func (d *draws) shortest() int      { return max(4*minEvents, d.len()/finest) }

// gain returns twice the logarithm of the likelihood ratio, over the dispersion.
func (d *draws) gain(from, k, to int) float64 {
	n, m := float64(k-from), float64(to-k)
	x, y := d.trues[k]-d.trues[from], d.trues[to]-d.trues[k]
	share := (x + y) / (n + m)
	trues := surprise(x, n*share) + surprise(y, m*share)
	others := surprise(n-x, n*(1-share)) + surprise(m-y, m*(1-share))
	return 2 * (trues + others) / d.dispersion
}

// mostGain returns the gain of a split that has all trues on one side. It rules out nearly all windows where
// one of hundreds of places is drawn: they have too few trues to be significant.
func (d *draws) mostGain(from, to int) float64 {
	n, x := float64(to-from), d.trues[to]-d.trues[from]
	return 2 * (surprise(x, x*x/n) + surprise(n-x, (n-x)*(n-x)/n)) / d.dispersion
}

func (d *draws) bound(_, _, _ int) float64 { return math.Inf(1) }

func (d *draws) deviate(from, k, to int) float64 { return math.Sqrt(max(0, d.gain(from, k, to))) }

func (d *draws) loss(from, k, to int) func(int) float64 {
	best := d.gain(from, k, to)
	return func(other int) float64 { return best - d.gain(from, other, to) }
}

// measure estimates the dispersion twice, and returns the larger result: once from the correlation of
// successive draws, as a first-order autoregression, and once from the shares of cells. The arc sine of the
// root of a share of n has a standard deviation of 1/(2 root n), whatever the share. Sessions whose requests
// all go to one place make the dispersion large.
func (d *draws) measure() float64 {
	n := d.len()
	cells := dispersion(n, func(size int, offset float64) []float64 {
		var x []float64
		for i := int(offset * float64(size)); i+size <= n; i += size {
			share := (d.trues[i+size] - d.trues[i] + 3./8) / (float64(size) + 3./4)
			x = append(x, 2*math.Sqrt(float64(size)+0.5)*math.Asin(math.Sqrt(share)))
		}
		return x
	})
	left := make([]float64, n)
	share := d.trues[n] / float64(n)
	for i := range left {
		left[i] = d.trues[i+1] - d.trues[i] - share
	}
	power := dot(left, left)
	if power == 0 {
		return cells
	}
	rho := min(dot(left[1:], left[:n-1])/power, 0.99)
	return max(cells, (1+rho)/(1-rho))
}
