package analyze

import (
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/sgtrace/sgtrace/request"
)

// A Distribution describes values as nsys stats does, and adds percentiles. Values
// are ns or bytes.
type Distribution struct {
	N        int64
	Total    int64 // math.MaxInt64 if the sum is beyond it
	Min, Max int64
	// Mean, Median and StdDev are in tenths, rounded half away from zero. The median
	// of an even number is the mean of the two middle values; StdDev is that of the
	// sample, and 0 of a single value.
	Mean, Median, StdDev int64
	P90, P95, P99        int64 // nearest rank
}

// A tally puts samples together and describes them. It keeps its scratch space from
// one row to the next.
type tally struct {
	small, scratch []uint32
	long           []int64
	hist           *histogram // nil unless one of the samples is one
}

// of describes the values of some samples. approximate tells that median and
// percentiles may be off by 0.4 %.
func (t *tally) of(samples ...*sample) (d Distribution, approximate bool) {
	t.reset()
	n := 0
	for _, s := range samples {
		if n += s.len(); s.more != nil && s.more.hist != nil {
			t.hist = &histogram{}
		}
	}
	if t.hist != nil {
		for _, s := range samples {
			s.each(t.hist.add)
			if s.more != nil && s.more.hist != nil {
				t.hist.merge(s.more.hist)
			}
		}
		return t.hist.distribution(), true
	}
	t.small = slices.Grow(t.small, n)
	for _, s := range samples {
		t.small = append(t.small, s.last...)
		if s.more != nil {
			for _, b := range s.more.full {
				t.small = append(t.small, b...)
			}
			t.long = append(t.long, s.more.long...)
		}
	}
	return t.distribution(), false
}

func (t *tally) reset() { t.small, t.long, t.hist = t.small[:0], t.long[:0], nil }

// distribution describes the values that were added.
func (t *tally) distribution() Distribution {
	n := len(t.small) + len(t.long)
	if n == 0 {
		return Distribution{}
	}
	t.scratch = sortValues(t.small, t.scratch)
	slices.Sort(t.long)
	var m moments
	for _, v := range t.small {
		m.add(int64(v))
	}
	for _, v := range t.long {
		m.add(v)
	}
	return m.distribution(func(i uint64) int64 {
		if i < uint64(len(t.small)) {
			return int64(t.small[i])
		}
		return t.long[i-uint64(len(t.small))]
	})
}

func (h *histogram) distribution() Distribution {
	d := h.moments.distribution(h.at)
	d.Min, d.Max = h.min, h.max
	return d
}

// distribution describes values by their moments and their order.
func (m *moments) distribution(at func(i uint64) int64) Distribution {
	rank := func(percent uint64) int64 { return at(request.PercentileIndex(m.n, percent)) }
	low, high := at((m.n-1)/2), at(m.n/2)
	median := tenths(low, 0)
	if low != high {
		between := high - low
		median = tenths(low+between/2, between%2*5)
	}
	return Distribution{
		N: int64(m.n), Total: m.total(), Min: at(0), Max: at(m.n - 1),
		Mean: m.mean(), Median: median, StdDev: m.stdDev(),
		P90: rank(90), P95: rank(95), P99: rank(99),
	}
}

// spread returns n times the sum of the squared distances from the mean. The
// difference of two large numbers, it is computed in integers.
func (m *moments) spread() float64 {
	if m.sum[1] == 0 && m.squares[2] == 0 {
		top, middle := bits.Mul64(m.squares[1], m.n)
		carried, lo := bits.Mul64(m.squares[0], m.n)
		hi, carry := bits.Add64(middle, carried, 0)
		if top+carry == 0 {
			squareHi, squareLo := bits.Mul64(m.sum[0], m.sum[0])
			lo, borrow := bits.Sub64(lo, squareLo, 0)
			hi, _ := bits.Sub64(hi, squareHi, borrow)
			return math.Ldexp(float64(hi), 64) + float64(lo)
		}
	}
	squares := integer(m.squares[:])
	sum := integer(m.sum[:])
	squares.Mul(squares, new(big.Int).SetUint64(m.n))
	spread, _ := new(big.Float).SetInt(squares.Sub(squares, sum.Mul(sum, sum))).Float64()
	return spread
}

// integer returns the number of some words, the lowest first.
func integer(words []uint64) *big.Int {
	n := new(big.Int)
	for _, w := range slices.Backward(words) {
		n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(w))
	}
	return n
}
