package finders

import (
	"runtime"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// The data held for each request can move to the temporary file. If the budget is too small, twice
// the requests take hardly more of the Go heap, which cannot move, than the smallest tables do.
func TestLittleIsHeldForEachRequest(t *testing.T) {
	memory.SetBudget(1)
	defer memory.SetBudget(0)
	const few, many = 4000, 8000
	held := func(requests int) float64 {
		runtime.GC()
		runtime.GC() // objects that finalizers held
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
	held(few / 8) // fills the caches
	a, b := held(few), held(many)
	if each, most := (b-a)/(many-few), 200.0; each > most {
		t.Errorf("%.0f bytes are held for each request, %.0f at most", each, most)
	}
}
