package rank

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// allFindings returns the findings of every kind.
func allFindings(r *Ranks) []finding.Finding {
	stragglers, _ := r.StragglerFindings(nil)
	imbalances, _ := r.Imbalances(nil)
	servers, _ := r.SlowServers(nil)
	stages, _ := r.SlowStages()
	return slices.Concat(stragglers, imbalances, servers, stages)
}

// A DP rank that gets most of the requests from the middle on is found. A healthy
// deployment has no findings of any kind.
func TestRateOfDivisions(t *testing.T) {
	seeds := testset.Seeds(t)
	found := testset.CountSeeds(seeds, func(seed uint64) bool {
		c := testset.Calm(seed)
		c.Mode = simulator.Mode(seed % 3)
		c.Rate, c.Incident = 12, simulator.DefaultConfig(seed).Incident
		s, truth := testset.Simulated(t, c)
		got, _ := Measure(place.Of(s)).Imbalances(nil)
		ok := len(got) == 1 && int(got[0].At.Rank.DP) == truth.Imbalance.DPRank
		if !ok {
			d := Measure(place.Of(s)).balances()
			for i := range d {
				t.Logf("seed %d: %v of %+v: P %v, cost %v: %s", seed, c.Mode, truth.Imbalance, d[i].P, d[i].Cost, d[i].text())
			}
		}
		return ok
	})
	testset.Rate(t, "a DP rank that gets most requests", found, len(seeds), 95)
	silent := testset.CountSeeds(seeds, func(seed uint64) bool {
		c := testset.Calm(seed)
		c.Mode, c.Level = simulator.Mode(seed%3), 4
		c.Unified = simulator.Parallel{TP: 1, PP: 1 + int(seed/3)%3, DP: 2 + int(seed/9)%3}
		s, _ := testset.Simulated(t, c)
		got := allFindings(Measure(place.Of(s)))
		for _, f := range got {
			t.Logf("seed %d: %s", seed, f.Text)
		}
		return len(got) == 0
	})
	testset.Rate(t, "no finding of ranks in a healthy deployment", silent, len(seeds), 98)
}

// A slow pipeline stage is found for any number of stages, but only at the trace
// level that includes run_batch_cpu.
func TestRateOfSlowStages(t *testing.T) {
	seeds := testset.Seeds(t)
	found := testset.CountSeeds(seeds, func(seed uint64) bool {
		c := testset.Calm(seed)
		c.Mode, c.Level = simulator.Unified, 4
		c.Unified = simulator.Parallel{TP: 1, PP: 2 + int(seed%3), DP: 1}
		c.Straggler = simulator.Straggler{PP: int(seed/3) % c.Unified.PP, Factor: 1.2}
		s, _ := testset.Simulated(t, c)
		p := Measure(place.Of(s)).Pipes
		if len(p) != 1 || len(p[0].Slow) != 1 || p[0].Slow[0].Rank != c.Straggler.PP {
			t.Logf("seed %d: PP%d of %d is not found", seed, c.Straggler.PP, c.Unified.PP)
			return false
		}
		slow, others := float64(p[0].Stages[c.Straggler.PP].Took.P50), float64(p[0].others(c.Straggler.PP).took)
		if by := slow / others; by < 1.13 || by > 1.27 {
			t.Errorf("seed %d: it takes %v times as long as the others, want 1.2", seed, by)
		}
		return true
	})
	testset.Rate(t, "a slow stage of a pipeline", found, len(seeds), 95)
	c := testset.Calm(1)
	c.Mode, c.Level, c.Requests = simulator.Unified, 3, 30
	c.Unified = simulator.Parallel{TP: 1, PP: 2, DP: 1}
	s, _ := testset.Simulated(t, c)
	if r := Measure(place.Of(s)); len(r.Pipes) > 0 || !r.unlaunched {
		t.Errorf("%d pipelines at level 3", len(r.Pipes))
	}
}

// In the dump with two replicas and two stages, DP0 gets most requests, and PP1 is 22 % slower.
func TestRanksOfRealPipelines(t *testing.T) {
	r := Measure(place.Of(testset.LoadDump(t, "c_pp2_dp2.jsonl.zst")))
	got, _ := r.Imbalances(nil)
	if len(got) != 1 || got[0].At.Rank.DP != 0 {
		t.Errorf("%+v", got)
	}
	if len(r.Pipes) != 2 {
		t.Fatalf("%d pipelines, want 2", len(r.Pipes))
	}
	for _, p := range r.Pipes {
		slow := float64(p.Stages[1].Took.P50) / float64(p.Stages[0].Took.P50)
		if len(p.Slow) != 1 || p.Slow[0].Rank != 1 || slow < 1.12 || slow > 1.27 {
			t.Errorf("%v: PP1 takes %v times as long, want about 1.2", p.Stages[0].Location.Rank, slow)
		}
		if p.Stages[0].Bubble <= p.Stages[1].Bubble {
			t.Errorf("%v: bubbles %v and %v: the slow stage has the smaller one", p.Stages[0].Location.Rank, p.Stages[0].Bubble, p.Stages[1].Bubble)
		}
	}
}

// Nothing stands out in healthy dumps, although TP1 is last almost every time.
func TestNothingStandsOutOfRealRanks(t *testing.T) {
	for _, name := range []string{"a_unified_tp2.jsonl", "b_pd_smg_tp2.jsonl.zst", "b2_pd_nosmg_tp2.jsonl.zst", "d_big_tp2.jsonl.zst", "e_legacy_v1_pd_minilb.jsonl.zst", "i_vllm_llm_request.jsonl"} {
		for _, f := range allFindings(Measure(place.Of(testset.LoadDump(t, name)))) {
			t.Errorf("%s: %s", name, f.Text)
		}
	}
}
