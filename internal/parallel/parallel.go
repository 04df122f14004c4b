// Package parallel spreads work over cores.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/sgtrace/sgtrace/internal/memory"
)

// Each calls f for 0 to n-1 on all cores, in this order, and returns when all calls have.
func Each(n int, f func(i int)) { Few(runtime.GOMAXPROCS(0), n, f) }

// Few is Each with at most this many calls at a time: see [Workers].
func Few(workers, n int, f func(i int)) { each(workers, n, func(_, i int) { f(i) }) }

// each is Few, and passes the number of the calling worker to f, 0 to workers-1: no two workers that run at the
// same time have the same number. A nested call uses only the cores that the outer call leaves idle, so that
// the memory of workers does not multiply; a core that becomes idle later joins.
func each(workers, n int, f func(worker, i int)) {
	others := int64(runtime.GOMAXPROCS(0) - 1) // cores besides the caller's
	var next, hired atomic.Int64
	var wg sync.WaitGroup
	var work func(worker int)
	hire := func() {
		if helpers.Add(1) <= others {
			if worker := int(hired.Add(1)); worker < workers {
				wg.Go(func() {
					defer helpers.Add(-1)
					work(worker)
				})
				return
			}
		}
		helpers.Add(-1)
	}
	work = func(worker int) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			if i+1 < n && int(hired.Load()) < workers-1 && helpers.Load() < others {
				hire()
			}
			f(worker, i)
		}
	}
	work(0)
	wg.Wait()
}

// helpers is the number of goroutines that work for callers.
var helpers atomic.Int64

// Workers returns how many goroutines may run at a time if each holds about size bytes that cannot move to the
// temporary file: one per core, or as many as fit in a quarter of the memory budget, but at least one. size is
// positive.
func Workers(size int64) int {
	n := runtime.GOMAXPROCS(0)
	if budget := memory.Budget(); budget > 0 {
		const part = 4
		n = min(n, int(budget/part/size))
	}
	return max(n, 1)
}

// All calls the functions on all cores, in order, and returns when all calls have.
func All(f ...func()) { Each(len(f), func(i int) { f[i]() }) }

// whole is the number of bytes of a table that one call of f covers, each announced to [memory.Touch].
const whole = 64 << 10

// Rows calls f for parts of the n rows of a table on all cores, and returns when all calls have. f reads about
// size bytes of each row.
func Rows(n, size int, f func(from, to int)) { rows(n, size, func(_, from, to int) { f(from, to) }) }

func rows(n, size int, f func(worker, from, to int)) {
	part := max(whole/size, 1)
	each(runtime.GOMAXPROCS(0), (n+part-1)/part, func(worker, i int) {
		from, to := i*part, min((i+1)*part, n)
		memory.Touch((to - from) * size)
		f(worker, from, to)
	})
}

// Fold is Rows for sums: each worker adds rows to a sum of its own, and merge gets the sums one at a time.
// Which rows are in which sum varies from run to run, so merging must not depend on it.
func Fold[S any](n, size int, begin func() *S, add func(sum *S, from, to int), merge func(sum *S)) {
	sums := make([]*S, runtime.GOMAXPROCS(0))
	rows(n, size, func(worker, from, to int) {
		if sums[worker] == nil {
			sums[worker] = begin()
		}
		add(sums[worker], from, to)
	})
	for _, sum := range sums {
		if sum != nil {
			merge(sum)
		}
	}
}

// Gather is Rows for lists: it joins what f appends for each part, in the order of the rows. T must not contain
// pointers.
func Gather[T any](n, size int, f func(list []T, from, to int) []T) []T {
	part := max(whole/size, 1)
	lists := make([][]T, (n+part-1)/part)
	Rows(n, size, func(from, to int) { lists[from/part] = f(nil, from, to) })
	begin, total := make([]int, len(lists)), 0
	for i, list := range lists {
		begin[i], total = total, total+len(list)
	}
	all := memory.Make[T](total)
	Each(len(lists), func(i int) {
		copy(all[begin[i]:], lists[i])
		lists[i] = nil
	})
	return all
}
