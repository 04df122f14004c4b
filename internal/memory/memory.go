// Package memory keeps what a run holds within a budget, and the rest in temporary files.
//
// Large tables come from [Make], [Grow], and [Append]. Where the budget has no room for a
// table, it lies in a temporary file that has no name, mapped into memory: the kernel takes
// its pages away when it needs them for something else. [Touch], which whoever walks over
// large tables calls on the way, gives them back before they become many, as does [Watch].
// What cannot be moved is the Go heap; when that alone exceeds the budget, Watch says so, and
// the run has to end.
//
// The budget is one for the process, as its memory is.
//
// What must be read by its path lies in a temporary file that has a name, from [TempFile] or
// [TempDir]. Whoever makes one removes it. If the program is interrupted, the others go with
// [RemoveTemporary], which package main calls: [WatchTemporary] tells it when there is something
// to remove. All temporary files are where [os.TempDir] says.
//
// A [Spool] keeps what can be read once only, such as a pipe, for those who read it twice:
// little of it in memory, more in a temporary file.
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

// budget is how many bytes the process should hold, beyond which tables go to the file; bound
// is how many it may hold, beyond which the run ends. 0 is any number.
var budget, bound atomic.Int64

// spilled counts the bytes of tables that did not fit and went to the file.
var spilled atomic.Int64

// SetBudget bounds what the process holds to about the given number of bytes; 0 is
// no bound. What Spilled returns starts at 0 again.
func SetBudget(bytes int64) {
	budget.Store(bytes)
	bound.Store(bytes)
	spilled.Store(0)
}

// SetBound lets what cannot move to the file exceed the budget: the run ends only beyond so many bytes.
func SetBound(bytes int64) { bound.Store(max(bytes, budget.Load())) }

// heapMost is how much of a budget the Go runtime may hold.
func heapMost(budget int64) int64 { return budget / 8 * 7 }

// Budget returns what SetBudget has set.
func Budget() int64 { return budget.Load() }

// Spilled returns how many bytes of tables had no room in the budget.
func Spilled() int64 { return spilled.Load() }

// smallest is the size from which a table may go to the file, in bytes.
const smallest = 32 << 10

// Make returns a table of n zero values, with no room for more. T must not hold
// pointers: the garbage collector does not look into files.
func Make[T any](n int) []T {
	var zero T
	size := int64(n) * int64(unsafe.Sizeof(zero))
	if size < smallest {
		return make([]T, n)
	}
	mustHoldNoPointers[T]() // whether or not it goes to the file: every run shows the mistake
	if Tight(size) {
		if b := file.table(size, liesApart[T]()); b != nil {
			spilled.Add(size)
			return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
		}
	}
	return Huge(make([]T, n))
}

// Apart is what rows are whose tables are looked at in no order, or in many places at once. Others
// are walked over, row by row, now on one core, now on the other.
type Apart interface{ LiesApart() }

func liesApart[T any]() bool {
	var zero T
	_, ok := any(zero).(Apart)
	return ok
}

// mustHoldNoPointers panics if values of T hold pointers: what they point to would be collected
// while they lie in the file.
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

// Grow makes room for n more values in a table, like [slices.Grow], but no more than that,
// so that it leaves memory alone that is not used yet. It is for what [Make] is for.
func Grow[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	return append(Make[T](len(s) + n)[:0], s...)
}

// Append appends values to a table, like append. One that is full gives up its place in the
// file when it grows, so that no other slice of it may be in use; one that was cut off from the
// rest, as in s[:n:n], gives up nothing. It is for what [Make] is for.
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

// widen makes room for n more values, and for as many as there are, since pages that nobody
// has written to take no memory: in the file, and in the Go heap as long as the budget has room
// for several such tables. Nearer to it, for a quarter of what there is.
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

// Free gives up a table that nobody uses any more, nor a part of it: another one may take its place
// in the file. One that was cut off from the rest, as in s[:n:n], gives up nothing.
func Free[T any](s []T) {
	var zero T
	if size := cap(s) * int(unsafe.Sizeof(zero)); size >= smallest {
		file.giveUp(unsafe.Pointer(unsafe.SliceData(s)), size)
	}
}

// Of the budget, a third is for what cannot be moved, but at least what reading and
// writing take whatever the size of the input.
const (
	unmovable    = 3
	minUnmovable = 280_000_000
)

// Tight reports whether the budget has no room for so many bytes more.
func Tight(more int64) bool {
	limit := budget.Load()
	return limit > 0 && heap()+more > limit-min(max(limit/unmovable, minUnmovable), heapMost(limit))
}

// heap returns what the Go runtime holds, in bytes. A test has an account of its own.
var heap = func() int64 {
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

// Relax gives back the pages of the file that are in memory. They are read again when
// they are needed.
func Relax() { file.relax() }

// Touch says that so many bytes of tables are about to be read or written, one after the
// other. A busy machine lets Watch run late, so that whoever walks over large tables says so
// on the way: the more often, the closer the process keeps to its budget.
func Touch(bytes int) {
	if !file.isEmpty() { // else nothing can be given back, and cores would only wait for each other to count
		touch(int64(bytes))
	}
}

func touch(bytes int64) {
	if due := stride.Load(); touched.Add(bytes) >= due {
		relaxEarly(due)
	}
}

// touched counts the bytes that Touch was told of since somebody looked at what the process holds,
// which Touch does once in a stride: that takes microseconds.
var touched, stride atomic.Int64

// A stride is a part of the room that there was, smaller where what was touched lay far apart: the kernel
// maps many pages where one is read.
const (
	partOfRoom    = 24
	minStride     = 32 << 10
	longestStride = 4 << 20
)

// FarApart is how many bytes the kernel may map for a row that is far from those looked at before.
const FarApart = 2 << 20

// Picked is how many bytes a walk over some of the rows of a large table, in order, has the kernel map for each.
func Picked(some, rows, size int) int { return min(max(rows/max(some, 1), 1)*size, FarApart) }

// Each yields the numbers of the n rows of a large table, and says to [Touch] that a walk over
// them looks at so many bytes in each.
func Each(n, size int) iter.Seq[int] {
	return func(yield func(int) bool) {
		const whole = 64 << 10 // bytes, which are looked at before Touch hears of more
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

// Watch looks at what the process holds from time to time, gives back what can be
// given back, and calls exceeded if what remains is beyond the bound. It ends with stop,
// which exceeded must not call; then the runtime has the limit that it had before. If that
// was one, such as $GOMEMLIMIT, it holds in between, too.
func Watch(exceeded func()) (stop func()) {
	given := debug.SetMemoryLimit(-1)
	if bound := bound.Load(); bound > 0 {
		debug.SetMemoryLimit(min(given, heapMost(bound))) // the collector works harder as the heap comes near
	}
	done := make(chan struct{})
	var watchers sync.WaitGroup
	watchers.Go(func() { every(2*time.Millisecond, done, func() { relaxEarly(0) }) })
	// By itself, since a change of the limit waits for the collector.
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

// every calls f from time to time until done is closed.
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

// What is held beside what is live, in bytes: garbage, and pages of files, the program's own
// among them.
const (
	minGarbage   = 48 << 20
	minHeap      = 160 << 20 // which is not worth an early collection
	minPages     = 48 << 20  // of which 30 are the program's
	minRoom      = 100 << 20 // below the budget, which fills while a busy machine lets nobody look
	partOfHeap   = 16        // beside a large heap, so much of it in pages does not matter
	partAtEase   = 4         // of the budget: with less, the collector takes its time
	partOfBudget = 3         // that is worth an early collection, where that is less
)

// relaxEarly gives back the pages of the file if the process holds much. Pages come back one
// by one, so that it pays to keep them as long as there is room. It does nothing if fewer bytes than are due were touched
// since somebody else has looked.
func relaxEarly(due int64) {
	if file.isEmpty() {
		return // without asking the kernel what the process holds
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

// A mapping is what the kernel mapped of the file for each byte touched of late, and how much of it there was
// after the last look.
type mapping struct{ each, before int64 }

// mapped is that of the process. Whoever holds relaxing has it.
var mapped = mapping{each: 16}

// look takes in that so many bytes were touched, and how much is mapped now. One walk of many places
// is remembered for some looks: the next one may be like it.
func (m *mapping) look(touched, now int64) {
	if touched >= minStride {
		m.each = max((now-m.before)/touched, m.each/2, 1)
	}
}

// stride returns how many bytes may be touched until the next look, given the room that there is.
func (m *mapping) stride(room int64) int64 {
	return min(max(room/partOfRoom/m.each, minStride), longestStride)
}

// relaxing is held by whoever is at it, so that others wait until there is room.
var relaxing sync.Mutex

// collectEarly bounds garbage to an eighth of what is live, but at least to some, where the
// budget is near: the large tables hold no pointers, or are in the file, so that a cycle of the
// collector takes little time. Far from the budget, there may be as much garbage as is live. It
// returns the limit of the runtime, given the one before.
func collectEarly(before int64) int64 {
	used := live()
	limit := max(used+used/8+minGarbage, minHeap)
	if budget := budget.Load(); budget > 0 {
		limit = max(used+used/8+minGarbage, min(minHeap, budget/partOfBudget))
		limit = min(max(limit, min(2*used, budget/partAtEase)), heapMost(bound.Load()))
	}
	const same = 32 // changes by less than one in so many are none: each stops the program for a moment
	if diff := limit - before; max(diff, -diff) <= before/same {
		return before
	}
	debug.SetMemoryLimit(limit)
	return limit
}

// isExceeded gives back what the runtime holds and does not need, if that is needed, and
// reports whether it is too little.
func isExceeded() bool {
	limit := bound.Load()
	if limit == 0 || heap() < heapMost(limit) {
		return false
	}
	most := limit / 16 * 15
	if live() > most {
		runtime.GC() // what was live may be so no more
		if live() > most {
			return true
		}
	}
	debug.FreeOSMemory()
	return false
}
