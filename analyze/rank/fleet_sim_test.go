package rank

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// fleet is a deployment of servers, each on its own host with few requests. Some
// consecutive ones are slower by a factor.
func fleet(seed uint64, servers, slow int, factor float64) simulator.Config {
	c := testset.Calm(seed)
	c.Mode, c.RanksPerHost = simulator.Unified, 1
	c.Unified = simulator.Parallel{TP: 1, PP: 1, DP: servers}
	c.Requests, c.Rate = max(120, 8*servers), 0.6*float64(servers)
	if slow > 0 {
		c.Straggler = simulator.Straggler{DP: int(seed*7) % (servers - slow + 1), Replicas: slow, Factor: factor}
	}
	return c
}

// slowRanks returns the DP ranks of the servers found to be slow, in order.
func slowRanks(t *testing.T, c simulator.Config) []int {
	s, _ := testset.Simulated(t, c)
	found, _ := Measure(place.Of(s)).SlowServers(nil)
	var ranks []int
	for i := range found {
		ranks = append(ranks, int(found[i].At.Rank.DP))
	}
	slices.Sort(ranks)
	return ranks
}

// Slow servers are found among many that each have little to do, and no others are.
func TestRateOfSlowServersInFleets(t *testing.T) {
	for _, c := range []struct {
		slow, servers int
		factor        float64
		least         int
	}{
		{1, 2, 1.3, 95}, {1, 40, 1.3, 95}, {1, 200, 1.3, 95}, {2, 200, 1.3, 95}, {10, 200, 1.3, 95},
		{1, 2, 1.15, 80}, {1, 40, 1.15, 80}, {1, 200, 1.15, 80}, {2, 200, 1.15, 80}, {10, 200, 1.15, 80},
		{0, 200, 1, 98},
	} {
		what := fmt.Sprintf("%d of %d servers slower by %.0f %%", c.slow, c.servers, 100*(c.factor-1))
		if c.slow == 0 {
			what = fmt.Sprintf("no slow server among %d", c.servers)
		}
		t.Run(what, func(t *testing.T) {
			seeds := testset.Seeds(t)
			if c.servers == 200 {
				seeds = testset.FirstSeeds(t, 1)
			}
			right := testset.CountSeeds(seeds, func(seed uint64) bool {
				config := fleet(seed, c.servers, c.slow, c.factor)
				var want []int
				for i := range c.slow {
					want = append(want, config.Straggler.DP+i)
				}
				got := slowRanks(t, config)
				if !slices.Equal(got, want) {
					t.Logf("seed %d: %v are slow, want %v", seed, got, want)
				}
				return slices.Equal(got, want)
			})
			testset.Rate(t, what, right, len(seeds), c.least)
		})
	}
}
