// Package order sorts large tables by time, merges sorted lists, builds lists of lists, groups values in the
// order in which their keys appear, hashes keys, and adds selection and comparisons that packages slices and
// cmp lack.
package order

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"
)

// Bool orders false before true.
func Bool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Sorted returns the numbers below n in order, equal ones ascending: it sorts the row numbers of a table, and
// not the table.
func Sorted[I ~int | ~int32](n int, compare func(a, b I) int) []I {
	list := make([]I, n)
	for i := range list {
		list[i] = I(i)
	}
	slices.SortStableFunc(list, compare)
	return list
}

// Largest returns the keys of a map in order of their values, largest first; keys with equal values are sorted.
func Largest[K, V cmp.Ordered](m map[K]V) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
}

// A Key stands for a row of a table while it is sorted. Tag is carried along.
type Key struct {
	Time  uint64 // from any zero point
	Index uint32
	Tag   uint32
}

// digitBits is the width of a radix digit: its 2048 counters fit into the L1
// cache together with the streams being read and written.
const digitBits = 11

// few is the number of keys up to which comparing is faster than counting.
const few = 64

// ByTime sorts keys by time, and keeps the order of equal ones: a radix sort that counts each digit, lowest
// first, and skips digits in which all times agree. scratch is replaced if it is too small; sorted and other
// are keys and scratch in either order.
func ByTime(keys, scratch []Key) (sorted, other []Key) {
	if cap(scratch) < len(keys) {
		scratch = make([]Key, cap(keys))
	}
	scratch = scratch[:len(keys)]
	if len(keys) <= few || slices.IsSortedFunc(keys, byTime) {
		slices.SortStableFunc(keys, byTime)
		return keys, scratch
	}
	var differ uint64
	for i := range keys {
		differ |= keys[i].Time ^ keys[0].Time
	}
	for shift := 0; differ>>shift != 0; shift += digitBits {
		if differ>>shift&(1<<digitBits-1) == 0 {
			continue
		}
		var at [1 << digitBits]uint32
		for i := range keys {
			at[keys[i].Time>>shift&(1<<digitBits-1)]++
		}
		var sum uint32
		for d, n := range at {
			at[d] = sum
			sum += n
		}
		for i := range keys {
			d := keys[i].Time >> shift & (1<<digitBits - 1)
			scratch[at[d]] = keys[i]
			at[d]++
		}
		keys, scratch = scratch, keys
	}
	return keys, scratch
}

// Integers sorts non-negative numbers by their bits from low up, in the way of [ByTime], and keeps the order of
// equal ones: durations, or keys with a row number in the low bits. scratch and the results are as in ByTime.
func Integers[T int64 | uint64 | uint32](values, scratch []T, low int) (sorted, other []T) {
	if cap(scratch) < len(values) {
		scratch = make([]T, cap(values))
	}
	scratch = scratch[:len(values)]
	if slices.IsSortedFunc(values, func(a, b T) int { return cmp.Compare(a>>low, b>>low) }) {
		return values, scratch
	}
	var differ T
	for _, v := range values {
		differ |= v ^ values[0]
	}
	for shift := low; differ>>shift != 0; shift += digitBits {
		if differ>>shift&(1<<digitBits-1) == 0 {
			continue
		}
		var at [1 << digitBits]uint32
		for _, v := range values {
			at[v>>shift&(1<<digitBits-1)]++
		}
		var sum uint32
		for d, n := range at {
			at[d] = sum
			sum += n
		}
		for _, v := range values {
			d := v >> shift & (1<<digitBits - 1)
			scratch[at[d]] = v
			at[d]++
		}
		values, scratch = scratch, values
	}
	return values, scratch
}

// Float maps a float to a [Key.Time] of the same order.
func Float(v float64) uint64 {
	const sign = 1 << 63
	if bits := math.Float64bits(v); bits&sign != 0 {
		return ^bits
	} else {
		return bits | sign
	}
}

// Descending maps a number to a [Key.Time] that sorts the largest number first.
func Descending(v int64) uint64 { return ^(uint64(v) ^ 1<<63) }

func byTime(a, b Key) int { return cmp.Compare(a.Time, b.Time) }

// Apply moves row order[i] of table to place i, along the cycles of the permutation: large tables need no copy.
func Apply[T any, I ~uint32](table []T, order []I) {
	done := make([]uint64, len(order)/64+1)
	for start := range order {
		if done[start/64]>>(start%64)&1 != 0 {
			continue
		}
		first := table[start]
		at := start
		for {
			done[at/64] |= 1 << (at % 64)
			from := int(order[at])
			if from == start {
				break
			}
			table[at] = table[from]
			at = from
		}
		table[at] = first
	}
}

// Nth returns the value at index k of v if it were sorted, and puts smaller values before it: Hoare's
// selection, which looks at each value about three times, where sorting takes log n.
func Nth[T cmp.Ordered](v []T, k int) T {
	const few = 64
	for rounds := 4 * bits.Len(uint(len(v))); len(v) > few && rounds > 0; rounds-- {
		last := len(v) - 1
		pivot := max(min(v[0], v[last/2]), min(max(v[0], v[last/2]), v[last]))
		i, j := 0, last
		for i <= j {
			for cmp.Less(v[i], pivot) {
				i++
			}
			for cmp.Less(pivot, v[j]) {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			v = v[:j+1]
		case k >= i:
			v, k = v[i:], k-i
		default:
			return v[k]
		}
	}
	slices.Sort(v) // few values, or no pivot divides them well
	return v[k]
}

// Median returns the median of x, which it does not change; 0 if x is empty.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	return SortedMedian(slices.Clone(x))
}

// SortedMedian sorts x, which must not be empty, and returns its median.
func SortedMedian(x []float64) float64 {
	slices.Sort(x)
	return MedianOfSorted(x)
}

// MedianOfSorted returns the median of sorted values, of which there must be at least one.
func MedianOfSorted(x []float64) float64 {
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}

// Merge passes the elements of sorted streams in one sorted order. A stream is at its first element; next moves
// it to the following one, and returns false at the end. before compares the current elements of two streams;
// equal ones come in any order.
func Merge[S any](streams []S, before func(a, b S) bool, next func(S) bool, pass func(S)) {
	heap := streams
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, before, i)
	}
	for len(heap) > 0 {
		pass(heap[0])
		if !next(heap[0]) {
			last := len(heap) - 1
			heap[0], heap = heap[last], heap[:last]
		}
		sink(heap, before, 0)
	}
}

// sink restores the heap below i.
func sink[S any](heap []S, before func(a, b S) bool, i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(heap) && before(heap[child], heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

// Mix returns the finalizer of splitmix64: a bijection whose bits all depend on all
// bits of x.
func Mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// MixText returns a hash of a text: FNV-1a, whose high bits hardly depend on the last characters, mixed.
func MixText(text string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 0x100000001b3
	}
	return Mix(h)
}
