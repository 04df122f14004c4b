package distribution

import (
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/sgtrace/sgtrace/internal/memory"
)

// A Sample collects non-negative values: durations in ns, or bytes. Most fit into 32 bits.
// They are stored in blocks, so that nothing is copied as the sample grows.
type Sample struct {
	last []uint32
	more *sampleRest // nil while last has all values
}

// sampleRest has the values that don't fit into the first block.
type sampleRest struct {
	full [][]uint32
	long []int64 // values of 1<<32 or more
	hist *histogram
}

const (
	// MinBlock and MaxBlock are the smallest and the largest block, in values. Large blocks move
	// to a temporary file when memory is short: see [memory.Make].
	MinBlock, MaxBlock = 4, 16 << 10
	// FewValues is the number of values that a sample always keeps.
	FewValues = 1024
)

// A Store bounds how many values all samples of a report hold. Beyond that, large samples become histograms.
type Store struct {
	Limit int64
	Held  atomic.Int64
}

// MaxHeld is the largest number of values that a report holds: 16 GB, most of which may be in a temporary file.
const MaxHeld = 4 << 30

// overflowed reports whether there were more values than the store may hold. Once all have
// been added, the answer does not depend on their order.
func (s *Store) overflowed() bool { return s.Held.Load() > s.Limit }

// Add adds a non-negative value.
func (s *Sample) Add(v int64, in *Store) {
	if v < 1<<32 && len(s.last) < cap(s.last) {
		s.last = append(s.last, uint32(v))
		return
	}
	s.addSlow(v, in)
}

func (s *Sample) addSlow(v int64, in *Store) {
	switch {
	case s.more != nil && s.more.hist != nil:
		s.more.hist.add(v)
	case v >= 1<<32:
		if s.more == nil {
			s.more = &sampleRest{}
		}
		s.more.long = append(s.more.long, v)
	default:
		s.grow(in)
		s.Add(v, in)
	}
}

// grow adds a block, or turns the sample into a histogram.
func (s *Sample) grow(in *Store) {
	if in.overflowed() && s.Len() > FewValues {
		s.fold()
		return
	}
	size := min(max(MinBlock, 2*cap(s.last)), MaxBlock)
	if len(s.last) > 0 {
		if s.more == nil {
			s.more = &sampleRest{}
		}
		s.more.full = append(s.more.full, s.last)
	}
	s.last = memory.Make[uint32](size)[:0]
	in.Held.Add(int64(size))
}

// Len returns how many values the sample has.
func (s *Sample) Len() int {
	n := len(s.last)
	if s.more != nil {
		n += len(s.more.long)
		for _, b := range s.more.full {
			n += len(b)
		}
		if s.more.hist != nil {
			n += int(s.more.hist.n)
		}
	}
	return n
}

// Each calls f for all stored values in the order in which they were added, except that values of 1<<32 or more come last.
func (s *Sample) Each(f func(v int64)) {
	if s.more != nil {
		for _, b := range s.more.full {
			for _, v := range b {
				f(int64(v))
			}
		}
	}
	for _, v := range s.last {
		f(int64(v))
	}
	if s.more == nil {
		return
	}
	for _, v := range s.more.long {
		f(v)
	}
}

// fold turns the sample into a histogram.
func (s *Sample) fold() {
	h := &histogram{}
	s.Each(h.add)
	s.last, s.more = nil, &sampleRest{hist: h}
}

// Settle folds a sample that would be a histogram if its values had been added last, so that the order doesn't matter.
func (s *Sample) Settle(in *Store) {
	if in.overflowed() && s.Len() > FewValues && (s.more == nil || s.more.hist == nil) {
		s.fold()
	}
}

// moments are the number, the sum, and the sum of squares of values. They are integers, so
// that forged times don't wrap around, and equal values have no deviation.
type moments struct {
	n       uint64
	sum     [2]uint64 // lowest word first
	squares [3]uint64
}

func (m *moments) add(v int64) {
	m.n++
	var carry uint64
	m.sum[0], carry = bits.Add64(m.sum[0], uint64(v), 0)
	m.sum[1] += carry
	hi, lo := bits.Mul64(uint64(v), uint64(v))
	m.squares[0], carry = bits.Add64(m.squares[0], lo, 0)
	m.squares[1], carry = bits.Add64(m.squares[1], hi, carry)
	m.squares[2] += carry
}

func (m *moments) merge(o *moments) {
	m.n += o.n
	var carry uint64
	m.sum[0], carry = bits.Add64(m.sum[0], o.sum[0], 0)
	m.sum[1], _ = bits.Add64(m.sum[1], o.sum[1], carry)
	m.squares[0], carry = bits.Add64(m.squares[0], o.squares[0], 0)
	m.squares[1], carry = bits.Add64(m.squares[1], o.squares[1], carry)
	m.squares[2] += o.squares[2] + carry
}

// total returns the sum, or [math.MaxInt64] if it exceeds that.
func (m *moments) total() int64 {
	if m.sum[1] != 0 || m.sum[0] > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(m.sum[0])
}

// mean returns the mean in tenths, rounded half up.
func (m *moments) mean() int64 {
	if m.n == 0 {
		return 0
	}
	whole, rest := bits.Div64(m.sum[1], m.sum[0], m.n) // no value has more than 63 bits
	return Tenths(int64(whole), int64((20*rest+m.n)/(2*m.n)))
}

// Tenths returns 10*whole + tenth without wrapping around.
func Tenths(whole, tenth int64) int64 {
	if whole > (math.MaxInt64-tenth)/10 {
		return math.MaxInt64
	}
	return 10*whole + tenth
}

// stdDev returns the standard deviation of the sample in tenths; 0 for a single value.
func (m *moments) stdDev() int64 {
	if m.n < 2 {
		return 0
	}
	n := float64(m.n)
	return int64(min(math.Round(10*math.Sqrt(m.spread()/n/(n-1))), math.MaxInt64/2))
}

// A histogram counts values in buckets whose width is at most a 128th of their values, so that the middle
// of a bucket is off by 0.4 % at most. Every value below 256 has a bucket of its own. Sums are exact.
type histogram struct {
	moments
	min, max int64
	octaves  [64 - subBits]*[1 << subBits]uint64
}

const subBits = 7

// bucket returns the bucket of a value. Octave 0 begins with 0, every other one with a power of two.
func bucket(v int64) (octave, sub int) {
	if v < 1<<subBits {
		return 0, int(v)
	}
	shift := bits.Len64(uint64(v)) - 1 - subBits
	return shift + 1, int(v>>shift) & (1<<subBits - 1)
}

// middle returns the value that represents a bucket.
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

// at returns approximately the value of rank n, counting from 0.
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
