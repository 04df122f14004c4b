package overview

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// healed returns the same deployment without the planted faults.
func healed(c simulator.Config) simulator.Config {
	whole := simulator.DefaultConfig(c.Seed)
	c.Straggler, c.Incident = simulator.Straggler{}, simulator.Incident{Onset: 1}
	c.SlowTransfers, c.FailedTransfers, c.LinkTokens, c.TenantDelay = 0, 0, 0, 0
	c.CacheLostAtOnset, c.DraftsLostAtOnset = false, false
	c.MaxRunning = whole.MaxRunning
	return c
}

// extraTime returns the share of the finished requests' E2E that the planted faults
// added, by comparison with the same requests in a healed run of the same seed.
func extraTime(t *testing.T, c simulator.Config) float64 {
	with, err := simulator.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	without, err := simulator.Play(healed(c))
	if err != nil {
		t.Fatal(err)
	}
	sum, extra := 0.0, 0.0
	for i, q := range with.Requests {
		if p := without.Requests[i]; q.Outcome == simulator.Finished && p.Outcome == simulator.Finished {
			took := float64(q.End - q.Arrival)
			sum, extra = sum+took, extra+took-float64(p.End-p.Arrival)
		}
	}
	return extra / sum
}

// The total cost of findings is the time that requests took longer than without the planted
// faults, within a quarter of that or 1.5 % of all time, by which equal runs differ.
func TestRateOfCosts(t *testing.T) {
	const part, noise = 0.25, 0.015
	seeds := testset.FirstSeeds(t, 3)
	for _, p := range summaries {
		t.Run(p.name, func(t *testing.T) {
			right := testset.CountSeeds(seeds, func(seed uint64) bool {
				found, c := p.findings(t, seed)
				truth, said := extraTime(t, c), 0.0
				for _, f := range found {
					if f.CostBasis == finding.RequestTime {
						said += f.Cost
					}
				}
				ok := math.Abs(said-truth) <= max(part*truth, noise)
				t.Logf("seed %d (%v): costs %.2f %%, %.2f %% by truth", seed, c.Mode, 100*said, 100*truth)
				return ok
			})
			testset.Rate(t, "what "+p.name+" costs", right, len(seeds), 80)
		})
	}
}
