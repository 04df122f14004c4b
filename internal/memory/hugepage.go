package memory

import (
	"sync/atomic"
	"unsafe"
)

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
