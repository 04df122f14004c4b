package finders

import (
	"runtime"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// What is held for each request can move to the temporary file: where the budget has no room, twice
// the requests take little more of the Go heap, which cannot move, than the smallest tables do.
func TestLittleIsHeldForEachRequest(t *testing.T) {
	memory.SetBudget(1)
	defer memory.SetBudget(0)
	const few, many = 4000, 8000
	held := func(requests int) float64 {
		runtime.GC()
		runtime.GC() // what finalizers held
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c := simulator.DefaultConfig(1)
		c.Requests = requests
		set, _ := testset.Simulated(t, c)
		m := Measure(Inputs{Requests: set})
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(m)
		return float64(after.HeapAlloc) - float64(before.HeapAlloc)
	}
	held(few / 8) // caches are full then
	a, b := held(few), held(many)
	if each, most := (b-a)/(many-few), 200.0; each > most {
		t.Errorf("%.0f bytes are held for each request, %.0f at most", each, most)
	}
}
