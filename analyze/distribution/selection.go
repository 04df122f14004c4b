package distribution

import (
	"math"
	"math/bits"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
)

// A selection finds values of samples by rank, without moving them, as they may be in a file. It counts
// values by their upper halves, and, in another pass, those that share an upper half by their lower halves.
type selection struct {
	moments
	blocks [][]uint32
	long   []int64       // sorted; larger than all others
	upTo   []uint64      // by upper half: number of values with this one or a smaller one
	lower  map[int]lower // by upper half, if asked for
}

const halves = 1 << 16

// lower is like upTo for the lower halves of values that share an upper half.
type lower []uint64

func newSelection(samples []*Sample) *selection {
	s := &selection{upTo: make([]uint64, halves), lower: map[int]lower{}}
	for _, x := range samples {
		s.blocks = append(s.blocks, x.last)
		if x.more != nil {
			s.blocks = append(s.blocks, x.more.full...)
			s.long = append(s.long, x.more.long...)
		}
	}
	for _, b := range s.blocks {
		for _, v := range b {
			s.upTo[v/halves]++
			s.add(int64(v))
		}
	}
	for _, v := range s.long {
		s.add(v)
	}
	slices.Sort(s.long)
	accumulate(s.upTo)
	return s
}

// accumulate turns counts into cumulative counts.
func accumulate(counts []uint64) {
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
}

// at returns the i-th smallest value, 0 <= i < n.
func (s *selection) at(i uint64) int64 {
	if small := s.upTo[halves-1]; i >= small {
		return s.long[i-small]
	}
	upper := place(s.upTo, i)
	if upper > 0 {
		i -= s.upTo[upper-1]
	}
	counts := order.Memo(s.lower, upper, func() lower { return s.count(upper) })
	return int64(upper)*halves + int64(place(counts, i))
}

// place returns the first half with more than i values up to and including it.
func place(upTo []uint64, i uint64) int {
	return sort.Search(len(upTo), func(half int) bool { return upTo[half] > i })
}

// count returns the cumulative counts, by lower half, of the values with an upper half.
func (s *selection) count(upper int) lower {
	counts := make(lower, halves)
	for _, b := range s.blocks {
		for _, v := range b {
			if int(v/halves) == upper {
				counts[v%halves]++
			}
		}
	}
	accumulate(counts)
	return counts
}

// A Summary describes a set of durations. All fields but N are whole ns: percentiles are values that occurred.
type Summary struct {
	N                  int
	Total              int64 // math.MaxInt64 if the sum exceeds it
	Mean               int64 // rounded to the nearest ns
	StdDev             int64 // of the sample; request.Unknown when N < 2
	Min                int64
	P50, P90, P95, P99 int64 // nearest rank
	Max                int64
}

// Summarize describes durations, none of which may be negative. It sorts them
// in place.
func Summarize(durations []int64) Summary { return new(Summarizer).Summarize(durations) }

// A Summarizer summarizes groups of values, reusing scratch space.
type Summarizer struct {
	keys   []int64
	floats []float64
}

// Summarize summarizes v, which it sorts.
func (s *Summarizer) Summarize(v []int64) Summary {
	if len(v) == 0 {
		return Summary{StdDev: request.Unknown}
	}
	s.keys = sortValues(v, s.keys)
	total, mean := sum(v)
	return Summary{
		N: len(v), Total: total, Mean: mean, StdDev: s.stdDev(v),
		Min: v[0], Max: v[len(v)-1],
		P50: request.NearestRank(v, 50), P90: request.NearestRank(v, 90), P95: request.NearestRank(v, 95), P99: request.NearestRank(v, 99),
	}
}

// sum adds in 128 bits: a few spans with forged times exceed 64 bits.
func sum(v []int64) (total, mean int64) {
	var hi, lo, carry uint64
	for _, d := range v {
		lo, carry = bits.Add64(lo, uint64(d), 0)
		hi += carry
	}
	total = math.MaxInt64
	if hi == 0 && lo <= math.MaxInt64 {
		total = int64(lo)
	}
	n := uint64(len(v))
	lo, carry = bits.Add64(lo, n/2, 0)
	q, _ := bits.Div64(hi+carry, lo, n)
	return total, int64(q)
}

// AddTimes adds two durations, up to the largest int64, as forged ones would wrap around.
func AddTimes(x, y int64) int64 {
	if x > math.MaxInt64-y {
		return math.MaxInt64
	}
	return x + y
}

// SumTimes adds all durations of a list like [AddTimes].
func SumTimes(list []int64) (sum int64) {
	for _, ns := range list {
		sum = AddTimes(sum, ns)
	}
	return sum
}

// stdDev uses gonum, which works on float64: exact to the ns for durations below 2^53 ns (104 days).
func (s *Summarizer) stdDev(v []int64) int64 {
	if len(v) < 2 {
		return request.Unknown
	}
	s.floats = slices.Grow(s.floats[:0], len(v))
	for _, d := range v {
		s.floats = append(s.floats, float64(d))
	}
	return int64(math.Round(stat.StdDev(s.floats, nil)))
}

// radixMin is how many values it takes for a radix sort to be faster.
const radixMin = 512

// sortValues sorts non-negative values in place. It returns scratch, or a replacement if that was too small.
func sortValues[T int64 | uint32](v, scratch []T) []T {
	if len(v) < radixMin {
		slices.Sort(v)
		return scratch
	}
	sorted, other := order.Integers(v, scratch, 0)
	if &sorted[0] == &v[0] {
		return other
	}
	copy(v, sorted)
	return sorted
}
