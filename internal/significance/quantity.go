package significance

import "math"

// A Piece is what a part of a capture adds up to: ns and requests, or values below a
// bound and all values.
type Piece struct{ Sum, Of float64 }

// Enough is how many pieces it takes to say how far off an estimate may be.
const Enough = 3

// Neighbors says how pieces that follow each other depend on each other.
type Neighbors uint8

const (
	// Apart neighbors were made to be independent: pieces are longer than what makes observations alike.
	Apart Neighbors = iota
	// Queued ones have waits in queues, which outlast pieces of any length that anyone knows beforehand: the nearer a queue is to
	// its limit, the longer it takes to forget.
	Queued
)

// A Quantity is a number above zero that was estimated from the pieces of a capture.
type Quantity struct {
	Value float64
	// freedom is how many independent pieces there are, less one.
	freedom float64
	err     float64 // standard error of a mean; 0 of other quantities
	reach   float64 // how many standard errors from Value bounds still has both ends
	// bounds returns what lies k standard errors below and above Value: 0 and +Inf where
	// the observations set no bound.
	bounds func(k float64) (low, high float64)
}

// known reports whether q can be compared at all.
func (q *Quantity) known() bool { return q.bounds != nil && q.Value > 0 }

// Mean estimates what the pieces have per Of: the sum of all Sum by that of all Of.
// Pieces in which Of is 0 do not count. With fewer than [Enough] of the others, there is no
// saying how far off it is.
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

// Quantile estimates the value below which the given share of n values lies. In
// pieces, Sum is how many values are at most that, Of how many there are. at returns
// the i-th smallest value.
//
// The interval is Woodruff's (Journal of the American Statistical Association 47, 1952): an
// interval for the share of values at most the quantile, by the scatter of the pieces,
// carried over to the values that have these ranks. Of independent observations it is the
// interval of order statistics that benchstat prints. The scatter is never taken for less
// than that of independent values.
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

// estimate divides the sums, and measures by how much the quotient would scatter: what
// every piece has more than its part, squared (Cochran, Sampling Techniques, section 6.3).
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

// correlationTime returns how many neighboring pieces tell as much as one: (1+rho)/(1-rho)
// of a first-order autoregression. Correlations of short series come out too small by
// (1+3rho)/n (Kendall, Biometrika 41, 1954); that is put right. Of [Apart] neighbors only what rho has beyond its
// own standard error counts.
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
