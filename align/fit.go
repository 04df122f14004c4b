package align

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/sgtrace/sgtrace/internal/order"
)

// How certain a fit is. A bound is the sum of three parts:
//
//   - noise: the standard error of the fitted line, times the factor of Student's t for 99 %. Standard errors are
//     enlarged where successive residuals are correlated, as with noise that does not average out.
//   - system: what no number of matches averages out. Ranks at one end of a ring may always end later; this part is
//     the largest of how far the ranks of one host are apart systematically, half the noise of one match, and
//     systemFloor, plus the deviation of the residuals from a line.
//   - drift: how far off the drift may be, times the time from the center.
const (
	// priorSigma and priorWeight: before any match, ends are expected to be priorSigma apart, with
	// the weight of priorWeight matches. This determines the bound of a single match.
	priorSigma  = 3000.0 // ns
	priorWeight = 2.0

	systemFloor = 1000.0 // ns

	// A drift is used if it is known to minDriftError and is more than driftSigmas of its errors
	// away from zero. Otherwise it is zero, and the bound covers the error of that.
	minDriftError = 0.5e-6
	driftSigmas   = 4.0

	steepest = 500e-6 // steeper lines are not clocks; checked where fits begin

	trimMAD   = 5.0   // residuals beyond this many MADs are left out ...
	trimFloor = 1000. // ... unless they are within this many ns
	confident = 0.995 // quantile for two-sided 99 %
)

// A sample is one collective that was seen on both sides of an edge, in the times of these sides.
type sample struct {
	match          int32
	a, b           int64 // median end of the side's ranks
	startA, startB int64 // last start
	endA, endB     int64 // first end
}

// An edge is what the collectives of two clocks show: at time `at` of a, b is ahead by off, which grows by slope.
type edge struct {
	a, b    int // clocks, or sets of clocks that are related to each other
	samples []sample
	inliers int

	at, off   int64
	slope     float64
	seOff     float64 // ns
	seSlope   float64
	df        float64 // degrees of freedom of both errors
	sigma     float64 // ns; standard deviation of one match
	mad       float64 // ns
	misfit    float64 // ns; deviation of the residuals from a line
	from, to  int64   // times of the first and last sample on a
	asymmetry float64 // ns; see system
}

// system returns the part of the bound that does not average out over matches.
func (e *edge) system() float64 {
	return max(systemFloor, e.sigma/2, e.asymmetry) + e.misfit
}

// driftError returns how far slope may be from the truth.
func (e *edge) driftError() float64 {
	return min(maxDrift, tFactor(e.df)*e.seSlope)
}

// bound returns how far off the edge may be at `at`.
func (e *edge) bound() float64 { return tFactor(e.df)*e.seOff + e.system() }

// tFactor returns how many standard errors cover 99 % at the given degrees of freedom.
func tFactor(df float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: min(df, 1000)}.Quantile(confident)
}

// fit fills in e from its samples, and sorts them.
func (e *edge) fit() {
	slices.SortFunc(e.samples, compareSamples)
	n := len(e.samples)
	e.from, e.to = e.samples[0].a, e.samples[n-1].a
	e.at = e.from + (e.to-e.from)/2
	diffs := make([]int64, n)
	for i, s := range e.samples {
		diffs[i] = s.b - s.a
	}
	slices.Sort(diffs)
	e.off = diffs[n/2]
	x, y := make([]float64, n), make([]float64, n)
	for i, s := range e.samples {
		x[i] = float64(s.a - e.at)
		y[i] = float64(s.b - s.a - e.off)
	}
	slope := robustSlope(x, y)
	inX, inY := trim(x, y, slope, &e.mad)
	for range 4 {
		var ok bool
		if slope, ok = leastSquares(inX, inY, slope); !ok {
			break
		}
		nextX, nextY := trim(x, y, slope, &e.mad)
		done := len(nextX) == len(inX)
		if inX, inY = nextX, nextY; done {
			break
		}
	}
	e.conclude(inX, inY, slope)
}

func compareSamples(p, q sample) int {
	return cmp.Or(cmp.Compare(p.a, q.a), cmp.Compare(p.b, q.b), cmp.Compare(p.match, q.match))
}

// robustSlope returns the Theil-Sen slope of y over x, from pairs that are at least a quarter
// of the span apart; with many samples, from some of these pairs. x is ascending.
func robustSlope(x, y []float64) float64 {
	n := len(x)
	span := x[n-1] - x[0]
	if n < 3 || span <= 0 {
		return 0
	}
	var lags []int
	if n <= 300 {
		for lag := 1; lag < n; lag++ {
			lags = append(lags, lag)
		}
	} else {
		lags = []int{n / 4, n / 3, n / 2, n * 2 / 3, n * 3 / 4}
	}
	var slopes []float64
	for _, lag := range lags {
		for i := 0; i+lag < n; i++ {
			if dx := x[i+lag] - x[i]; dx >= span/4 {
				slopes = append(slopes, (y[i+lag]-y[i])/dx)
			}
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	if s := order.SortedMedian(slopes); math.Abs(s) <= steepest {
		return s
	}
	return 0
}

// trim returns the samples near the line with a slope, and sets mad to the median absolute deviation.
func trim(x, y []float64, slope float64, mad *float64) (inX, inY []float64) {
	r := make([]float64, len(x))
	for i := range x {
		r[i] = y[i] - slope*x[i]
	}
	center := order.Median(r)
	for i := range r {
		r[i] = math.Abs(r[i] - center)
	}
	*mad = order.Median(r)
	limit := max(trimMAD**mad, trimFloor)
	for i := range r {
		if r[i] <= limit {
			inX, inY = append(inX, x[i]), append(inY, y[i])
		}
	}
	return inX, inY
}

// leastSquares returns the slope of y over x, or a fallback and false if there is none.
func leastSquares(x, y []float64, old float64) (slope float64, ok bool) {
	mx, my := mean(x), mean(y)
	var sxx, sxy float64
	for i := range x {
		sxx += (x[i] - mx) * (x[i] - mx)
		sxy += (x[i] - mx) * (y[i] - my)
	}
	if len(x) < 3 || sxx <= 0 {
		return old, false
	}
	slope = sxy / sxx
	if math.Abs(slope) > steepest {
		return 0, false
	}
	return slope, true
}

// conclude computes the line and its errors from the remaining samples.
func (e *edge) conclude(x, y []float64, slope float64) {
	n := float64(len(x))
	e.inliers = len(x)
	e.slope = slope
	mx, my := mean(x), mean(y)
	e.at += int64(math.Round(mx))
	e.off += int64(math.Round(my))
	r := make([]float64, len(x))
	var sxx, ss float64
	for i := range x {
		r[i] = y[i] - my - slope*(x[i]-mx)
		sxx += (x[i] - mx) * (x[i] - mx)
		ss += r[i] * r[i]
	}
	e.df = max(priorWeight, n-2+priorWeight)
	e.sigma = math.Sqrt((ss + priorWeight*priorSigma*priorSigma) / (n + priorWeight))
	inflated := e.sigma * math.Sqrt(inflation(r))
	e.seOff = inflated / math.Sqrt(n)
	e.seSlope = maxDrift / 2
	if sxx > 0 && n >= 3 {
		e.seSlope = min(e.seSlope, inflated/math.Sqrt(sxx))
	}
	if e.seSlope >= maxDrift/2 {
		e.slope = 0 // less informative than the limit on real clocks
	}
	e.misfit = misfit(r)
}

// inflation returns the factor by which the variance of the mean of r is larger than with independent values:
// (1+p)/(1-p) for a first-order autoregressive process, where p is the correlation of neighbors if that is significant.
func inflation(r []float64) float64 {
	var c0, c1 float64
	for i := range r {
		c0 += r[i] * r[i]
		if i > 0 {
			c1 += r[i] * r[i-1]
		}
	}
	if len(r) < 8 || c0 == 0 {
		return 1
	}
	p := min(c1/c0, 0.98)
	if p < 2/math.Sqrt(float64(len(r))) {
		return 1
	}
	return (1 + p) / (1 - p)
}

// misfit returns by how much the means of eighths of r differ from zero beyond noise:
// temperature makes clocks wander, but not along a line.
func misfit(r []float64) float64 {
	blocks := min(8, len(r)/12)
	worst := 0.0
	for b := range blocks {
		part := r[b*len(r)/blocks : (b+1)*len(r)/blocks]
		m := mean(part)
		ss := order.Sum(part, func(v float64) float64 { return (v - m) * (v - m) })
		n := float64(len(part))
		worst = max(worst, math.Abs(m)-3*math.Sqrt(ss/(n-1)/n))
	}
	return worst
}

func mean(x []float64) float64 {
	sum := order.Total(x)
	return sum / float64(max(len(x), 1))
}

const ppb = 1e-9

// maxDriftPPB is the largest drift that is accepted from any source: 10 %. It keeps every line strictly increasing.
const maxDriftPPB = 100_000_000

// A line maps the times of one clock to those of another:
//
//	other = t - off - slope*(t-t0)
//
// Offsets are integers, as float64 has steps of 256 ns at today's Unix times.
type line struct {
	t0, off int64
	slope   float64
}

func (l line) apply(t int64) int64 {
	return t - l.off - int64(math.Round(l.slope*float64(t-l.t0)))
}

// inverse returns the inverse line. From u = t-o-m(t-t0) follows, with u0 = t0-o the image of t0, t = u + o + m/(1-m) (u-u0).
func (l line) inverse() line {
	return line{t0: l.t0 - l.off, off: -l.off, slope: -l.slope / (1 - l.slope)}
}

// then returns the line that applies l and then m. Its t0 is that of the line with the drift:
// drifts are rounded in the end, so t0 must not be far from where the offset is exact.
func (l line) then(m line) line {
	if l.slope == 0 {
		l.t0 = m.t0 + l.off
	}
	return line{
		t0:    l.t0,
		off:   l.t0 - m.apply(l.t0-l.off),
		slope: l.slope + m.slope - l.slope*m.slope,
	}
}

// at returns the same line with its offset at another instant.
func (l line) at(t int64) line {
	return line{t0: t, off: t - l.apply(t), slope: l.slope}
}

// driftOver returns drift*(t-t0), rounded to the nearest ns, for any two instants and |drift| <= 1e9 ppb. It is monotonic in t.
func driftOver(t, t0, driftPPB int64) int64 {
	negative := (t < t0) != (driftPPB < 0)
	span := uint64(t) - uint64(t0) // correct even if t-t0 overflows
	if t < t0 {
		span = -span
	}
	rate := uint64(driftPPB)
	if driftPPB < 0 {
		rate = -rate
	}
	hi, lo := bits.Mul64(span, min(rate, 1_000_000_000))
	lo, carry := bits.Add64(lo, 500_000_000, 0)
	hi += carry
	quotient := span // hi is too large for Div64 only at the full rate of 1e9
	if hi < 1_000_000_000 {
		quotient, _ = bits.Div64(hi, lo, 1_000_000_000)
	}
	quotient = min(quotient, math.MaxInt64)
	if negative {
		return -int64(quotient)
	}
	return int64(quotient)
}

// sub returns a-b, saturating at the limits of int64.
func sub(a, b int64) int64 {
	switch d := a - b; {
	case b > 0 && d > a:
		return math.MinInt64
	case b < 0 && d < a:
		return math.MaxInt64
	default:
		return d
	}
}

// add returns a+b, saturating at the limits of int64.
func add(a, b int64) int64 {
	switch s := a + b; {
	case b > 0 && s < a:
		return math.MaxInt64
	case b < 0 && s > a:
		return math.MinInt64
	default:
		return s
	}
}
