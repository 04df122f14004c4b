package analyze

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
)

// A Summary describes a set of durations. All but N are ns and whole: the
// percentiles are values that occurred.
type Summary struct {
	N                  int
	Total              int64 // math.MaxInt64 if the sum is beyond it
	Mean               int64 // rounded to the nearest ns
	StdDev             int64 // of the sample; request.Unknown when N < 2
	Min                int64
	P50, P90, P95, P99 int64 // nearest rank
	Max                int64
}

// Summarize describes durations, none of which may be negative. It sorts them
// in place.
func Summarize(durations []int64) Summary { return new(summarizer).summarize(durations) }

// A summarizer keeps its scratch space from one group to the next.
type summarizer struct {
	keys   []int64
	floats []float64
}

func (s *summarizer) summarize(v []int64) Summary {
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

// sum adds in 128 bits: a few spans with forged times exceed 64.
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

// addTimes adds two durations; forged ones would wrap around.
func addTimes(x, y int64) int64 {
	if x > math.MaxInt64-y {
		return math.MaxInt64
	}
	return x + y
}

// stdDev leaves the moments to gonum, which works on float64: exact to the ns
// for durations below 2^53 ns (104 days).
func (s *summarizer) stdDev(v []int64) int64 {
	if len(v) < 2 {
		return request.Unknown
	}
	s.floats = slices.Grow(s.floats[:0], len(v))
	for _, d := range v {
		s.floats = append(s.floats, float64(d))
	}
	return int64(math.Round(stat.StdDev(s.floats, nil)))
}

// radixMin is how many values are sorted without comparing them: fewer are as fast so.
const radixMin = 512

// sortValues orders non-negative values in place. It returns scratch, which it
// replaces if it is too small.
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

// summaryFields are the columns of a summary.
func summaryFields[T any](of func(*T) *Summary) []field[T] {
	const scale = "duration" // people compare these with each other
	ns := func(name, doc string, v func(*Summary) int64) field[T] {
		return field[T]{Column{Name: name, Unit: Duration, Doc: doc, Scale: scale},
			func(row *T) Cell { return numberCell(v(of(row))) }}
	}
	detail := func(f field[T]) field[T] {
		f.Detail = true
		return f
	}
	total := ns("total", "sum", func(s *Summary) int64 { return s.Total })
	total.Scale = ""
	return []field[T]{
		{Column{Name: "n", Unit: Count, Doc: "how many"}, func(row *T) Cell { return Cell{N: int64(of(row).N)} }},
		total,
		ns("mean", "arithmetic mean", func(s *Summary) int64 { return s.Mean }),
		detail(ns("stddev", "standard deviation of the sample", func(s *Summary) int64 { return s.StdDev })),
		detail(ns("min", "shortest", func(s *Summary) int64 { return s.Min })),
		ns("p50", "median, nearest rank", func(s *Summary) int64 { return s.P50 }),
		ns("p90", "90th percentile, nearest rank", func(s *Summary) int64 { return s.P90 }),
		ns("p95", "95th percentile, nearest rank", func(s *Summary) int64 { return s.P95 }),
		ns("p99", "99th percentile, nearest rank", func(s *Summary) int64 { return s.P99 }),
		ns("max", "longest", func(s *Summary) int64 { return s.Max }),
	}
}

// noteSamples warns of rows with too few values for a p99.
func noteSamples[T any](r *Report, rows []T, count func(*T) int64, name func(*T) string) {
	const enough, named = 100, 3
	var names []string
	few := 0
	for i := range rows {
		n := count(&rows[i])
		if n >= enough {
			continue
		}
		if few++; few <= named {
			names = append(names, fmt.Sprintf("%s (n=%d)", name(&rows[i]), n))
		}
	}
	if few == 0 {
		return
	}
	list := strings.Join(names, ", ")
	if few > named {
		list += " and " + counted(few-named, "more row")
	}
	r.note("p99 of fewer than %d values is their maximum: %s", enough, list)
}
