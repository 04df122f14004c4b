package distribution

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/request"
)

// defined computes a distribution from the definitions, in exact arithmetic.
func defined(v []int64) Distribution {
	v = slices.Clone(v)
	slices.Sort(v)
	n := int64(len(v))
	sum, squares := new(big.Int), new(big.Rat)
	for _, x := range v {
		sum.Add(sum, big.NewInt(x))
	}
	mean := new(big.Rat).SetFrac(sum, big.NewInt(n))
	for _, x := range v {
		d := new(big.Rat).Sub(new(big.Rat).SetInt64(x), mean)
		squares.Add(squares, d.Mul(d, d))
	}
	tenth := func(r *big.Rat) int64 { // FloatString rounds half away from zero
		i, _ := new(big.Int).SetString(new(big.Rat).Mul(r, big.NewRat(10, 1)).FloatString(0), 10)
		return i.Int64()
	}
	d := Distribution{N: n, Total: math.MaxInt64, Min: v[0], Max: v[n-1], MeanTenths: tenth(mean),
		MedianTenths: tenth(new(big.Rat).SetFrac(new(big.Int).Add(big.NewInt(v[(n-1)/2]), big.NewInt(v[n/2])), big.NewInt(2))),
		P90:          request.NearestRank(v, 90), P95: request.NearestRank(v, 95), P99: request.NearestRank(v, 99)}
	if sum.IsInt64() {
		d.Total = sum.Int64()
	}
	if n > 1 {
		variance, _ := squares.Quo(squares, big.NewRat(n-1, 1)).Float64()
		d.StdDevTenths = int64(math.Round(10 * math.Sqrt(variance)))
	}
	return d
}

func TestDistributionEqualsDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		n := 1 + r.IntN(20)
		if r.IntN(5) == 0 {
			n = 1 + r.IntN(3*MaxBlock)
		}
		v := make([]int64, n)
		from, limit := int64(0), int64(1)<<(1+r.IntN(40))
		if r.IntN(4) == 0 {
			from, limit = 5e9, 3 // large and nearly equal: in floats, the deviation would vanish
		}
		s, in := &Sample{}, &Store{Limit: math.MaxInt64}
		for i := range v {
			v[i] = from + r.Int64N(limit)
			s.Add(v[i], in)
		}
		var other Sample // a distribution may cover several samples
		for range r.IntN(3) {
			v = append(v, 1<<33)
			other.Add(1<<33, in)
		}
		tallies := []*Tally{{}}
		if round%10 == 0 { // a count is slow, whatever the number of values
			tallies = append(tallies, &Tally{most: 1})
		}
		for _, tally := range tallies {
			got, approximate := tally.Of(s, &other)
			if want := defined(v); got != want || approximate {
				t.Fatalf("%d values from %d below %d:\n got %+v\nwant %+v", n, from, from+limit, got, want)
			}
		}
	}
}

// 541281 / 20 is 27064.05, which as a float is slightly less.
func TestMeanIsRoundedHalfUp(t *testing.T) {
	var m moments
	m.n, m.sum[0] = 20, 541281
	if got := m.mean(); got != 270641 {
		t.Errorf("mean is %d tenths", got)
	}
}

func TestForgedTimes(t *testing.T) {
	s, in := &Sample{}, &Store{Limit: math.MaxInt64}
	for range 5 {
		s.Add(math.MaxInt64, in)
	}
	s.Add(0, in)
	d, _ := new(Tally).Of(s)
	if d.N != 6 || d.Total != math.MaxInt64 || d.Min != 0 || d.Max != math.MaxInt64 || d.MeanTenths != math.MaxInt64 || d.MedianTenths != math.MaxInt64 || d.StdDevTenths <= 0 {
		t.Errorf("%+v", d)
	}
}

// Any percentile of a histogram is off by at most 0.4 %.
func TestHistogramError(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		v := r.Int64N(1 << (1 + r.IntN(62)))
		octave, sub := bucket(v)
		if got := middle(octave, sub); math.Abs(float64(got-v)) > 0.004*float64(v) {
			t.Fatalf("%d is counted as %d", v, got)
		}
	}
	for _, v := range []int64{0, 1, 255, math.MaxInt64} {
		octave, sub := bucket(v)
		if got := middle(octave, sub); v < 256 && got != v || math.Abs(float64(got)-float64(v)) > 0.004*float64(v) {
			t.Errorf("%d is counted as %d", v, got)
		}
	}
}
