package testset

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// AllModes and DisaggregatedModes are the modes of a deployment.
var AllModes = []simulator.Mode{simulator.PDGateway, simulator.PDDirect, simulator.Unified}

// CountSeeds returns the number of seeds for which f holds.
func CountSeeds(seeds []uint64, f func(seed uint64) bool) int {
	var mu sync.Mutex
	n := 0
	EachSeed(seeds, func(seed uint64) {
		if f(seed) {
			mu.Lock()
			n++
			mu.Unlock()
		}
	})
	return n
}

// fewSeeds are enough for every test run. Tests choose modes, sizes, and ranks by the remainders of a seed and its
// multiples; steps of five cover all remainders of 2, 3, and 4 with few seeds.
var fewSeeds = []uint64{0, 5, 10, 15}

// Seeds returns the seeds that a test simulates: those below $SGTRACE_SEEDS, as in "make rates", or that number from
// $SGTRACE_FIRST_SEED on, to which nothing was ever fitted; otherwise a few that are always the same.
func Seeds(t testing.TB) []uint64 {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv("SGTRACE_SEEDS"), 10, 32)
	if err != nil {
		return slices.Clone(fewSeeds)
	}
	first, err := strconv.ParseUint(cmp.Or(os.Getenv("SGTRACE_FIRST_SEED"), "0"), 10, 32)
	if err != nil {
		t.Fatalf("SGTRACE_FIRST_SEED: %v", err)
	}
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = first + uint64(i)
	}
	return seeds
}

// FirstSeeds returns Seeds, but only the first few of those that are always the same: for runs that take long.
func FirstSeeds(t testing.TB, few int) []uint64 {
	seeds := Seeds(t)
	if os.Getenv("SGTRACE_SEEDS") == "" {
		seeds = seeds[:few]
	}
	return seeds
}

// Rate logs in how many runs a test found what it should, in the format that "make rates" looks for, and fails if that is
// less than least percent. With few seeds all must be right: they are always the same.
func Rate(t testing.TB, what string, right, runs, least int) {
	t.Helper()
	t.Logf("rate: %s: right in %d of %d", what, right, runs)
	if runs == 0 || 100*right < least*runs {
		t.Errorf("%s: right in %d of %d, want %d %%", what, right, runs, least)
	}
}

// Calm returns a deployment without faults, at a load that it can carry: at the rate of DefaultConfig it has queues of its
// own, as truth.json shows.
func Calm(seed uint64) simulator.Config {
	c := simulator.DefaultConfig(seed)
	c.Rate, c.KVTokens = 6, 16384
	c.Incident, c.Straggler = simulator.Incident{Onset: 1}, simulator.Straggler{}
	c.SlowTransfers, c.FailedTransfers = 0, 0
	return c
}

var DisaggregatedModes = []simulator.Mode{simulator.PDGateway, simulator.PDDirect}

// Quiet removes all faults from a configuration.
func Quiet(c *simulator.Config) {
	c.Incident = simulator.Incident{Onset: c.Incident.Onset}
	c.Straggler.Factor = 1
	c.SlowTransfers, c.FailedTransfers = 0, 0
}

// EachSeed calls f for all seeds, on two cores.
func EachSeed(seeds []uint64, f func(seed uint64)) {
	var wg sync.WaitGroup
	for half := range 2 {
		wg.Go(func() {
			for i := half; i < len(seeds); i += 2 {
				f(seeds[i])
			}
		})
	}
	wg.Wait()
}
