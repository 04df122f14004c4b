package tail

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// plants are incidents with one cause each.
var plants = []struct {
	name  string
	modes []simulator.Mode
	plant func(c *simulator.Config)
	found []string // what must stand out
}{
	{"slow transfers", testset.DisaggregatedModes, func(c *simulator.Config) { c.SlowTransfers = 0.03 },
		[]string{"delays: kv transfer", "transfers"}},
	{"no room for the KV cache", testset.DisaggregatedModes, func(c *simulator.Config) {
		c.Rate, c.KVTokens, c.Incident = 12, 3200, simulator.DefaultConfig(0).Incident
	}, []string{"ttft: decode bootstrap", "side"}},
	{"most requests on one DP rank", []simulator.Mode{simulator.Unified}, func(c *simulator.Config) {
		c.Rate, c.KVTokens, c.Incident = 12, 4096, simulator.DefaultConfig(0).Incident
	}, []string{"ttft: prefill queue"}},
	{"burst of prompts", testset.DisaggregatedModes, func(c *simulator.Config) {
		c.KVTokens = 65536
		c.Incident = simulator.Incident{Onset: 0.7, BurstFactor: 12, BurstLength: 2 * time.Second}
	}, []string{"ttft: prefill queue", "side"}},
	{"retractions", []simulator.Mode{simulator.Unified}, func(c *simulator.Config) {
		c.Prompt, c.Output = simulator.Lengths{Median: 20, Sigma: 0.2, Max: 60}, simulator.Lengths{Median: 120, Sigma: 0.1, Max: 300}
		c.Rate, c.KVTokens, c.Requests = 9, 700, 150
	}, []string{"e2e: retraction"}},
	{"straggler in the smaller DP rank", testset.DisaggregatedModes, func(c *simulator.Config) {
		c.Decode.TP = 2
		c.Rate, c.Straggler = 3, simulator.Straggler{TP: 1, DP: 1, Factor: 3}
		c.Incident = simulator.Incident{Onset: 0, DPRank: 0, DPShare: 0.9}
	}, []string{"delays: slow rank"}},
}

// outstanding returns what stands out in a tail, with the verdicts about it: causes
// by metric, causes of delays, slow transfers, and saturated sides.
func outstanding(t *Tail) (what, verdicts []string) {
	add := func(text, verdict string) { what, verdicts = append(what, text), append(verdicts, verdict) }
	for _, c := range t.Comparisons {
		for _, row := range c.Rows {
			if row.StandsOut {
				add(fmt.Sprintf("%s: %s", c.Metric, row.Cause), c.Verdict())
			}
		}
	}
	if t.Delays != nil {
		for _, row := range t.Delays.Rows {
			if row.StandsOut {
				add(fmt.Sprintf("delays: %s", row.Cause), t.Delays.Verdict())
			}
		}
	}
	if x := t.Transfers; x != nil && len(x.Slow) > 0 {
		add("transfers", x.Verdict())
	}
	if d := t.Disaggregation; d != nil && d.Saturated != request.Other {
		add("side", d.Verdict())
	}
	return what, verdicts
}

// Planted causes are found in at least 95 of 100 runs.
func TestRateOfTailCauses(t *testing.T) {
	seeds := testset.Seeds(t)
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			var mu sync.Mutex
			var missed []uint64
			testset.EachSeed(seeds, func(seed uint64) {
				c := testset.Calm(seed)
				c.Prefill.TP, c.Decode.TP, c.Unified.TP = 1, 1, 1
				p.plant(&c)
				c.Mode = p.modes[seed%uint64(len(p.modes))]
				s, _ := testset.Simulated(t, c)
				got, _ := outstanding(New(place.Of(s), Options{}))
				for _, found := range p.found {
					if !slices.Contains(got, found) {
						mu.Lock()
						missed = append(missed, seed)
						mu.Unlock()
						break
					}
				}
			})
			if len(missed) > 0 {
				t.Logf("missed in seeds %v", missed)
			}
			testset.Rate(t, "tail: "+p.name, len(seeds)-len(missed), len(seeds), 95)
		})
	}
}

// Nothing is found in at least 95 of 100 runs in which nothing was planted.
func TestRateOfSilentTails(t *testing.T) {
	seeds := testset.Seeds(t)
	var mu sync.Mutex
	alarms := 0
	testset.EachSeed(seeds, func(seed uint64) {
		s, _ := testset.Simulated(t, testset.Deployment(seed, testset.Calm(seed)))
		if what, verdicts := outstanding(New(place.Of(s), Options{})); len(what) > 0 {
			mu.Lock()
			defer mu.Unlock()
			alarms++
			for _, text := range verdicts {
				t.Logf("seed %d: %s", seed, text)
			}
		}
	})
	testset.Rate(t, "tail: nothing where nothing is wrong", len(seeds)-alarms, len(seeds), 95)
}

// truthCauses are the names of causes in the simulator.
var truthCauses = map[cause.Cause]string{
	cause.Retraction: "retraction", cause.Transfer: "kv_transfer", cause.DecodeBootstrap: "kv_memory", cause.PrefillBootstrap: "kv_memory",
	cause.Queue: "queue", cause.Intake: "queue", cause.DecodeQueue: "queue", cause.Prefill: "long_prompt", cause.PromptSize: "long_prompt",
	cause.SharedBatch: "long_prompt", cause.ChunkWait: "long_prompt", cause.SlowRank: "straggler", cause.Decode: "slow_decode", cause.Interference: "slow_decode",
}

// mainByTruth returns, by rid, the simulator's cause with the largest excess over the median of requests.
func (t *Tail) mainByTruth() map[string]string {
	sum := func(a *cause.Attribution, name string) int64 {
		ns := int64(0)
		for c, n := range truthCauses {
			if n == name {
				ns += a.E2E[c]
			}
		}
		return ns
	}
	main, most := map[string]string{}, map[string]int64{}
	for _, name := range []string{"retraction", "kv_transfer", "kv_memory", "queue", "long_prompt", "straggler", "slow_decode"} {
		values := make([]int64, len(t.List))
		for i := range t.List {
			values[i] = sum(&t.List[i], name)
		}
		median := distribution.LowerMedian(values)
		for i := range t.List {
			rid := t.set.Text(t.set.Requests[t.List[i].Request].RID)
			if more := sum(&t.List[i], name) - median; main[rid] == "" || more > most[rid] {
				main[rid], most[rid] = name, more
			}
		}
	}
	return main
}

// The main cause of every request that the simulator slowed down is found, and the
// slow transfers of the demo are exactly those that it played.
func TestRateOfMainCauses(t *testing.T) {
	seeds := testset.Seeds(t)
	var mu sync.Mutex
	slow, right, runs := 0, 0, 0
	testset.EachSeed(seeds, func(seed uint64) {
		s, truth := testset.Simulated(t, testset.Deployment(seed, simulator.DefaultConfig(seed)))
		tail := New(place.Of(s), Options{})
		main := tail.mainByTruth()
		transfers := map[string]bool{}
		if tail.Transfers != nil {
			for _, r := range tail.Transfers.Slow {
				transfers[s.Text(s.Requests[r.Request].RID)] = true
			}
		}
		mu.Lock()
		defer mu.Unlock()
		exact := true
		for _, x := range truth.Slow {
			rid := truth.Requests[x.Request].FullID
			slow++
			if main[rid] == x.Cause {
				right++
			}
			exact = exact && (x.Cause != "kv_transfer" || transfers[rid])
		}
		if exact {
			runs++
		}
	})
	testset.Rate(t, "tail: main causes of slow requests", right, slow, 99)
	testset.Rate(t, "tail: all slow transfers of a run", runs, len(seeds), 95)
}

// A run with few requests is not compared.
func TestTailOfFewRequests(t *testing.T) {
	c := simulator.DefaultConfig(1)
	c.Requests = 12
	s, _ := testset.Simulated(t, c)
	tail := New(place.Of(s), Options{Metrics: []*metric.Metric{metric.E2E}})
	what, _ := outstanding(tail)
	if tail.Delays != nil || tail.Transfers != nil || tail.Comparisons[0].Slow.N != 0 || len(what) != 0 {
		t.Errorf("%d requests are compared", tail.Comparisons[0].N)
	}
	if d := tail.Disaggregation; d == nil || d.Saturated != request.Other {
		t.Errorf("disaggregation: %+v", d)
	}
	for _, r := range tail.Reports() {
		for _, f := range table.Formats {
			testset.Text(t, r, f, table.Style{Width: 120})
		}
	}
}
