// Package memory keeps what a run holds within a budget.
//
// Large tables come from [Make]. Where the budget has no room for one, it lies in a
// temporary file that has no name, mapped into memory: the kernel takes its pages
// away when it needs them for something else, and [Watch] gives them back before the
// budget is exceeded. What cannot be moved is the Go heap; when that alone exceeds
// the budget, Watch says so, and the run has to end.
//
// The budget is one for the process, as its memory is.
package memory

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// budget is how many bytes the process may hold; 0 is any number.
var budget atomic.Int64

// spilled counts the bytes of tables that did not fit and went to the file.
var spilled atomic.Int64

// SetBudget bounds what the process holds to about the given number of bytes; 0 is
// no bound.
func SetBudget(bytes int64) {
	budget.Store(bytes)
	if bytes > 0 {
		// The collector works harder as the heap comes near.
		debug.SetMemoryLimit(bytes / 8 * 7)
	}
}

// Budget returns what SetBudget has set.
func Budget() int64 { return budget.Load() }

// Spilled returns how many bytes of tables had no room in memory.
func Spilled() int64 { return spilled.Load() }

// smallest is the size from which a table may go to the file, in bytes.
const smallest = 64 << 10

// Make returns a table of n zero values, with no room for more. T must not hold
// pointers: the garbage collector does not look into files.
func Make[T any](n int) []T {
	var zero T
	size := int64(n) * int64(unsafe.Sizeof(zero))
	if size >= smallest && tight(size) {
		if b := file.table(size); b != nil {
			spilled.Add(size)
			return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
		}
	}
	return make([]T, n)
}

// Of the budget, a third is for what cannot be moved, but at least what reading and
// writing take whatever the size of the input.
const (
	unmovable      = 3
	leastUnmovable = 200_000_000
)

// tight reports whether so many bytes more would leave too little to what cannot be moved.
func tight(more int64) bool {
	limit := budget.Load()
	reserve := min(max(limit/unmovable, leastUnmovable), limit/8*7)
	return limit > 0 && heap()+more > limit-reserve
}

// heap returns what the Go runtime holds, in bytes.
func heap() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// live returns what the Go heap holds that is in use, or was when it was last
// collected.
func live() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(min(s[0].Value.Uint64(), s[1].Value.Uint64()))
}

// Room returns how many bytes of n, which are convenient to keep in memory, the budget
// has room for beside everything else: a sixteenth of it.
func Room(n int64) int64 {
	if limit := budget.Load(); limit > 0 {
		return min(n, limit/16)
	}
	return n
}

// Relax gives back the pages of the file that are in memory. They are read again when
// they are needed.
func Relax() { file.relax() }

// Watch looks at what the process holds from time to time, gives back what can be
// given back when it comes near the budget, and calls exceeded if what remains is
// beyond it. It ends with stop.
func Watch(exceeded func()) (stop func()) {
	ticker, done := time.NewTicker(10*time.Millisecond), make(chan struct{})
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				if isExceeded() {
					exceeded()
					return
				}
			}
		}
	}()
	return sync.OnceFunc(func() { close(done) })
}

// isExceeded gives back what can be given back, if that is needed, and reports whether
// it is too little.
func isExceeded() bool {
	limit := budget.Load()
	if limit == 0 || held() < limit/4*3 {
		return false
	}
	Relax()
	if heap() < limit/8*7 {
		return false
	}
	if live() > limit/16*15 {
		runtime.GC() // what was live may be so no more
		if live() > limit/16*15 {
			return true
		}
	}
	debug.FreeOSMemory()
	return false
}
