package perfetto

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// While one goroutine defines values, others do not find one in the place of another.
func TestValuesWhileTheyAreDefined(t *testing.T) {
	texts, others := make([][]byte, 1<<13), make([][]byte, 1<<7)
	for i := range texts {
		texts[i] = fmt.Appendf(nil, "text %d", i)
	}
	for i := range others {
		others[i] = fmt.Appendf(nil, "another %d", i)
	}
	for range 40 {
		v := newValues()
		var done atomic.Bool
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for !done.Load() {
					for _, s := range others {
						if id := v.get(1, s, false); id != 0 {
							t.Errorf("%s, which is not defined, has the id %d", s, id)
							return
						}
					}
				}
			})
		}
		for i, s := range texts {
			if id, _, _ := v.define(nil, 1, s, false); id != uint32(i+1) || v.get(1, s, false) != id {
				t.Fatalf("%s has the id %d, then %d; want %d", s, id, v.get(1, s, false), i+1)
			}
		}
		done.Store(true)
		wg.Wait()
	}
}
