package distribution

import "math/bits"

// A histogram counts values in buckets whose width is at most a 128th of their
// values, so that what lies in the middle of one is off by 0.4 % at most. Below 256
// every value has its own. Sums are exact.
type histogram struct {
	moments
	min, max int64
	octaves  [64 - subBits]*[1 << subBits]uint64
}

const subBits = 7

// bucket returns the place of a value. Octave 0 begins with 0, each other one with a
// power of two.
func bucket(v int64) (octave, sub int) {
	if v < 1<<subBits {
		return 0, int(v)
	}
	shift := bits.Len64(uint64(v)) - 1 - subBits
	return shift + 1, int(v>>shift) & (1<<subBits - 1)
}

// middle returns the value that stands for a bucket.
func middle(octave, sub int) int64 {
	if octave == 0 {
		return int64(sub)
	}
	width := int64(1) << (octave - 1)
	return (1<<subBits+int64(sub))*width + (width-1)/2
}

func (h *histogram) add(v int64) {
	if h.n == 0 {
		h.min = v
	}
	h.min, h.max = min(h.min, v), max(h.max, v)
	h.moments.add(v)
	octave, sub := bucket(v)
	if h.octaves[octave] == nil {
		h.octaves[octave] = new([1 << subBits]uint64)
	}
	h.octaves[octave][sub]++
}

func (h *histogram) merge(o *histogram) {
	if o.n == 0 {
		return
	}
	if h.n == 0 {
		h.min = o.min
	}
	h.min, h.max = min(h.min, o.min), max(h.max, o.max)
	h.moments.merge(&o.moments)
	for i, counts := range o.octaves {
		if counts == nil {
			continue
		}
		if h.octaves[i] == nil {
			h.octaves[i] = new([1 << subBits]uint64)
		}
		for k, n := range counts {
			h.octaves[i][k] += n
		}
	}
}

// at returns about the value that has n smaller or equal ones before it.
func (h *histogram) at(n uint64) int64 {
	for octave, counts := range h.octaves {
		if counts == nil {
			continue
		}
		for sub, count := range counts {
			if n < count {
				return min(max(middle(octave, sub), h.min), h.max)
			}
			n -= count
		}
	}
	return h.max
}
