//go:build unix

package memory

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// areas are the free parts of the file, given up by tables. Adjacent ones are merged.
type areas struct {
	size    map[uintptr]int            // by start
	begin   map[uintptr]unsafe.Pointer // by end
	byClass [64][]unsafe.Pointer       // starts by the bit length of the size; some areas were merged or taken since
}

// add frees an area, and merges it with adjacent free ones.
func (a *areas) add(at unsafe.Pointer, size int) {
	if a.size == nil {
		a.size, a.begin = map[uintptr]int{}, map[uintptr]unsafe.Pointer{}
	}
	if before, ok := a.begin[uintptr(at)]; ok {
		size += a.drop(uintptr(before))
		at = before
	}
	size += a.drop(uintptr(at) + uintptr(size))
	a.size[uintptr(at)], a.begin[uintptr(at)+uintptr(size)] = size, at
	class := bits.Len(uint(size))
	a.byClass[class] = append(a.byClass[class], at)
}

// drop removes the area at at and returns its size; 0 if there is none.
func (a *areas) drop(at uintptr) (size int) {
	if size = a.size[at]; size > 0 {
		delete(a.size, at)
		delete(a.begin, at+uintptr(size))
	}
	return size
}

// take returns size bytes from a free area, or nil if it finds none. Of each size class it tries only the last
// area.
func (a *areas) take(size int) unsafe.Pointer {
	for class := bits.Len(uint(size)); class < len(a.byClass); class++ {
		for list := a.byClass[class]; len(list) > 0; list = a.byClass[class] {
			at := list[len(list)-1]
			has := a.size[uintptr(at)]
			isOfClass := bits.Len(uint(has)) == class
			if isOfClass && has < size {
				break // try the next class
			}
			if a.byClass[class] = list[:len(list)-1]; !isOfClass {
				continue // it was merged or taken since
			}
			a.drop(uintptr(at))
			if has > size {
				a.add(unsafe.Add(at, size), has-size)
			}
			return at
		}
	}
	return nil
}

// hugePage is the size of a huge page in bytes, where small ones have 4 kB.
const hugePage = 2 << 20

// Huge asks the kernel to back a slice, to which nobody has written yet, with huge pages, and returns the
// slice. On a virtual machine the first write to a page costs up to 10 us, whatever its size, which adds up to
// a quarter of the time to read a dump. The advice applies to whole pages, and so to whatever else of the Go
// heap is on them; it changes no value. Huge does nothing where the budget is tight, since a huge page takes
// all of its memory at once.
func Huge[T any](s []T) []T {
	var zero T
	size := uintptr(cap(s)) * unsafe.Sizeof(zero)
	if size < smallest {
		return s
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	for page := at / hugePage; page <= (at+size-1)/hugePage; page++ {
		if known := &advised[page%uintptr(len(advised))]; !known.Load() && !Tight(hugePage) {
			known.Store(true)
			adviseHuge(page * hugePage) // a number, not a pointer: a page may begin where the heap has no object, which would stop the collector
		}
	}
	return s
}

// advised records the pages that the kernel was asked for, by page number. The Go heap is contiguous, and this
// covers 64 GB of it.
var advised [1 << 15]atomic.Bool
