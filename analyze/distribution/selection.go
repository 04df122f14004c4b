package distribution

import (
	"slices"
	"sort"
)

// A selection finds values of samples by their ranks. It counts them by their upper halves, and
// those that share an upper half in another pass by their lower ones, so that they stay where
// they are: that may be a file.
type selection struct {
	moments
	blocks [][]uint32
	long   []int64       // sorted; above all others
	upTo   []uint64      // by upper half: how many values have it, or a smaller one
	lower  map[int]lower // that were asked for, by upper half
}

const halves = 1 << 16

// lower is like upTo by lower half, of values with one upper half.
type lower []uint64

func newSelection(samples []*Sample) *selection {
	s := &selection{upTo: make([]uint64, halves), lower: map[int]lower{}}
	for _, x := range samples {
		s.blocks = append(s.blocks, x.last)
		if x.more != nil {
			s.blocks = append(s.blocks, x.more.full...)
			s.long = append(s.long, x.more.long...)
		}
	}
	for _, b := range s.blocks {
		for _, v := range b {
			s.upTo[v/halves]++
			s.add(int64(v))
		}
	}
	for _, v := range s.long {
		s.add(v)
	}
	slices.Sort(s.long)
	accumulate(s.upTo)
	return s
}

// accumulate makes numbers of values up to each of numbers of values at each.
func accumulate(counts []uint64) {
	for i := 1; i < len(counts); i++ {
		counts[i] += counts[i-1]
	}
}

// at returns the i-th smallest value, 0 <= i < n.
func (s *selection) at(i uint64) int64 {
	if small := s.upTo[halves-1]; i >= small {
		return s.long[i-small]
	}
	upper := place(s.upTo, i)
	if upper > 0 {
		i -= s.upTo[upper-1]
	}
	counts, known := s.lower[upper]
	if !known {
		counts = s.count(upper)
		s.lower[upper] = counts
	}
	return int64(upper)*halves + int64(place(counts, i))
}

// place returns the first half up to which there are more than i values.
func place(upTo []uint64, i uint64) int {
	return sort.Search(len(upTo), func(half int) bool { return upTo[half] > i })
}

// count counts the values with an upper half by their lower ones.
func (s *selection) count(upper int) lower {
	counts := make(lower, halves)
	for _, b := range s.blocks {
		for _, v := range b {
			if int(v/halves) == upper {
				counts[v%halves]++
			}
		}
	}
	accumulate(counts)
	return counts
}
