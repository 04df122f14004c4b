// Package memory keeps the tables of a run within a budget, and moves the others to temporary files.
//
// Large tables come from [Make], [Grow], and [Append]. A table that does not fit in the budget lies in an
// unnamed temporary file that is mapped into memory, so that the kernel can reclaim its pages. [Touch], which
// code that walks over large tables calls on the way, and [Watch] give pages back before they become many. The
// Go heap cannot be moved: when it alone exceeds the budget, Watch says so, and the run has to end.
//
// There is one budget for the process, as there is one memory.
//
// Data that must be read by path lies in a named temporary file from [TempFile] or [TempDir], which the caller
// removes. If the program is interrupted, package main removes them with [RemoveTemporary]; [WatchTemporary]
// tells it when there is something to remove. All temporary files are in [os.TempDir].
//
// A [Spool] keeps a stream that can be read only once, such as a pipe, so that it can be read again: a little
// of it in memory, the rest in a temporary file.
package memory

import (
	"iter"
	"math"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// budget is the number of bytes beyond which tables go to the file, and bound the number beyond which the run
// ends. 0 is unlimited.
var budget, bound atomic.Int64

// spilled counts the bytes of tables that went to the file.
var spilled atomic.Int64

// SetBudget limits the memory of the process to about the given number of bytes; 0 is unlimited. It resets
// Spilled to 0.
func SetBudget(bytes int64) {
	budget.Store(bytes)
	bound.Store(bytes)
	spilled.Store(0)
}

// SetBound lets the memory that cannot move to the file exceed the budget: the run ends only beyond this many
// bytes.
func SetBound(bytes int64) { bound.Store(max(bytes, budget.Load())) }

// heapMost returns the part of a budget that the Go runtime may hold.
func heapMost(budget int64) int64 { return budget / 8 * 7 }

// Budget returns the budget set by SetBudget.
func Budget() int64 { return budget.Load() }

// Spilled returns the number of bytes of tables that did not fit in the budget.
func Spilled() int64 { return spilled.Load() }

// smallest is the smallest size in bytes of a table that may go to the file.
const smallest = 32 << 10

// Make returns a table of n zero values, with no room for more. T must not hold
// pointers: the garbage collector does not look into files.
func Make[T any](n int) []T {
	var zero T
	size := int64(n) * int64(unsafe.Sizeof(zero))
	if size < smallest {
		return make([]T, n)
	}
	mustHoldNoPointers[T]() // even if it does not go to the file, so that every run shows the mistake
	if Tight(size) {
		if b := file.table(size, liesApart[T]()); b != nil {
			spilled.Add(size)
			return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
		}
	}
	return Huge(make([]T, n))
}

// Apart marks rows whose tables are accessed at random, or in many places at once. Other tables are walked row
// by row, though not always on the same core.
type Apart interface{ LiesApart() }

func liesApart[T any]() bool {
	var zero T
	_, ok := any(zero).(Apart)
	return ok
}

// mustHoldNoPointers panics if values of T hold pointers: the collector would free what they point to while
// they lie in the file.
func mustHoldNoPointers[T any]() {
	if t := reflect.TypeFor[T](); holdsPointers(t) {
		panic("a table of " + t.String() + ", which holds pointers")
	}
}

func holdsPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && holdsPointers(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if holdsPointers(f.Type) {
				return true
			}
		}
		return false
	case reflect.String, reflect.Slice, reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.Interface, reflect.UnsafePointer:
		return true
	}
	return false
}

// Grow makes room for n more values in a table, like [slices.Grow], but for no more than that, so that unused
// memory stays untouched. T must suit [Make].
func Grow[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	return append(Make[T](len(s) + n)[:0], s...)
}

// Append appends values to a table, like append. When a full table grows, it gives up its place in the file, so
// that no other slice of it may be in use; a part cut off from the rest, as in s[:n:n], gives up nothing. T
// must suit [Make].
func Append[T any](s []T, v ...T) []T {
	const small = 1 << 12
	n := len(s)
	if n > small {
		if n+len(v) > cap(s) {
			s = widen(s, len(v))
		}
		if n%small == 0 {
			Touch(small * int(unsafe.Sizeof(s[0])))
		}
	}
	return append(s, v...)
}

// widen makes room for n more values, and doubles the table, since pages that nobody has written to take no
// memory: in the file, and in the Go heap while the budget has room for several such tables. Closer to the
// budget, it adds a quarter.
func widen[T any](s []T, n int) []T {
	size := int64(unsafe.Sizeof(s[0]))
	mustHoldNoPointers[T]()
	const several = 8
	wider := len(s) + max(len(s), n)
	if Tight(several * int64(wider) * size) {
		wider = len(s) + max(len(s)/4, n)
	}
	if Tight(int64(wider) * size) {
		if b := file.wide(int64(max(2*len(s), len(s)+n))*size, liesApart[T]()); b != nil {
			wide := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(size))
			copy(wide, s)
			Free(s)
			spilled.Add(int64(len(wide)-cap(s)) * size)
			return wide[:len(s)]
		}
	}
	return append(Huge(make([]T, 0, wider)), s...)
}

// Free gives up a table that is no longer in use, not even in part: another table may take its place in the file.
// Freeing a part cut off from the rest, as in s[:n:n], gives up nothing.
func Free[T any](s []T) {
	var zero T
	if size := cap(s) * int(unsafe.Sizeof(zero)); size >= smallest {
		file.giveUp(unsafe.Pointer(unsafe.SliceData(s)), size)
	}
}

// A third of the budget is reserved for memory that cannot be moved, but at least what reading and writing take
// whatever the size of the input.
const (
	unmovable    = 3
	minUnmovable = 280_000_000
)

// Tight reports whether the budget has no room for this many more bytes.
func Tight(more int64) bool {
	limit := budget.Load()
	return limit > 0 && heap()+more > limit-min(max(limit/unmovable, minUnmovable), heapMost(limit))
}

// heap returns the number of bytes that the Go runtime holds. Tests replace it.
var heap = func() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// live returns the live bytes of the Go heap, as of the last collection.
func live() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(min(s[0].Value.Uint64(), s[1].Value.Uint64()))
}

// Relax gives back the pages of the file that are in memory. They are read again when needed.
func Relax() { file.relax() }

// Touch announces that this many bytes of tables are about to be read or written sequentially. Since a busy
// machine delays Watch, code that walks over large tables calls Touch on the way: the more often, the closer
// the process keeps to its budget.
func Touch(bytes int) {
	if !file.isEmpty() { // else there are no pages to give back, and cores would only contend for the counter
		touch(int64(bytes))
	}
}

func touch(bytes int64) {
	if due := stride.Load(); touched.Add(bytes) >= due {
		relaxEarly(due)
	}
}

// touched counts the bytes passed to Touch since the last look at the memory of the process. Touch looks once
// per stride, as a look takes microseconds.
var touched, stride atomic.Int64

// A stride is 1/partOfRoom of the last known room, and smaller if the touched bytes lay far apart: the kernel
// may map many pages for each row that is read.
const (
	partOfRoom    = 24
	minStride     = 32 << 10
	longestStride = 4 << 20
)

// FarApart is the most that the kernel may map for a row far from those accessed before, in bytes.
const FarApart = 2 << 20

// Picked estimates how many bytes the kernel maps for each row, if a walk picks some of the rows of a large
// table in order.
func Picked(some, rows, size int) int { return min(max(rows/max(some, 1), 1)*size, FarApart) }

// Each yields the indexes of the n rows of a large table, and tells [Touch] about a walk that reads size bytes
// of each row.
func Each(n, size int) iter.Seq[int] {
	return func(yield func(int) bool) {
		const whole = 64 << 10 // bytes per call of Touch
		together := max(whole/size, 1)
		for i := range n {
			if i%together == 0 {
				Touch(together * size)
			}
			if !yield(i) {
				return
			}
		}
	}
}

// Watch checks periodically how much memory the process holds, gives back what it can, and calls exceeded if
// the rest exceeds the bound. stop ends it, which exceeded must not call, and restores the runtime's memory
// limit. A limit that was set before, such as $GOMEMLIMIT, stays in force.
func Watch(exceeded func()) (stop func()) {
	given := debug.SetMemoryLimit(-1)
	if bound := bound.Load(); bound > 0 {
		debug.SetMemoryLimit(min(given, heapMost(bound))) // the collector works harder as the heap comes near
	}
	done := make(chan struct{})
	var watchers sync.WaitGroup
	watchers.Go(func() { every(2*time.Millisecond, done, func() { relaxEarly(0) }) })
	// A goroutine of its own, since changing the limit waits for the collector.
	var limit int64
	watchers.Go(func() {
		every(20*time.Millisecond, done, func() {
			if given == math.MaxInt64 {
				limit = collectEarly(limit)
			}
			if isExceeded() {
				exceeded()
			}
		})
	})
	return sync.OnceFunc(func() {
		close(done)
		watchers.Wait()
		debug.SetMemoryLimit(given)
	})
}

// every calls f periodically until done is closed.
func every(pause time.Duration, done <-chan struct{}, f func()) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			f()
		}
	}
}

// Bounds of the memory besides live data: garbage, and pages of files, which include the program's own. In
// bytes, or as parts.
const (
	minGarbage   = 48 << 20
	minHeap      = 160 << 20 // a smaller heap is not worth an early collection
	minPages     = 48 << 20  // 30 of them are the program's
	minRoom      = 100 << 20 // between the budget and where pages are given back: a busy machine delays the next look
	partOfHeap   = 16        // next to a large heap, this part of it in pages does not matter
	partAtEase   = 4         // of the budget: below it, the collector takes its time
	partOfBudget = 3         // of the budget: worth an early collection, if that is less than minHeap
)

// relaxEarly gives back the pages of the file if the process holds much. Pages come back one by one, so it pays
// to keep them as long as there is room. It does nothing if fewer than due bytes were touched, since another
// goroutine has just looked.
func relaxEarly(due int64) {
	if file.isEmpty() {
		return // saves asking the kernel
	}
	relaxing.Lock()
	defer relaxing.Unlock()
	if touched.Load() < due {
		return
	}
	most := min(budget.Load()/4*3, budget.Load()-minRoom)
	all, pages := held()
	mapped.look(touched.Swap(0), pages)
	mostPages := max(minPages, (all-pages)/partOfHeap)
	if all > most && pages > mostPages {
		Relax()
		all, pages = held()
	}
	mapped.before = pages
	stride.Store(mapped.stride(max(most-all, mostPages-pages)))
}

// A mapping is the number of bytes that the kernel recently mapped per byte touched, and the number that was
// mapped after the last look.
type mapping struct{ each, before int64 }

// mapped is the mapping of the process, guarded by relaxing.
var mapped = mapping{each: 16}

// look updates m for touched bytes, and now mapped bytes. It remembers a walk of many places for a few looks,
// since the next walk may be like it.
func (m *mapping) look(touched, now int64) {
	if touched >= minStride {
		m.each = max((now-m.before)/touched, m.each/2, 1)
	}
}

// stride returns how many bytes may be touched until the next look, given the room in bytes.
func (m *mapping) stride(room int64) int64 {
	return min(max(room/partOfRoom/m.each, minStride), longestStride)
}

// relaxing is held while pages are given back, so that other goroutines wait for the room.
var relaxing sync.Mutex

// collectEarly bounds garbage near the budget: to an eighth of the live heap plus minGarbage. A collection
// takes little time, as the large tables hold no pointers, or are in the file. Far from the budget, garbage may
// be as large as the live heap. It returns the new memory limit of the runtime, given the previous one.
func collectEarly(before int64) int64 {
	used := live()
	limit := max(used+used/8+minGarbage, minHeap)
	if budget := budget.Load(); budget > 0 {
		limit = max(used+used/8+minGarbage, min(minHeap, budget/partOfBudget))
		limit = min(max(limit, min(2*used, budget/partAtEase)), heapMost(bound.Load()))
	}
	const same = 32 // ignore changes below 1/same: each one stops the program for a moment
	if diff := limit - before; max(diff, -diff) <= before/same {
		return before
	}
	debug.SetMemoryLimit(limit)
	return limit
}

// isExceeded frees unused memory of the runtime if it is near the bound, and reports whether that is not
// enough.
func isExceeded() bool {
	limit := bound.Load()
	if limit == 0 || heap() < heapMost(limit) {
		return false
	}
	most := limit / 16 * 15
	if live() > most {
		runtime.GC() // some of it may be garbage by now
		if live() > most {
			return true
		}
	}
	debug.FreeOSMemory()
	return false
}
