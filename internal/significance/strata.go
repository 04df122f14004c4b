package significance

import (
	"math"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/internal/memory"
	"gonum.org/v1/gonum/stat/distuv"
)

// Strata are observations in order, cut into strata of neighbors, which resemble each other. A group is
// compared with the rest of each stratum, so that differences between strata, such as load, do not matter.
type Strata struct {
	bounds []int     // stratum i is the observations from bounds[i] up to bounds[i+1]
	ranks  []float64 // of every observation in its stratum, about -0.5 to 0.5; they add up to 0
	spread []float64 // variance of the ranks of each stratum
}

// NewStrata cuts values into up to n strata of equal size.
func NewStrata(values []float64, n int) *Strata {
	s := &Strata{ranks: memory.Make[float64](len(values)), bounds: []int{0}}
	for k := 1; k <= n; k++ {
		from, to := s.bounds[len(s.bounds)-1], k*len(values)/n
		if from == to {
			continue
		}
		s.bounds = append(s.bounds, to)
		s.spread = append(s.spread, rankWithin(values[from:to], s.ranks[from:to]))
	}
	return s
}

// Bounds returns the starts of the strata, and the end of the last one.
func (s *Strata) Bounds() []int { return s.bounds }

// rankWithin fills in the ranks of values and returns their variance. Equal values have the mean of their
// ranks.
func rankWithin(values, ranks []float64) (spread float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := float64(len(values))
	for i, v := range values {
		below := sort.SearchFloat64s(sorted, v)
		same := sort.SearchFloat64s(sorted[below:], math.Nextafter(v, math.Inf(1)))
		ranks[i] = (float64(below)+float64(same-1)/2+0.5)/n - 0.5
		spread += ranks[i] * ranks[i]
	}
	return spread / max(1, n-1)
}

// Higher returns the probability that a random group of observations is this high among its neighbors: the test
// of van Elteren (Bulletin of the International Statistical Institute 37, 1960), which is Wilcoxon's for
// strata.
func (s *Strata) Higher(in []bool) float64 {
	sum, variance := 0.0, 0.0
	s.each(in, func(stratum int, of, n, all float64) {
		sum += of
		variance += n * (all - n) / all * s.spread[stratum]
	})
	if variance == 0 {
		return 1
	}
	return distuv.UnitNormal.Survival(sum / math.Sqrt(variance))
}

// HigherInPieces is Higher for a group whose observations depend on each other, such as requests that wait in
// one queue: each stratum is one observation. It returns NaN if too few strata have members both of the group
// and of the rest.
func (s *Strata) HigherInPieces(in []bool) float64 {
	var apart []float64
	s.each(in, func(_ int, of, n, all float64) {
		if 0 < n && n < all {
			apart = append(apart, of/n+of/(all-n)) // the ranks of the rest add up to -of
		}
	})
	n := float64(len(apart))
	if len(apart) < fewPieces {
		return math.NaN()
	}
	mean, squares := 0.0, 0.0
	for _, d := range apart {
		mean += d / n
	}
	for _, d := range apart {
		squares += (d - mean) * (d - mean)
	}
	if squares == 0 && mean > 0 {
		return 0
	} else if squares == 0 {
		return 1
	}
	return distuv.StudentsT{Sigma: 1, Nu: n - 1}.Survival(mean / math.Sqrt(squares/(n-1)/n))
}

// fewPieces is the smallest number of pieces that shows their scatter.
const fewPieces = 8

// each calls f for every stratum, with the sum of the ranks of the group, and the numbers of observations of
// the group and of the stratum.
func (s *Strata) each(in []bool, f func(stratum int, of, n, all float64)) {
	for k := range s.spread {
		of, n := 0.0, 0.0
		for i := s.bounds[k]; i < s.bounds[k+1]; i++ {
			if in[i] {
				of += s.ranks[i]
				n++
			}
		}
		f(k, of, n, float64(s.bounds[k+1]-s.bounds[k]))
	}
}
