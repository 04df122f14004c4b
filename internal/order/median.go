package order

import "slices"

// Median returns the median of x, which stays as it is; 0 of nothing.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	return SortedMedian(slices.Clone(x))
}

// SortedMedian returns the median of x, which holds something, and sorts it.
func SortedMedian(x []float64) float64 {
	slices.Sort(x)
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}
