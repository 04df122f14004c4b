package testset

import (
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// AllModes and DisaggregatedModes are the ways in which a deployment can be set up.
var AllModes = []simulator.Mode{simulator.PDGateway, simulator.PDDirect, simulator.Unified}

// CountSeeds returns for how many seeds f holds.
func CountSeeds(seeds uint64, f func(seed uint64) bool) uint64 {
	var mu sync.Mutex
	n := uint64(0)
	EachSeed(seeds, func(seed uint64) {
		if f(seed) {
			mu.Lock()
			n++
			mu.Unlock()
		}
	})
	return n
}

// Seeds is how many runs of each kind are simulated: $SGTRACE_SEEDS, or few
// enough for every test run.
func Seeds(t *testing.T) uint64 {
	t.Helper()
	if n, err := strconv.ParseUint(os.Getenv("SGTRACE_SEEDS"), 10, 32); err == nil {
		return n
	}
	few := uint64(10)
	if testing.Short() {
		few = 3
	}
	t.Logf("%d runs of each kind; SGTRACE_SEEDS=100 simulates more", few)
	return few
}

// Calm is a deployment in which nothing is planted, at a load that it can carry:
// at the rate of DefaultConfig it has queues of its own, as truth.json says.
func Calm(seed uint64) simulator.Config {
	c := simulator.DefaultConfig(seed)
	c.Rate, c.KVTokens = 6, 16384
	c.Incident, c.Straggler = simulator.Incident{Onset: 1}, simulator.Straggler{}
	c.SlowTransfers, c.FailedTransfers = 0, 0
	return c
}

var DisaggregatedModes = []simulator.Mode{simulator.PDGateway, simulator.PDDirect}

// Quiet takes everything out of a configuration that goes wrong.
func Quiet(c *simulator.Config) {
	c.Incident = simulator.Incident{Onset: c.Incident.Onset}
	c.Straggler.Factor = 1
	c.SlowTransfers, c.FailedTransfers = 0, 0
}

// EachSeed calls f for all seeds, on two cores.
func EachSeed(seeds uint64, f func(seed uint64)) {
	var wg sync.WaitGroup
	for half := range uint64(2) {
		wg.Go(func() {
			for seed := half; seed < seeds; seed += 2 {
				f(seed)
			}
		})
	}
	wg.Wait()
}
