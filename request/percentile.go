package request

// PercentileIndex returns which of n sorted values, from 0 on, a percentile is by
// nearest rank: the one at rank ceil(percent/100 * n). It counts in integers: in floating
// point 0.07*100 is 7.000000000000001, and its ceiling 8.
func PercentileIndex[N int | uint64](n, percent N) N {
	return max(1, (percent*n+99)/100) - 1
}

// NearestRank returns a percentile of sorted values by nearest rank: one that really
// occurred. There has to be one.
func NearestRank[T any](sorted []T, percent int) T {
	return sorted[PercentileIndex(len(sorted), percent)]
}
