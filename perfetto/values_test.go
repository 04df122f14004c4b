package perfetto

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// While one goroutine defines values, others never find a wrong one.
func TestValuesWhileTheyAreDefined(t *testing.T) {
	texts, others := make([][]byte, 1<<13), make([][]byte, 1<<7)
	for i := range texts {
		texts[i] = fmt.Appendf(nil, "text %d", i)
	}
	for i := range others {
		others[i] = fmt.Appendf(nil, "another %d", i)
	}
	for range 40 {
		v := newValues(0)
		var done atomic.Bool
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for !done.Load() {
					for _, s := range others {
						if id := v.get(1, s); id != 0 {
							t.Errorf("%s, which is not defined, has the id %d", s, id)
							return
						}
					}
				}
			})
		}
		for i, s := range texts {
			id := uint32(i + 1)
			if text, n := v.add(1, s, id); text != string(s) || n != id || v.get(1, s) != id {
				t.Fatalf("%s is %q with the id %d, one of %d; want %d", s, text, v.get(1, s), n, id)
			}
		}
		done.Store(true)
		wg.Wait()
	}
}
