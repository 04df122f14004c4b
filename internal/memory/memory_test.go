//go:build unix

package memory

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// Tables beyond the budget keep their contents like others, even when the kernel evicts their
// pages.
func TestMakeWithoutRoom(t *testing.T) {
	defer func(of func() int64) { heap = of; SetBudget(0) }(heap)
	heap = func() int64 { return 100 << 30 }
	for _, budget := range []int64{1, 4 << 30} { // the heap exceeds both
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			SetBudget(budget)
			testWithoutRoom(t)
		})
	}
}

func testWithoutRoom(t *testing.T) {
	before := Spilled()
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(worker)))
			var tables [][]uint64
			for range 30 {
				table := Make[uint64](1 + r.IntN(300_000))
				if cap(table) != len(table) {
					t.Errorf("room for %d in a table of %d", cap(table), len(table))
				}
				for i := range table {
					if table[i] != 0 {
						t.Fatal("a new table is not empty")
					}
					table[i] = uint64(worker)<<56 | uint64(len(tables))<<32 | uint64(i)
				}
				tables = append(tables, table)
				Relax()
			}
			for k, table := range tables {
				for i, v := range table {
					if v != uint64(worker)<<56|uint64(k)<<32|uint64(i) {
						t.Fatalf("table %d of %d, row %d: %x", k, worker, i, v)
					}
				}
			}
		})
	}
	wg.Wait()
	if Spilled() == before {
		t.Error("nothing went to the file")
	}
}

func TestMakeWithRoom(t *testing.T) {
	before := Spilled()
	for _, budget := range []int64{0, 1 << 40} {
		SetBudget(budget)
		defer SetBudget(0)
		if table := Make[int64](1 << 20); len(table) != 1<<20 || Spilled() != before {
			t.Errorf("budget %d: %d rows, %d bytes spilled", budget, len(table), Spilled()-before)
		}
	}
}

// Tables stay in memory exactly as long as the budget has room for them, in any order of allocation
// and release. heap is replaced by the test's own count.
func TestTablesKeepTheBudget(t *testing.T) {
	defer func(of func() int64) { heap = of; SetBudget(0) }(heap)
	for _, budget := range []int64{128_000_000, 200_000_000, 330_000_000} {
		room := budget - min(max(budget/unmovable, minUnmovable), heapMost(budget))
		var stay []int64 // bytes of each table in memory
		held := int64(0)
		heap = func() int64 { return held }
		SetBudget(budget)
		rng := rand.New(rand.NewPCG(uint64(budget), 1))
		moved, most := 0, int64(0)
		for range 200 {
			size := int64(2*smallest) << rng.IntN(6)
			before := Spilled()
			if rng.IntN(2) == 0 {
				Make[int64](int(size / 8))
			} else {
				wide := Append(make([]int64, size/8), 1)
				if size += size / 4; Spilled() == before {
					size = int64(cap(wide)) * 8 // grows by more than a quarter if the budget is far
				}
			}
			if Spilled() == before {
				stay, held = append(stay, size), held+size
			} else if moved++; held+size <= room {
				t.Fatalf("budget %d: %d bytes moved, with %d of %d in memory", budget, size, held, room)
			}
			if most = max(most, held); held > room {
				t.Fatalf("budget %d: %d bytes of tables are in memory, %d at most", budget, held, room)
			}
			if n := len(stay); n > 0 && rng.IntN(6) == 0 {
				held, stay = held-stay[n-1], stay[:n-1]
			}
		}
		if moved == 0 || most < room/2 {
			t.Errorf("budget %d: %d tables moved, and %d of %d bytes were used", budget, moved, most, room)
		}
	}
}

// Growing tables move to the file with their values once the budget is full, and stay in memory
// while it has room.
func TestAppendBeyondBudget(t *testing.T) {
	defer SetBudget(0)
	ballast := make([]byte, 119_000_000)
	for _, budget := range []int64{400_000_000, 1 << 40} { // 280 MB of it are reserved for data that cannot move
		SetBudget(budget)
		var table []uint64
		for i := range uint64(200_000) {
			table = Append(table, i, ^i)
			if i%50_000 == 0 {
				Relax()
			}
		}
		for i, v := range table {
			if want := uint64(i / 2); v != want && v != ^want {
				t.Fatalf("value %d is %d", i, v)
			}
		}
		inFile := slices.ContainsFunc(file.mapped, func(m []byte) bool {
			at, from := uintptr(unsafe.Pointer(&table[0])), uintptr(unsafe.Pointer(&m[0]))
			return at >= from && at < from+uintptr(len(m))
		})
		if full := budget < 1<<40; inFile != full || (Spilled() > 0) != full {
			t.Errorf("budget %d: in the file: %v; %d bytes are counted", budget, inFile, Spilled())
		}
	}
	runtime.KeepAlive(ballast)
}

// Data that cannot move may exceed the budget up to the bound. Far from both, the garbage collector runs less often.
func TestBound(t *testing.T) {
	defer func() { SetBudget(0); debug.SetMemoryLimit(math.MaxInt64) }()
	ballast := make([]byte, 200_000_000)
	runtime.GC()
	SetBudget(100_000_000)
	if !isExceeded() {
		t.Error("200 MB fit into 100 MB")
	}
	SetBound(1 << 30)
	if isExceeded() {
		t.Error("200 MB do not fit into 1 GiB")
	}
	near := collectEarly(0)
	SetBudget(4 << 30)
	if far := collectEarly(0); far < near*5/4 {
		t.Errorf("a limit of %d near the budget, and of %d far from it", near, far)
	}
	runtime.KeepAlive(ballast)
}

// A table that grows in the file reuses space that another table freed, but growing a part of a
// table frees nothing.
func TestAppendTakesWhatWasGivenUp(t *testing.T) {
	defer SetBudget(0)
	SetBudget(1)
	const n = 300_000
	grow := func(first uint64) []uint64 {
		var table []uint64
		for i := range uint64(n) {
			table = Append(table, first+i)
		}
		return table
	}
	taken := func() (bytes int) {
		for _, given := range file.given {
			bytes += given.size
		}
		return bytes
	}
	grow(n)
	before := taken()
	table := grow(0)
	if added := taken() - before; added > 2*8*n {
		t.Errorf("the file grew by %d bytes for a table of %d", added, 8*n)
	}
	Append(table[:n:n], 0) // a part with its own capacity
	grow(n)
	for i, v := range table {
		if v != uint64(i) {
			t.Fatalf("value %d is %d", i, v)
		}
	}
}

// Tables reuse freed space in any sizes and order. They start out zero, nothing else overwrites
// them, and the file is hardly larger than the peak use.
func TestFree(t *testing.T) {
	defer func(before *spillFile) {
		file.remove(t)
		file = before
		SetBudget(0)
	}(file)
	file = &spillFile{}
	SetBudget(1)
	rng := rand.New(rand.NewPCG(7, 1))
	type table struct {
		rows []uint64
		mark uint64
	}
	var tables []table
	used, most, asked := 0, 0, 0
	for mark := range uint64(3000) {
		if n := len(tables); n > 0 && (used > 40<<20 || rng.IntN(3) == 0) {
			k := rng.IntN(n)
			of := tables[k]
			for i, v := range of.rows {
				if v != of.mark+uint64(i) {
					t.Fatalf("row %d of %d is %d, not %d", i, len(of.rows), v, of.mark+uint64(i))
				}
			}
			if rng.IntN(8) == 0 {
				Free(of.rows[:1:1]) // freeing a part has no effect
				Free(of.rows[1:])
				continue
			}
			Free(of.rows)
			tables[k], tables = tables[n-1], tables[:n-1]
			used -= 8 * len(of.rows)
			continue
		}
		rows := Make[uint64](smallest/8 + rng.IntN(1<<(10+rng.IntN(10))))
		for i := range rows {
			if rows[i] != 0 {
				t.Fatal("a new table is not empty")
			}
			rows[i] = mark<<32 + uint64(i)
		}
		tables = append(tables, table{rows, mark << 32})
		used, asked = used+8*len(rows), asked+8*len(rows)
		most = max(most, used)
	}
	if file.size > int64(2*most) || asked < 5*most {
		t.Errorf("a file of %d bytes for %d at a time, %d in all", file.size, most, asked)
	}
	free := 0
	for _, size := range file.inOrder.free.size {
		free += size
	}
	for _, of := range tables {
		Free(of.rows)
	}
	if len(file.given) > 0 || free == 0 {
		t.Errorf("%d tables are left, %d bytes were free", len(file.given), free)
	}
}

// Walking over a large table keeps few of its pages in memory, even without Watch.
func TestEachGivesPagesBack(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel does not say how many pages there are")
	}
	defer SetBudget(0)
	SetBudget(1)
	table := Make[uint64](16 << 20)
	const page = 512 // number of values
	most := int64(0)
	for i := range Each(len(table)/page, 8*page) {
		table[i*page] = uint64(i)
		if i%256 == 0 {
			_, pages := held()
			most = max(most, pages)
		}
	}
	if most > minPages+8<<20 {
		t.Errorf("%d MB of pages are in memory", most>>20)
	}
	for i := range Each(len(table)/page, 8*page) {
		if table[i*page] != uint64(i) {
			t.Fatalf("page %d is lost", i)
		}
	}
}

type rowApart uint64

func (rowApart) LiesApart() {}

// Touching a row of a type that lies apart maps few other pages.
func TestApart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel does not say how many pages there are")
	}
	defer SetBudget(0)
	SetBudget(1)
	const rows, apart = 8 << 20, 1 << 20 / 8
	table := Make[rowApart](rows)
	Relax()
	_, before := held()
	for i := 0; i < rows; i += apart {
		table[i]++
	}
	_, after := held()
	Free(table)
	if most := int64(rows / apart * smallPage); after-before > most {
		t.Errorf("%d rows map %d kB, not %d at most", rows/apart, (after-before)>>10, most>>10)
	}
}

// The memory limit of the runtime follows the live heap, within the budget.
func TestCollectEarly(t *testing.T) {
	defer func() { SetBudget(0); debug.SetMemoryLimit(math.MaxInt64) }()
	ballast := make([]byte, 400_000_000)
	runtime.GC()
	limit := collectEarly(0)
	if limit < 400_000_000 || limit > 600_000_000 || debug.SetMemoryLimit(-1) != limit {
		t.Errorf("a limit of %d for a heap of 400 MB", limit)
	}
	if collectEarly(limit) != limit {
		t.Error("another limit for the same heap")
	}
	SetBudget(300_000_000)
	if limit = collectEarly(limit); limit > 300_000_000 {
		t.Errorf("a limit of %d for a budget of 300 MB", limit)
	}
	runtime.KeepAlive(ballast)
	ballast = nil
	runtime.GC()
	SetBudget(0)
	if limit = collectEarly(limit); limit != minHeap {
		t.Errorf("a limit of %d for a small heap", limit)
	}
}

// While a run is watched, the runtime's limit is bounded by the budget or the existing limit, and
// follows the live heap. Afterward, the limit is restored.
func TestWatchLeavesLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	SetBudget(1 << 30)
	defer SetBudget(0)
	for _, given := range []int64{math.MaxInt64, 200 << 20} {
		debug.SetMemoryLimit(given)
		stop := Watch(func() { t.Error("too little memory") })
		first := debug.SetMemoryLimit(-1)
		if first != min(given, heapMost(1<<30)) {
			t.Errorf("a limit of %d for a budget of 1 GiB, %d before", first, given)
		}
		for given == math.MaxInt64 && debug.SetMemoryLimit(-1) == first {
			time.Sleep(time.Millisecond) // until it follows the live heap
		}
		stop()
		if limit := debug.SetMemoryLimit(-1); limit != given {
			t.Errorf("a limit of %d is left, %d was given", limit, given)
		}
	}
}

// The next check of memory comes soon if accesses are scattered, and much later if they are sequential.
func TestStride(t *testing.T) {
	const room = 48 << 20
	m := mapping{each: 1}
	if got, want := m.stride(room), int64(room/partOfRoom); got != want {
		t.Errorf("in order: a stride of %d bytes, want %d", got, want)
	}
	m.look(1<<20, 64<<20)
	if got, want := m.stride(room), int64(minStride); got != want {
		t.Errorf("64 bytes are mapped for each: a stride of %d bytes, want %d", got, want)
	}
	m.before = 64 << 20
	m.look(minStride-1, 512<<20) // too few to measure
	for range 6 {
		m.look(1<<20, 64<<20) // no new pages are mapped
	}
	if m.each != 1 {
		t.Errorf("%d bytes for each are remembered, want 1", m.each)
	}
	if got := m.stride(1 << 40); got != longestStride {
		t.Errorf("far from the budget: a stride of %d bytes", got)
	}
	if got := m.stride(-1); got != minStride {
		t.Errorf("beyond the budget: a stride of %d bytes", got)
	}
}

// When a walk picks few of many rows, each counts with the memory of the rows around it, up to FarApart.
func TestPicked(t *testing.T) {
	for _, c := range []struct{ some, rows, want int }{{100, 100, 32}, {10, 100, 320}, {0, 100, 3200}, {1, 1 << 30, FarApart}, {100, 10, 32}} {
		if got := Picked(c.some, c.rows, 32); got != c.want {
			t.Errorf("%d of %d rows: %d bytes, want %d", c.some, c.rows, got, c.want)
		}
	}
}

func TestSpill(t *testing.T) {
	var blocks [][]byte
	for i := range 8 {
		block := slices.Repeat([]byte{byte(i + 1)}, 1<<20)
		mapped := Spill(block)
		if mapped == nil {
			t.Fatal("no room in the temporary directory")
		}
		clear(block)
		blocks = append(blocks, mapped)
	}
	Relax()
	for i, b := range blocks {
		if slices.IndexFunc(b, func(c byte) bool { return c != byte(i+1) }) >= 0 {
			t.Errorf("block %d has changed", i)
		}
	}
}

// Without a directory for temporary files, everything stays in memory.
func TestNoTemporaryDirectory(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	var f spillFile
	if b := f.table(1<<20, false); b != nil {
		t.Error("a table in a directory that does not exist")
	}
	if !f.failed {
		t.Error("it will be tried again")
	}
}

// The file has no name, so it cannot be left behind.
func TestNoNameIsLeft(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var f spillFile
	if f.table(1<<20, false) == nil {
		t.Fatal("no room")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}
