package request

import (
	"testing"

	"gonum.org/v1/gonum/stat"
)

// Percentiles equal gonum's Empirical, which the documentation names as the definition.
func TestNearestRankIsEmpirical(t *testing.T) {
	for n := 1; n <= 1000; n++ {
		v, f := make([]int64, n), make([]float64, n)
		for i := range v {
			v[i], f[i] = int64(i+1), float64(i+1)
		}
		for _, percent := range []int{50, 90, 95, 99} {
			if got, want := NearestRank(v, percent), stat.Quantile(float64(percent)/100, stat.Empirical, f, nil); float64(got) != want {
				t.Errorf("p%d of %d values: %d, gonum has %g", percent, n, got, want)
			}
		}
	}
	if got := NearestRank([]int64{1, 2, 3, 4, 100}, 50); got != 3 {
		t.Errorf("median of 1 2 3 4 100 is %d", got)
	}
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(i + 1)
	}
	if got := NearestRank(hundred, 7); got != 7 {
		t.Errorf("p7 of 1..100 is %d: 0.07*100 was computed in floating point", got)
	}
}
