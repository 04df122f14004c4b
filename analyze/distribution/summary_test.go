package distribution

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/request"
)

// naive computes a summary from the definitions, in exact arithmetic.
func naive(v []int64) Summary {
	v = slices.Clone(v)
	slices.Sort(v)
	rank := func(percent int64) int64 {
		n := new(big.Rat).SetFrac64(percent*int64(len(v)), 100)
		ceil := new(big.Int).Div(new(big.Int).Add(n.Num(), new(big.Int).Sub(n.Denom(), big.NewInt(1))), n.Denom())
		return v[ceil.Int64()-1]
	}
	sum := new(big.Int)
	for _, d := range v {
		sum.Add(sum, big.NewInt(d))
	}
	mean, _ := new(big.Float).Quo(new(big.Float).SetInt(sum), big.NewFloat(float64(len(v)))).Float64()
	s := Summary{N: len(v), Total: math.MaxInt64, Mean: int64(math.Floor(mean + 0.5)), StdDev: request.Unknown, Min: v[0], Max: v[len(v)-1],
		P50: rank(50), P90: rank(90), P95: rank(95), P99: rank(99)}
	if sum.IsInt64() {
		s.Total = sum.Int64()
	}
	if len(v) > 1 {
		squares := 0.0
		for _, d := range v {
			squares += (float64(d) - mean) * (float64(d) - mean)
		}
		s.StdDev = int64(math.Round(math.Sqrt(squares / float64(len(v)-1))))
	}
	return s
}

func TestSummarizeEqualsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sizes := []int{1, 2, 9, 10, 11, 19, 20, 21, 99, 100, 101, 200, radixMin - 1, radixMin, 5000}
	for range 50 {
		sizes = append(sizes, 1+r.IntN(3000))
	}
	var s Summarizer
	for _, n := range sizes {
		for _, limit := range []int64{1, 5, 1e3, 1e9, 1 << 44} {
			v := make([]int64, n)
			for i := range v {
				v[i] = r.Int64N(limit + 1)
			}
			want := naive(v)
			got := s.Summarize(v)
			if d := got.StdDev - want.StdDev; d < -1 || d > 1 {
				t.Errorf("n=%d: stddev %d, want %d", n, got.StdDev, want.StdDev)
			}
			got.StdDev = want.StdDev
			if got != want {
				t.Errorf("n=%d below %d:\n got %+v\nwant %+v", n, limit, got, want)
			}
			if !slices.IsSorted(v) {
				t.Errorf("n=%d: not sorted in place", n)
			}
		}
	}
}

func TestSummarizeForgedTimes(t *testing.T) {
	const huge = math.MaxInt64 - 1
	v := make([]int64, 2000)
	for i := range v {
		v[i] = huge
	}
	s := Summarize(v)
	if s.Total != math.MaxInt64 || s.Mean != huge || s.P50 != huge || s.Max != huge {
		t.Errorf("2000 times %d: %+v", int64(huge), s)
	}
	if s := Summarize(nil); s.N != 0 || s.StdDev != request.Unknown {
		t.Errorf("no values: %+v", s)
	}
}

func BenchmarkSummarize(b *testing.B) {
	const n = 1 << 20
	r := rand.New(rand.NewPCG(1, 2))
	from, v := make([]int64, n), make([]int64, n)
	for i := range from {
		from[i] = int64(math.Exp(r.NormFloat64() + 16)) // around 9 ms
	}
	var s Summarizer
	for b.Loop() {
		copy(v, from)
		s.Summarize(v)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
}
