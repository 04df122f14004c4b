//go:build unix

package memory

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// areas are the parts of the file that tables have given up. Neighbors are one area.
type areas struct {
	size    map[uintptr]int            // of an area, by where it begins
	begin   map[uintptr]unsafe.Pointer // of an area, by where it ends
	byClass [64][]unsafe.Pointer       // where areas begin that had so many bits of size; some were merged or taken since
}

// add takes an area in, with the free ones beside it.
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

// drop forgets an area, and returns its size; 0 if there is none.
func (a *areas) drop(at uintptr) (size int) {
	if size = a.size[at]; size > 0 {
		delete(a.size, at)
		delete(a.begin, at+uintptr(size))
	}
	return size
}

// take returns so many bytes of an area, nil if none is certain to have them: of those of the same class,
// only the last one is looked at.
func (a *areas) take(size int) unsafe.Pointer {
	for class := bits.Len(uint(size)); class < len(a.byClass); class++ {
		for list := a.byClass[class]; len(list) > 0; list = a.byClass[class] {
			at := list[len(list)-1]
			has := a.size[uintptr(at)]
			isOfClass := bits.Len(uint(has)) == class
			if isOfClass && has < size {
				break // in this class, of which others may fit
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

// Huge asks the kernel for huge pages where a slice lies to which nobody has written yet, and returns
// the slice. The first write to a page costs a virtual machine up to 10 us, whatever its size: a
// quarter of what it takes to read a dump. The advice is for whole pages, and so for what else of the Go
// heap is on them; it changes no value. Where the budget has no room, none is given, since a huge
// page is there as a whole.
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
			adviseHuge(page * hugePage) // and no pointer: a page may begin where the heap has no object, which stops the collector
		}
	}
	return s
}

// advised has whether the kernel was asked for a page, by its number: the Go heap is in one piece, of
// which it covers 64 GB.
var advised [1 << 15]atomic.Bool
