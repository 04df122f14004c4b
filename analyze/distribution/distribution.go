package distribution

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/words"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A Distribution describes values like nsys stats, with percentiles in addition. Values are in ns or bytes.
type Distribution struct {
	N        int64
	Total    int64 // math.MaxInt64 if the sum exceeds it
	Min, Max int64
	// These are in tenths of ns or bytes, rounded half away from zero. The median of an even number of values is
	// the mean of the two middle ones; the deviation is that of the sample, and 0 for a single value.
	MeanTenths, MedianTenths, StdDevTenths int64
	P90, P95, P99                          int64 // nearest rank
}

// A Tally merges samples and describes them. It reuses its scratch space.
type Tally struct {
	small, scratch []uint32
	long           []int64
	hist           *histogram // nil unless a sample is a histogram
	counted        *selection // replaces small if there are more than maxSorted values
	most           int        // for tests; 0 means maxSorted
}

// maxSorted is the largest number of values that are copied and sorted. If there are more, each requested
// rank is found by counting, without a copy: a pass over a billion values takes a second or two.
const maxSorted = 32 << 20

// Of describes the values of some samples. approximate reports that median and percentiles may be off by 0.4 %.
func (t *Tally) Of(samples ...*Sample) (d Distribution, approximate bool) {
	t.reset()
	n := 0
	for _, s := range samples {
		if n += s.Len(); s.more != nil && s.more.hist != nil {
			t.hist = &histogram{}
		}
	}
	if t.hist != nil {
		for _, s := range samples {
			s.Each(t.hist.add)
			if s.more != nil && s.more.hist != nil {
				t.hist.merge(s.more.hist)
			}
		}
		d := t.hist.moments.distribution(t.hist.at)
		d.Min, d.Max = t.hist.min, t.hist.max
		return d, true
	}
	if n > cmp.Or(t.most, maxSorted) {
		t.counted = newSelection(samples)
		return t.counted.moments.distribution(t.counted.at), false
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

func (t *Tally) reset() { t.small, t.long, t.hist, t.counted = t.small[:0], t.long[:0], nil, nil }

// distribution describes the values in t.
func (t *Tally) distribution() Distribution {
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

// distribution describes values by their moments and their order.
func (m *moments) distribution(at func(i uint64) int64) Distribution {
	rank := func(percent uint64) int64 { return at(request.PercentileIndex(m.n, percent)) }
	low, high := at((m.n-1)/2), at(m.n/2)
	median := Tenths(low, 0)
	if low != high {
		between := high - low
		median = Tenths(low+between/2, between%2*5)
	}
	return Distribution{
		N: int64(m.n), Total: m.total(), Min: at(0), Max: at(m.n - 1),
		MeanTenths: m.mean(), MedianTenths: median, StdDevTenths: m.stdDev(),
		P90: rank(90), P95: rank(95), P99: rank(99),
	}
}

// spread returns n times the sum of the squared distances from the mean. It is a difference of
// two large numbers, so it is computed in integers.
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

// integer returns the number with the given words, the lowest first.
func integer(words []uint64) *big.Int {
	n := new(big.Int)
	for _, w := range slices.Backward(words) {
		n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(w))
	}
	return n
}

// Midway returns the time midway between the observations k-1 and k; from and to bound all observations.
func Midway[T any](x []T, k int, from, to trace.Time, at func(T) trace.Time) trace.Time {
	switch k {
	case 0:
		return from
	case len(x):
		return to
	}
	a, b := at(x[k-1]), at(x[k])
	return a + (b-a)/2
}

// At returns the i-th smallest of the values last described.
func (t *Tally) At(i uint64) int64 {
	switch {
	case t.hist != nil:
		return t.hist.at(i)
	case t.counted != nil:
		return t.counted.at(i)
	case i < uint64(len(t.small)):
		return int64(t.small[i])
	}
	return t.long[i-uint64(len(t.small))]
}

// Total returns the sum of the values.
func (s *Sample) Total() int64 {
	sum := int64(0)
	s.Each(func(v int64) { sum = AddTimes(sum, v) })
	if s.more != nil && s.more.hist != nil {
		sum = AddTimes(sum, s.more.hist.total())
	}
	return sum
}

// AtMost returns how many values are at most v. Values in a histogram count by the middle of their bucket.
func (s *Sample) AtMost(v int64) int {
	n := 0
	s.Each(func(of int64) {
		if of <= v {
			n++
		}
	})
	if s.more == nil || s.more.hist == nil {
		return n
	}
	for octave, counts := range s.more.hist.octaves {
		if counts == nil {
			continue
		}
		for sub, count := range counts {
			if middle(octave, sub) <= v {
				n += int(count)
			}
		}
	}
	return n
}

// Abs returns the absolute value of v.
func Abs(v int64) int64 { return max(v, -v) }

// Between returns the time from one moment to a later one. Only forged times are further apart than an int64 holds.
func Between(from, to trace.Time) int64 {
	if d := int64(to - from); d >= 0 {
		return d
	}
	return math.MaxInt64
}

// NoLimit is the store for samples of a single device, which are freed once it is measured.
var NoLimit = &Store{Limit: math.MaxInt64}

// Fraction returns part/whole, or 0 if whole is 0.
func Fraction(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// LowerMedian returns the median, by nearest rank; it reorders v.
func LowerMedian[T cmp.Ordered](v []T) T { return Percentile(v, 50) }

// Percentile returns a percentile, by nearest rank; it reorders v.
func Percentile[T cmp.Ordered](v []T, percent int) T {
	return order.Nth(v, request.PercentileIndex(len(v), percent))
}

// FloorDiv divides, rounding toward negative infinity.
func FloorDiv(x, n int64) int64 {
	q := x / n
	if x%n != 0 && x < 0 {
		q--
	}
	return q
}

// A SizeFit is the usual time for a number of tokens: Base + PerToken * tokens + PerPair * tokens².
type SizeFit struct {
	Base     float64 // ns
	PerToken float64 // ns
	PerPair  float64 // ns; what attention to all earlier tokens costs, where it shows
	N        int     // requests it was fitted to; 0 if there is no fit
}

// fewFitted is the least number of requests for a SizeFit.
const fewFitted = 20

// Text says what a number of tokens usually takes: "21.3 ms + 4.1 µs per token".
func (f *SizeFit) Text() string {
	text := fmt.Sprintf("%s + %s per token", words.Nearly(int64(f.Base)), words.Nearly(int64(f.PerToken)))
	if f.PerPair > 0 {
		text += fmt.Sprintf(" + %s per (1,000 tokens)²", words.Nearly(int64(f.PerPair*1e6)))
	}
	return text
}

// Expected returns the usual time for a number of tokens, in ns; 0 if unknown.
func (f *SizeFit) Expected(tokens int64) int64 {
	if tokens < 0 || f.N == 0 {
		return 0
	}
	x := float64(tokens)
	return int64(math.Round(min(max(0, f.line(x)+f.PerPair*x*x), request.LongestRequest)))
}

// A Sized is a number of tokens with the time that they took.
type Sized struct{ Tokens, Ns int64 }

// FitSize fits a line that tolerates outliers in up to about half of the pairs: Theil's incomplete method. Sorted by tokens,
// every request in the lower half is paired with the one half the requests further on; PerToken is the median slope of the
// pairs, and Base the median of the remainders.
//
// H. Theil, A rank-invariant method of linear and polynomial regression analysis (1950); the pairing is that of his section 1.2.
func FitSize(v []Sized) (f SizeFit) {
	f.fitLine(v)
	return f
}

// FitPrompts is FitSize for prefills that were alone in their batches, whose largest ones may take longer than in proportion: if most of
// the largest eighth takes longer than the line says, PerPair is the median of by how much. Both are fitted in turn.
func FitPrompts(v []Sized) (f SizeFit) {
	const turns, clearly = 4, 0.03 // of what the line says for the middle of the largest eighth
	for range turns {
		if !f.fitLine(v) {
			return f
		}
		long, more := float64(v[len(v)-1-len(v)/16].Tokens), f.morePerPair(v)
		if more == 0 || f.PerPair == 0 && more*long*long < clearly*f.line(long) {
			return f
		}
		f.PerPair += more
	}
	return f
}

// line returns what some tokens take by the line alone, in ns.
func (f *SizeFit) line(tokens float64) float64 { return f.Base + f.PerToken*tokens }

// left returns what a request took beyond what pairs of its tokens cost, in ns.
func (f *SizeFit) left(x *Sized) float64 {
	return float64(x.Ns) - f.PerPair*float64(x.Tokens)*float64(x.Tokens)
}

// fitLine sorts v and fits the line. It returns false, and no fit, if there are too few requests, or if all are equally long.
func (f *SizeFit) fitLine(v []Sized) bool {
	slices.SortFunc(v, func(x, y Sized) int { return cmp.Or(cmp.Compare(x.Tokens, y.Tokens), cmp.Compare(x.Ns, y.Ns)) })
	half := len(v) / 2
	slopes := memory.Make[float64](half)[:0]
	for i := range v[:half] {
		if low, high := &v[i], &v[i+len(v)-half]; high.Tokens > low.Tokens {
			slopes = append(slopes, (f.left(high)-f.left(low))/float64(high.Tokens-low.Tokens))
		}
	}
	if len(v) < fewFitted || len(slopes) == 0 {
		*f = SizeFit{}
		return false
	}
	f.N, f.PerToken = len(v), max(0, LowerMedian(slopes))
	rest := memory.Make[float64](len(v))
	for i := range v {
		rest[i] = f.left(&v[i]) - f.PerToken*float64(v[i].Tokens)
	}
	f.Base = LowerMedian(rest)
	return true
}

// morePerPair returns by how much the largest eighth takes longer than a fit says, for each pair of tokens: the median, if most of them do.
func (f *SizeFit) morePerPair(v []Sized) float64 {
	const part, few, most = 8, 8, 0.75
	n := len(v) / part
	if n < few {
		return 0
	}
	pairs := make([]float64, n)
	for i := range pairs {
		x := &v[len(v)-n+i]
		tokens := max(1, float64(x.Tokens))
		pairs[i] = (f.left(x) - f.line(tokens)) / (tokens * tokens)
	}
	slices.Sort(pairs)
	if pairs[int((1-most)*float64(n))] <= 0 {
		return 0
	}
	return pairs[n/2]
}

// Ratio returns a/b, or NaN if b is 0.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}
