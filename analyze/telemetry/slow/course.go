package slow

import (
	"github.com/sgtrace/sgtrace/analyze/telemetry"
)

// A course is a number over time, in the buckets where it is known.
type course struct {
	values  []float64
	buckets []int
	n, of   []float64 // sums by bucket whose quotients are the values; nil for other courses
	end     int       // the bucket after the last
}

// quotients returns the course of n/of, by bucket.
func quotients(l *telemetry.Logged, n, of []float64) *course {
	x := &course{n: n, of: of, end: l.Grid.N()}
	for b := range of {
		if of[b] > 0 {
			x.add(b, n[b]/of[b])
		}
	}
	return x
}

func (x *course) add(b int, v float64) {
	x.values, x.buckets = append(x.values, v), append(x.buckets, b)
}

// bucket returns the bucket of a value; after the last one, it is the end.
func (x *course) bucket(k int) int {
	if k == len(x.buckets) {
		return x.end
	}
	return x.buckets[k]
}

// level returns the mean of the quotients [from, to), weighted by of.
func (x *course) level(from, to int) float64 { return share(x.n, x.of, x.bucket(from), x.bucket(to)) }

// levels returns the mean over several ranges of quotients together.
func (x *course) levels(times [][2]int) float64 {
	sum, all := 0.0, 0.0
	for _, t := range times {
		for _, b := range x.buckets[t[0]:t[1]] {
			sum, all = sum+x.n[b], all+x.of[b]
		}
	}
	return sum / all
}

// share returns the sum of n over the sum of of, in buckets where of is known.
func share(n, of []float64, from, to int) float64 {
	sum, all := 0.0, 0.0
	for b := from; b < to; b++ {
		if of[b] > 0 {
			sum, all = sum+n[b], all+of[b]
		}
	}
	return sum / all
}
