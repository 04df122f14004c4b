package rank

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// withOccasions is a calm deployment in which one of 2, 4, or 8 ranks is late by 3
// to 5 ms in some of its steps.
func withOccasions(seed uint64, slow simulator.Occasion) simulator.Config {
	c := testset.Calm(seed)
	c.Mode = simulator.Mode(seed % 3)
	tp := 2 << (seed / 3 % 3)
	c.Decode.TP, c.Unified.TP = tp, tp
	c.Straggler = simulator.Straggler{
		TP: int(seed) % tp, DP: int(seed/7) % 2, Delay: 3 * time.Millisecond, Slow: slow,
		Share: []float64{0.05, 0.1, 0.15, 0.25, 0.35, 0.5}[seed/2%6],
	}
	return c
}

// A rank that is late in some of its steps is found, and nothing else, with how
// often that happens and what the late steps have in common.
func TestRateOfOccasionalStragglers(t *testing.T) {
	const right, seldom, often = 0.1, 0.045, 0.55 // tolerance of the share; bounds for the share of steps
	seeds := testset.FirstSeeds(t, 2)
	for _, c := range []struct {
		what  string
		slow  simulator.Occasion
		when  string // when it is late, in the text
		least int    // successes out of 100 runs
	}{
		{"at random", simulator.SlowAtRandom, "at random", 95},
		// A burst is one occasion, whatever its number of steps. Ten bursts on one
		// of two ranks prove as much as ten equal coin flips: likely, not certain.
		{"in bursts", simulator.SlowInBursts, "in bursts of", 90},
		{"periodically", simulator.SlowPeriodically, "every ", 95},
		{"in large batches", simulator.SlowInLargeBatches, "requests or more in the batch", 95},
		{"after prefills", simulator.SlowAfterPrefills, "with a prefill in or right before them", 95},
	} {
		t.Run(c.what, func(t *testing.T) {
			found, why, runs := 0, 0, 0
			for _, seed := range seeds {
				config := withOccasions(seed, c.slow)
				switch c.slow {
				case simulator.SlowAfterPrefills:
					config.Mode = simulator.Unified
				case simulator.SlowInLargeBatches:
					config.Rate, config.Decode.TP, config.Unified.TP, config.Straggler.Batch = 10, 8, 8, 3
				}
				s, truth := testset.Simulated(t, config)
				want := truth.Straggler
				share := float64(want.SlowSteps) / float64(want.Steps)
				if share < seldom || share > often {
					continue // due to chance
				}
				runs++
				got := Measure(place.Of(s)).Stragglers()
				if !foundPlanted(t, seed, got, truth, false) || got[0].Intermittent == nil {
					t.Logf("    %d of %d are slow (%.3f)", want.SlowSteps, want.Steps, share)
					continue
				}
				o := got[0].Intermittent
				if math.Abs(o.Share/share-1) > right {
					t.Logf("seed %d: share %.4f, want %.4f", seed, o.Share, share)
					continue
				}
				found++
				if strings.Contains(o.When.String(), c.when) {
					why++
				} else {
					t.Logf("seed %d: %s", seed, got[0].Text())
				}
			}
			testset.Rate(t, "a rank that is late now and then, "+c.what, found, runs, c.least)
			testset.Rate(t, "when it is late: "+c.what, why, runs, 90)
		})
	}
}
