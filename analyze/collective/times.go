package collective

import (
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
)

// times are differences of times, ns. Most take 4 bytes.
type times struct {
	near distribution.Sample // nearZero more
	far  []int64             // the others
}

// nearZero is how far from zero a time is that takes 4 bytes.
const nearZero = 1 << 31

func (t *times) add(ns int64) {
	if ns >= -nearZero && ns < nearZero {
		t.near.Add(ns+nearZero, distribution.NoLimit)
	} else {
		t.far = append(t.far, ns)
	}
}

// A timeSorter finds percentiles of times. It keeps its scratch space.
type timeSorter struct{ values, scratch []int64 }

// percentiles returns the median and the 99th percentile, nearest rank, of some times
// together; 0 of none.
func (s *timeSorter) percentiles(all ...*times) (p50, p99 int64) {
	s.values = s.values[:0]
	far := false
	for _, t := range all {
		t.near.Each(func(v int64) { s.values = append(s.values, v) })
		far = far || len(t.far) > 0
	}
	if far {
		for i := range s.values {
			s.values[i] -= nearZero
		}
		for _, t := range all {
			s.values = append(s.values, t.far...)
		}
		slices.Sort(s.values)
		return request.NearestRank(s.values, 50), request.NearestRank(s.values, 99)
	}
	if len(s.values) == 0 {
		return 0, 0
	}
	s.values, s.scratch = order.Integers(s.values, s.scratch, 0)
	return request.NearestRank(s.values, 50) - nearZero, request.NearestRank(s.values, 99) - nearZero
}

// A summarizer sums up samples. It keeps its scratch space.
type summarizer struct {
	Summarizer distribution.Summarizer
	values     []int64
}

func (s *summarizer) of(x *distribution.Sample) distribution.Summary {
	s.values = slices.Grow(s.values[:0], x.Len())
	x.Each(func(v int64) { s.values = append(s.values, v) })
	return s.Summarizer.Summarize(s.values)
}
