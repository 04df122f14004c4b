package parallel

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/sgtrace/sgtrace/internal/memory"
)

// sizes are row counts around the boundaries of parts.
var sizes = []int{0, 1, 2, 15, 16, 17, 1000}

const rowSize = whole / 16

// onCores runs f with several numbers of cores.
func onCores(t *testing.T, f func()) {
	t.Helper()
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, n := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(n)
		f()
	}
}

// Every row is visited once, in parts of suitable size, whatever the number of cores.
func TestRows(t *testing.T) {
	onCores(t, func() {
		for _, n := range sizes {
			visits := make([]atomic.Int32, n)
			Rows(n, rowSize, func(from, to int) {
				if to <= from || (to-from)*rowSize > whole {
					t.Errorf("rows %d to %d", from, to)
				}
				for i := from; i < to; i++ {
					visits[i].Add(1)
				}
			})
			for i := range visits {
				if v := visits[i].Load(); v != 1 {
					t.Fatalf("row %d of %d: %d visits", i, n, v)
				}
			}
		}
	})
}

// Gathered results are in row order, and sums cover all rows.
func TestGatherAndFold(t *testing.T) {
	onCores(t, func() {
		for _, n := range sizes {
			var want []int32
			sum := 0
			for i := range n {
				if sum += i; i%3 == 0 {
					want = append(want, int32(i), int32(-i))
				}
			}
			got := Gather(n, rowSize, func(list []int32, from, to int) []int32 {
				for i := from; i < to; i++ {
					if i%3 == 0 {
						list = append(list, int32(i), int32(-i))
					}
				}
				return list
			})
			if !slices.Equal(got, want) {
				t.Fatalf("of %d rows: %v", n, got)
			}
			all := 0
			Fold(n, rowSize, func() *int { return new(int) }, func(x *int, from, to int) {
				for i := from; i < to; i++ {
					*x += i
				}
			}, func(x *int) { all += *x })
			if all != sum {
				t.Fatalf("the sum of %d rows is %d, not %d", n, all, sum)
			}
		}
	})
}

// A budget bounds the number of workers, but never below one.
func TestWorkers(t *testing.T) {
	defer memory.SetBudget(memory.Budget())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(64))
	for _, c := range []struct {
		budget, size int64
		want         int
	}{{0, 1 << 40, 64}, {4 << 30, 4 << 20, 64}, {128 << 20, 4 << 20, 8}, {1 << 20, 4 << 20, 1}} {
		memory.SetBudget(c.budget)
		if got := Workers(c.size); got != c.want {
			t.Errorf("%d bytes each in %d: %d workers, want %d", c.size, c.budget, got, c.want)
		}
	}
}

// Few calls f once for each number, and no more than the given number of times concurrently.
func TestFew(t *testing.T) {
	for _, workers := range []int{1, 3, 8} {
		var now, most atomic.Int32
		visits := make([]atomic.Int32, 100)
		Few(workers, len(visits), func(i int) {
			for n := now.Add(1); ; {
				if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
					break
				}
			}
			runtime.Gosched()
			visits[i].Add(1)
			now.Add(-1)
		})
		for i := range visits {
			if visits[i].Load() != 1 {
				t.Fatalf("%d workers: %d visits of %d", workers, visits[i].Load(), i)
			}
		}
		if int(most.Load()) > workers {
			t.Errorf("%d at a time, of %d", most.Load(), workers)
		}
	}
}

// Nested calls together have no more workers than there are cores, and the workers of one call have
// distinct numbers.
func TestNested(t *testing.T) {
	onCores(t, func() {
		var now, most, visits atomic.Int32
		Each(20, func(int) {
			Each(20, func(int) {
				for n := now.Add(1); ; {
					if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
						break
					}
				}
				runtime.Gosched()
				visits.Add(1)
				now.Add(-1)
			})
		})
		if visits.Load() != 400 || int(most.Load()) > runtime.GOMAXPROCS(0) {
			t.Errorf("%d visits, %d at a time on %d cores", visits.Load(), most.Load(), runtime.GOMAXPROCS(0))
		}
		if n := helpers.Load(); n != 0 {
			t.Errorf("%d helpers are left", n)
		}
		at := make([]atomic.Int32, runtime.GOMAXPROCS(0))
		each(len(at), 1000, func(worker, _ int) {
			if at[worker].Add(1) != 1 {
				t.Errorf("two workers have number %d", worker)
			}
			runtime.Gosched()
			at[worker].Add(-1)
		})
	})
}
