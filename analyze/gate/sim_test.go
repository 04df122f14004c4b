package gate

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/diff"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// recorded returns the collected capture of a run.
func recorded(t *testing.T, config simulator.Config) *diff.Collected {
	t.Helper()
	d := diff.NewCollected(0)
	d.Add(capture(t, config))
	return d
}

// capture plays a run and returns two views of it: the requests of its dump, and what a
// profiler would record of the decode server, with a range and a kernel for each step.
func capture(t *testing.T, config simulator.Config) diff.Capture {
	t.Helper()
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	set, _ := testset.Simulated(t, config)
	syms, rows := trace.NewSymbols(), &testset.RowStream{}
	size := 0
	for i := range run.Steps {
		s := &run.Steps[i]
		if s.Instance != len(run.Instances)-1 || s.DP != 0 || s.Mode == simulator.ModePrebuilt {
			continue
		}
		name := fmt.Sprintf("step[DECODE bs=%d toks=%d]", s.Requests, s.Tokens)
		if s.Mode == simulator.ModePrefill {
			name = fmt.Sprintf("step[EXTEND bs=%d toks=%d]", s.Requests, s.Tokens)
		}
		size = len(s.Ranks)
		for rank := range s.Ranks {
			k := &s.Ranks[rank]
			e := profile.Event{Start: trace.Time(k.Scheduled + 1), End: trace.Time(k.Computed + 1), Name: syms.Intern(name), Rank: int32(rank), PID: int32(rank)}
			rows.RangeRows = append(rows.RangeRows, profile.Range{Event: e})
			e.Name = syms.Intern("gemm")
			rows.KernelRows = append(rows.KernelRows, profile.Kernel{Event: e})
		}
	}
	var ranks []string
	for rank := range size {
		ranks = append(ranks, fmt.Sprintf("TP%d", rank))
	}
	return diff.Capture{Label: "sim", Requests: set, Profiles: testset.SetOf(syms, ranks, rows)}
}

// usual are conditions for a typical CI job, for which these captures are long enough.
var usual = []string{"ttft.mean>+10%", "itl.mean>+5%", "itl.p50>+5%", "e2e.mean>+10%", "requests.unfinished>+10%", "kernel.total>+3%", "decode_step.mean>+1%"}

// strict are conditions that nothing grows at all: without a test against chance, every other one would fail.
var strict = []string{"ttft.mean>+0%", "itl.mean>+0%", "itl.p50>+0%", "e2e.mean>+0%", "queue.mean>+0%", "kernel.total>+0%", "decode_step.mean>+0%"}

// deployed returns the configuration of a healthy deployment under the n-th load.
func deployed(seed, n uint64) simulator.Config {
	config := testset.Calm(seed + 1000*n)
	config.Mode = testset.AllModes[seed%uint64(len(testset.AllModes))]
	config.Unified, config.Decode = simulator.Parallel{TP: 1, PP: 1, DP: 1}, simulator.Parallel{TP: 1, PP: 1, DP: 1}
	return config
}

// A gate passes for two captures of the same deployment under different requests,
// and fails if every step takes 3 % longer.
func TestRateOfGates(t *testing.T) {
	seeds := testset.FirstSeeds(t, 2)
	parsed := func(texts ...string) Conditions {
		list, err := Parse(texts)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	conditions, nothing, slow := parsed(usual...), parsed(strict...), parsed("decode_step.mean>+2%")
	quiet, silent, judged, caught := 0, 0, 0, 0
	for _, seed := range seeds {
		before := recorded(t, deployed(seed, 0))
		healthy := diff.Compare(before, recorded(t, deployed(seed, 1)), diff.Options{})
		if failed, _ := states(t, seed, nothing.Judge(healthy)); failed == 0 {
			silent++
		}
		failed, unjudged := states(t, seed, conditions.Judge(healthy))
		if failed == 0 {
			quiet++
		}
		if unjudged == 0 {
			judged++
		}
		worse := deployed(seed, 2)
		worse.Straggler.Factor = 1.03
		if failed, _ = states(t, seed, slow.Judge(diff.Compare(before, recorded(t, worse), diff.Options{}))); failed == 1 {
			caught++
		}
	}
	testset.Rate(t, "gates: no false alarm between healthy captures", quiet, len(seeds), 99)
	testset.Rate(t, "gates: no false alarm if nothing may grow at all", silent, len(seeds), 99)
	testset.Rate(t, "gates: healthy captures are judged by all conditions", judged, len(seeds), 95)
	testset.Rate(t, "gates: steps that take 3 % longer", caught, len(seeds), 95)
}

// states returns the numbers of conditions that failed and that could not be judged.
func states(t *testing.T, seed uint64, r *Result) (failed, unjudged int) {
	t.Helper()
	for i := range r.Judgments {
		j := &r.Judgments[i]
		switch j.State {
		case Failed:
			failed++
		case Unjudged:
			unjudged++
		default:
			continue
		}
		t.Logf("seed %d: %s: %s: %s %s, p = %g", seed, j.Condition, j.State, j.Measured, j.Reason, j.P)
	}
	return failed, unjudged
}

// days captures a deployment on three days. Each day, steps take up to 4 % longer
// than on its fastest day, times a constant factor.
func days(t *testing.T, seed, first uint64, factor float64) *diff.Collected {
	t.Helper()
	const n = 3
	rng := rand.New(rand.NewPCG(seed, first))
	side := diff.NewCollected(n)
	for day := range uint64(n) {
		config := deployed(seed, first+day)
		config.Straggler.Factor = factor * (1 + 0.04*rng.Float64())
		side.Add(capture(t, config))
	}
	return side
}

// With several captures on each side, differences between days do not fail a gate,
// as they do with single captures. A slowdown beyond them does.
func TestRateOfGatesOfSeveralCaptures(t *testing.T) {
	seeds := testset.FirstSeeds(t, 1)
	list, err := Parse([]string{"decode_step.mean>+1%", "itl.mean>+1%"})
	if err != nil {
		t.Fatal(err)
	}
	quiet, caught := 0, 0
	for _, seed := range seeds {
		before := days(t, seed, 0, 1)
		if failed, unjudged := states(t, seed, list.Judge(diff.Compare(before, days(t, seed, 3, 1), diff.Options{}))); failed+unjudged == 0 {
			quiet++
		}
		if failed, _ := states(t, seed, list.Judge(diff.Compare(before, days(t, seed, 6, 1.2), diff.Options{}))); failed > 0 {
			caught++
		}
	}
	testset.Rate(t, "gates: no false alarm between three days and three others", quiet, len(seeds), 99)
	testset.Rate(t, "gates: steps that take 20 % longer on three days", caught, len(seeds), 95)
}
