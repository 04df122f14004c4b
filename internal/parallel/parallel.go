// Package parallel spreads work over the cores.
package parallel

import (
	"runtime"
	"sync"
)

// Each calls f for 0 to n-1 on all cores and returns when all calls have.
func Each(n int, f func(i int)) {
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
