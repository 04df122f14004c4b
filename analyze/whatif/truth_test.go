package whatif

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/slo"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// counterfactuals are plants, and the fix that takes each away: the simulator plays the same
// seed with and without it.
var counterfactuals = []struct {
	name, fix string
	modes     []simulator.Mode
	plant     func(c *simulator.Config)
}{
	{"straggler", "straggler", testset.AllModes, func(c *simulator.Config) { c.Straggler = simulator.Straggler{TP: 1, Factor: 1.2} }},
	{"straggler from the onset on", "straggler", testset.AllModes, func(c *simulator.Config) {
		c.Incident.Onset = 0.5
		c.Straggler = simulator.Straggler{TP: 1, Factor: 1.2, AtOnset: true}
	}},
	{"uneven routing", "routing", testset.AllModes, func(c *simulator.Config) {
		c.Incident = simulator.Incident{Onset: 0.4, DPRank: 1, DPShare: 0.8}
	}},
	{"slow transfers", "transfers", testset.DisaggregatedModes, func(c *simulator.Config) { c.SlowTransfers = 0.03 }},
}

// busy is a deployment that queues now and then.
func busy(seed uint64) simulator.Config {
	c := testset.Calm(seed)
	c.Requests, c.Rate = 700, 10
	return c
}

// truth are the metrics of a run that was played without the plant.
func truth(s *request.Set, objectives []slo.Objective) *Run {
	return &Run{Run: New(s, objectives).Run, set: s, slo: objectives}
}

// What a fix saves is what the same run without the plant saves: within a tenth of the true
// saving, or a twentieth of the metric, in E2E and TTFT, p50 and p99, and in goodput.
func TestRateOfSavings(t *testing.T) {
	seeds := testset.FirstSeeds(t, 2)
	objectives, err := slo.Parse("ttft=200ms")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range counterfactuals {
		t.Run(p.name, func(t *testing.T) {
			var right, covered, all atomic.Int64
			testset.EachSeed(seeds, func(seed uint64) {
				c := busy(seed)
				c.Mode = p.modes[seed%uint64(len(p.modes))]
				calm := c
				p.plant(&c)
				with, _ := testset.Simulated(t, c)
				without, _ := testset.Simulated(t, calm)
				m := finders.Measure(finders.Inputs{Requests: with})
				r := New(with, objectives)
				if r.Refused != "" {
					t.Logf("seed %d: %s", seed, r.Refused)
					return
				}
				change, err := r.Fix(p.fix, m.Look(finders.All).Findings)
				if err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
				answer, err := r.Ask(change)
				if err != nil {
					t.Fatal(err)
				}
				is := truth(without, objectives)
				for i, m := range is.metrics() {
					w, want := &answer[i], m.of(is.Recorded())
					all.Add(1)
					if math.Abs(w.Without-want) <= max(0.1*math.Abs(w.Actual-want), 0.05*w.Actual) {
						right.Add(1)
					} else {
						t.Logf("seed %d: %s; truth %s", seed, w, w.Value(want))
					}
					if want >= w.Low && want <= w.High {
						covered.Add(1)
					}
				}
			})
			testset.Rate(t, p.name+": savings are as predicted", int(right.Load()), int(all.Load()), 90)
			t.Logf("intervals cover %d of %d", covered.Load(), all.Load())
		})
	}
}
