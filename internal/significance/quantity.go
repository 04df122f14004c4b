package significance

import "math"

// A Piece is the sums over a part of a capture: ns and requests, or the number of values below a bound and of
// all values.
type Piece struct{ Sum, Of float64 }

// Enough is the smallest number of pieces that shows the error of an estimate.
const Enough = 3

// Neighbors states how consecutive pieces depend on each other.
type Neighbors uint8

const (
	// Apart neighbors were made to be independent: pieces are longer than the correlation of observations.
	Apart Neighbors = iota
	// Queued neighbors wait in queues, whose correlation may outlast pieces of any length: the nearer a queue is to
	// its limit, the longer it takes to forget.
	Queued
)

// A Quantity is a positive number estimated from the pieces of a capture.
type Quantity struct {
	Value float64
	// freedom is the number of independent pieces, less one.
	freedom float64
	err     float64 // standard error of a mean; 0 for other quantities
	reach   float64 // largest number of standard errors at which bounds still has both ends
	// bounds returns the ends of the interval k standard errors below and above Value: 0 and +Inf where the
	// observations set no bound.
	bounds func(k float64) (low, high float64)
}

// known reports whether q can be compared at all.
func (q *Quantity) known() bool { return q.bounds != nil && q.Value > 0 }

// Mean estimates the sum of all Sum divided by the sum of all Of. Pieces with an Of of 0 do not count. With
// fewer than [Enough] others, the error is unknown.
func (n Neighbors) Mean(pieces []Piece) Quantity {
	r := estimate(pieces, n)
	q := Quantity{Value: r.value}
	if r.pieces < Enough || r.value <= 0 {
		return q
	}
	// The logarithm of a mean is closer to normal than the mean of skewed times is, and
	// the interval never reaches below zero.
	relative := r.err / r.value
	q.freedom, q.err, q.reach = r.freedom, r.err, math.Inf(1)
	q.bounds = func(k float64) (low, high float64) {
		return q.Value * math.Exp(-k*relative), q.Value * math.Exp(k*relative)
	}
	return q
}

// Quantile estimates the value below which the given share of n values lies. In pieces, Sum is the number of
// values that are at most the quantile, and Of the number of all values. at returns the i-th smallest value.
//
// The interval is Woodruff's (Journal of the American Statistical Association 47, 1952): an interval for the
// share of values at most the quantile, from the scatter of the pieces, translated to the values of these
// ranks. For independent observations it is the interval of order statistics that benchstat prints. The scatter
// counts as at least that of independent values.
func (neighbors Neighbors) Quantile(share float64, pieces []Piece, n int, at func(i int) float64) Quantity {
	if n == 0 {
		return Quantity{}
	}
	size := float64(n)
	q := Quantity{Value: at(int(max(1, math.Ceil(share*size-1e-9))) - 1)}
	r := estimate(pieces, neighbors)
	if r.pieces < Enough {
		return q
	}
	err := max(r.err, math.Sqrt(share*(1-share)/size))
	q.freedom, q.reach = r.freedom, min(share, 1-share)/err
	q.bounds = func(k float64) (low, high float64) {
		below, above := math.Floor(size*(share-k*err)), math.Ceil(size*(share+k*err))
		high = math.Inf(1)
		if below >= 1 {
			low = at(int(below) - 1)
		}
		if above <= size {
			high = at(int(above) - 1)
		}
		return min(low, q.Value), max(high, q.Value)
	}
	return q
}

// A ratio is the quotient of two sums over pieces.
type ratio struct {
	value, err, freedom float64
	pieces              int
}

// estimate divides the sums, and estimates the error of the quotient from the squared deviations of the pieces
// from their share (Cochran, Sampling Techniques, section 6.3).
func estimate(pieces []Piece, neighbors Neighbors) ratio {
	var sum, of float64
	n := 0
	for _, p := range pieces {
		if p.Of > 0 {
			sum, of = sum+p.Sum, of+p.Of
			n++
		}
	}
	r := ratio{pieces: n}
	if n == 0 {
		return r
	}
	r.value = sum / of
	left := make([]float64, 0, n)
	power := 0.0
	for _, p := range pieces {
		if p.Of > 0 {
			e := p.Sum - r.value*p.Of
			left = append(left, e)
			power += e * e
		}
	}
	if n < 2 {
		return r
	}
	tau := correlationTime(left, power, neighbors)
	r.err = math.Sqrt(tau*power*float64(n)/float64(n-1)) / of
	r.freedom = max(1, float64(n)/tau-1)
	return r
}

// correlationTime returns the number of neighboring pieces that are worth one independent piece:
// (1+rho)/(1-rho) of a first-order autoregression. Correlations of short series come out too small by
// (1+3rho)/n (Kendall, Biometrika 41, 1954), and are corrected for that. For [Apart] neighbors, rho counts only
// as far as it exceeds its own standard error.
func correlationTime(left []float64, power float64, neighbors Neighbors) float64 {
	if power == 0 {
		return 1
	}
	rho := 0.0
	for i := 1; i < len(left); i++ {
		rho += left[i] * left[i-1]
	}
	rho /= power
	n := float64(len(left))
	rho += (1 + 3*rho) / n
	if neighbors == Apart {
		rho -= 1 / math.Sqrt(n)
	}
	rho = min(max(0, rho), 1-2/n)
	return (1 + rho) / (1 - rho)
}
