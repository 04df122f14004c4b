package change_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// An incident is a kind of simulated run, and what must be found in it.
type incident struct {
	name  string
	modes []simulator.Mode // in rotation
	alter func(c *simulator.Config)
	// finds reports whether the planted change is among those found. It is nil for
	// runs in which nothing must be found.
	finds func(c *change.Changes, onset trace.Time) bool
	// least is the smallest number of 100 runs in which that must succeed.
	least int
}

var (
	pipelined    = simulator.Parallel{TP: 2, PP: 2, DP: 2}
	fourReplicas = simulator.Parallel{TP: 2, PP: 1, DP: 4}
)

var incidents = []incident{
	{name: "healthy", modes: testset.AllModes, alter: testset.Quiet, least: 95},
	{name: "healthy with pipelines", modes: testset.AllModes, least: 95, alter: func(c *simulator.Config) {
		testset.Quiet(c)
		c.Unified, c.Decode, c.Level = pipelined, pipelined, 4
	}},
	{name: "healthy with four replicas", modes: testset.AllModes, least: 95, alter: func(c *simulator.Config) {
		testset.Quiet(c)
		c.Unified, c.Decode, c.Rate = fourReplicas, fourReplicas, 24
	}},
	{name: "skewed routing and a burst", modes: testset.AllModes, alter: func(*simulator.Config) {}, least: 95,
		finds: func(c *change.Changes, onset trace.Time) bool {
			return found(c, onset, func(f *change.Shift) bool {
				return f.Metric == change.ShareChanged && f.Location.Rank.DP == 1 && f.After.Share > 0.75
			}) && found(c, onset, burst)
		}},
	{name: "skewed routing", modes: testset.AllModes, alter: func(c *simulator.Config) { c.Incident.BurstLength = 0 }, least: 95,
		finds: func(c *change.Changes, onset trace.Time) bool {
			return found(c, onset, func(f *change.Shift) bool {
				return f.Metric == change.ShareChanged && f.Location.Rank.DP == 1 && f.After.Share > 0.75
			})
		}},
	{name: "burst", modes: testset.AllModes, alter: func(c *simulator.Config) { c.Incident.DPShare = 0 }, least: 95,
		finds: func(c *change.Changes, onset trace.Time) bool { return found(c, onset, burst) }},
	{name: "straggler from the onset on", modes: testset.AllModes, least: 95,
		alter: func(c *simulator.Config) {
			testset.Quiet(c)
			c.Straggler = simulator.Straggler{TP: 1, Factor: 1.2, AtOnset: true}
		},
		finds: func(c *change.Changes, onset trace.Time) bool {
			return found(c, onset, func(f *change.Shift) bool {
				return f.Metric == change.LatenessChanged && f.Location.Rank.TP == 1 && f.Location.Rank.DP == 0 && f.After.P50 > 3_000_000
			})
		}},
	{name: "slow transfers from the onset on", modes: testset.DisaggregatedModes, least: 95,
		alter: func(c *simulator.Config) {
			testset.Quiet(c)
			c.SlowTransfers, c.SlowTransfersAtOnset = 0.4, true
		},
		finds: func(c *change.Changes, onset trace.Time) bool {
			return found(c, onset, func(f *change.Shift) bool {
				return (f.Stage == "prefill_transfer_kv_cache" || f.Stage == "decode_transferred") && f.After.P99 > 300_000_000
			})
		}},
	{name: "straggler all the time", modes: testset.AllModes, least: 95,
		alter: func(c *simulator.Config) {
			testset.Quiet(c)
			c.Straggler = simulator.Straggler{TP: 1, Factor: 1.2}
		},
		finds: func(c *change.Changes, _ trace.Time) bool {
			return len(c.List) == 0 && len(c.Late) > 0 && !slices.ContainsFunc(c.Late, func(f change.Shift) bool {
				return f.Location.Rank.TP != 1 || f.Location.Rank.DP != 0
			})
		}},
}

func burst(f *change.Shift) bool {
	return f.Metric == change.ArrivalsChanged && f.After.Rate > 2*f.Before.Rate
}

// found reports whether a matching shift is dated at the onset: within its own
// bounds, give or take a second, and less than 2 s off.
func found(c *change.Changes, onset trace.Time, is func(*change.Shift) bool) bool {
	const second = 1_000_000_000
	for i := range c.List {
		for k := range c.List[i].Shifts {
			f := &c.List[i].Shifts[k]
			near := f.First-second <= onset && onset <= f.Last+second && max(f.Time-onset, onset-f.Time) < 2*second
			if f.Searched && near && is(f) {
				return true
			}
		}
	}
	return false
}

// Planted changes are found at their time in at least 95 of 100 runs, and no changes
// in at least 95 of 100 healthy runs.
func TestRateOfChanges(t *testing.T) {
	seeds := testset.FirstSeeds(t, 3)
	for _, in := range incidents {
		t.Run(in.name, func(t *testing.T) {
			t.Parallel()
			var failed []string
			for _, seed := range seeds {
				if !in.holds(t, seed) {
					failed = append(failed, fmt.Sprintf("%d (%v)", seed, in.modes[seed%uint64(len(in.modes))]))
				}
			}
			if len(failed) > 0 {
				t.Logf("not in seeds %v", failed)
			}
			testset.Rate(t, "changes: "+in.name, len(seeds)-len(failed), len(seeds), in.least)
		})
	}
}

// holds plays the incident with a seed and reports whether the result is right.
func (in *incident) holds(t *testing.T, seed uint64) bool {
	config := simulator.DefaultConfig(seed)
	config.Mode = in.modes[int(seed)%len(in.modes)]
	in.alter(&config)
	set, truth := testset.Simulated(t, config)
	changes := change.Find(place.Of(set))
	if in.finds == nil {
		return len(changes.List) == 0
	}
	return in.finds(changes, trace.Time(truth.Requests[int(config.Incident.Onset*float64(config.Requests))].ArrivalNs))
}

// The interval of a change's time contains the onset that the simulator planted.
func TestTimeOfChange(t *testing.T) {
	for seed := range uint64(3) {
		set, truth := testset.Simulated(t, simulator.DefaultConfig(seed))
		c := change.Find(place.Of(set))
		if len(c.List) == 0 {
			t.Errorf("seed %d: no change", seed)
			continue
		}
		const skew = 8_000_000 // ns between the clocks of the hosts
		onset, first := trace.Time(truth.Imbalance.OnsetNs), &c.List[0]
		if first.First-skew > onset || onset > first.Last+skew {
			t.Errorf("seed %d: %v in [%v, %v], the onset is %v", seed, first.Time, first.First, first.Last, onset)
		}
		if d := first.Time - onset; d < -500_000_000 || d > 500_000_000 {
			t.Errorf("seed %d: off by %d ns", seed, d)
		}
		share := first.Shifts[0]
		if want := truth.Imbalance; share.After.Share < want.ShareAfter-0.05 || share.After.Share > want.ShareAfter+0.05 {
			t.Errorf("seed %d: share after %.3f, want %.3f", seed, share.After.Share, want.ShareAfter)
		}
		if len(c.Late) != 1 || c.Late[0].Location.Rank != testset.Rank(t, truth.Straggler.Rank) {
			t.Errorf("seed %d: late are %+v, want %s", seed, c.Late, truth.Straggler.Rank)
		}
	}
}

// Slow phases come and go, so that they have no row in the table of changes, but a note.
func TestSlowPhasesAreNoted(t *testing.T) {
	set, truth := testset.Clustered(t, cluster.Find("slow_every_40"), 84001)
	noted := testset.Text(t, change.Find(place.Of(set)).Report(), table.FormatText, table.Style{Width: 1000})
	if !strings.Contains(noted, "("+truth.Hosts[0]+")'s decode time per token rises by 80 % for about 6.0") || !strings.Contains(noted, "every 40 s") {
		t.Errorf("notes are %s", noted)
	}
}

// From 60 s on, twice as many requests arrive as before, and the dump ends before a server with a limit has served those with long answers:
// of these, only what happened before the queue was exported. More arrive, and answers are as long as before.
func TestRequestsThatNeverEnd(t *testing.T) {
	r, d := rand.New(rand.NewPCG(7, 8)), testset.Dump{}
	const host = "5f1d3c0a00000000000000000000cccc"
	arrived := 0
	for at := 0.0; at < 120e6; arrived++ {
		gap := 0.1e6
		if at < 60e6 {
			gap = 0.2e6
		}
		at += gap * r.ExpFloat64()
		tokens, root := 20+r.IntN(200), testset.Span{Trace: fmt.Sprintf("%032x", arrived+1), Name: fmt.Sprintf(" Req %08x", arrived), From: at}
		root.To = at + 1e5 + 1e4*float64(tokens)
		root.Attrs = testset.Attrs{"rid": fmt.Sprintf("%08x", arrived), "module": "sglang::request", "gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": tokens}
		tokenize := testset.Span{Name: "tokenize", From: at, To: at + 1000}
		stages := []testset.Span{{Name: "request_process", From: at + 1500, To: at + 2000}, {Name: "prefill_waiting", From: at + 2000, To: at + 4000},
			{Name: "prefill_forward", From: at + 4000, To: at + 1e5}, {Name: "decode_forward", From: at + 1e5, To: root.To}}
		id := "00000000000000ff"
		if at > 90e6 && tokens > 80 {
			stages = stages[:1]
		} else {
			id = d.Add(root)
		}
		d.Thread(root, id, host, "Tokenizer", -1, 88, tokenize)
		d.Thread(root, id, host, "Scheduler", 0, 89, stages...)
	}
	rose := false
	for _, c := range change.Find(place.Of(d.Set(t))).List {
		for _, f := range c.Shifts {
			rose = rose || f.Metric == change.ArrivalsChanged && f.Before.Rate > 4 && f.Before.Rate < 6 && f.After.Rate > 8.5 && f.After.Rate < 11.5
			if f.Metric == change.OutputChanged {
				t.Errorf("answers that nobody saw end: %s", c.Sentence())
			}
		}
	}
	if !rose {
		t.Errorf("%d arrived, 5 and then 10 /s: %+v", arrived, change.Find(place.Of(d.Set(t))).List)
	}
}
