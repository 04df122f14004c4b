package slow

import (
	"github.com/sgtrace/sgtrace/analyze/telemetry"
)

// A course is a number in those buckets that have one.
type course struct {
	values  []float64
	buckets []int
	n, of   []float64 // by any bucket, the sums whose quotients the values are; nil of others
	end     int       // the bucket behind all
}

// quotients is the course of sums by what they are a mean over, by bucket.
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

// bucket is that of a value; behind the last one, it is the end.
func (x *course) bucket(k int) int {
	if k == len(x.buckets) {
		return x.end
	}
	return x.buckets[k]
}

// level is the mean of quotients [from, to), of all that they are a mean over together.
func (x *course) level(from, to int) float64 { return share(x.n, x.of, x.bucket(from), x.bucket(to)) }

// levels is the mean of some ranges of quotients together.
func (x *course) levels(times [][2]int) float64 {
	sum, all := 0.0, 0.0
	for _, t := range times {
		for _, b := range x.buckets[t[0]:t[1]] {
			sum, all = sum+x.n[b], all+x.of[b]
		}
	}
	return sum / all
}

// share is what some buckets have of a sum of theirs together; n is 0 where that is.
func share(n, of []float64, from, to int) float64 {
	sum, all := 0.0, 0.0
	for b := from; b < to; b++ {
		if of[b] > 0 {
			sum, all = sum+n[b], all+of[b]
		}
	}
	return sum / all
}
