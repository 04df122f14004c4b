package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// configs are deployments that the tests look at: the three modes, a pipeline,
// and workloads at the edges of what can be asked for.
var configs = []struct {
	name   string
	change func(*Config)
}{
	{"gateway", func(c *Config) {}},
	{"direct", func(c *Config) { c.Mode = PDDirect }},
	{"unified", func(c *Config) { c.Mode = Unified }},
	{"unified-tp2", func(c *Config) { c.Mode, c.Unified = Unified, Parallel{TP: 2, PP: 1, DP: 1} }},
	{"unified-pp2-dp2", func(c *Config) {
		c.Mode, c.Unified, c.Level, c.Straggler.Factor = Unified, Parallel{TP: 1, PP: 2, DP: 2}, 4, 0
	}},
	{"tp2-pp2-dp3", func(c *Config) {
		c.Prefill, c.Decode, c.Level, c.Straggler.PP = Parallel{TP: 4, PP: 2, DP: 2}, Parallel{TP: 2, PP: 2, DP: 3}, 4, 1
	}},
	{"two-hosts", func(c *Config) {
		c.Mode, c.Unified, c.RanksPerHost, c.HostSkew = Unified, Parallel{TP: 4, PP: 1, DP: 2}, 4, 2500*time.Microsecond
	}},
	{"three-hosts", func(c *Config) {
		c.Decode, c.RanksPerHost, c.HostSkew = Parallel{TP: 6, PP: 1, DP: 1}, 2, 2500*time.Microsecond
	}},
	{"level-0", func(c *Config) { c.Level = 0 }},
	{"level-1", func(c *Config) { c.Level = 1 }},
	{"level-2-unified", func(c *Config) { c.Mode, c.Level = Unified, 2 }},
	{"one-request", func(c *Config) { c.Requests = 1 }},
	{"calm", func(c *Config) {
		c.Incident, c.Straggler, c.Cancels, c.Impatient = Incident{}, Straggler{}, 0, 0
		c.SlowTransfers, c.FailedTransfers = 0, 0
	}},
	{"all-at-once", func(c *Config) { c.Rate = 1e5 }},
	{"all-at-once-unified", func(c *Config) { c.Mode, c.Rate = Unified, 1e5 }},
	{"one-by-one", func(c *Config) { c.MaxRunning, c.ChunkTokens = 1, 100 }},
	{"no-memory", func(c *Config) { c.KVTokens = c.Prompt.Max + c.Output.Max }},
	{"no-memory-unified-pp2", func(c *Config) {
		c.Mode, c.Unified, c.KVTokens = Unified, Parallel{TP: 2, PP: 2, DP: 1}, c.Prompt.Max+c.Output.Max
		c.Prompt.Median, c.Output.Median = 100, 40
	}},
	{"short", func(c *Config) { c.Prompt.Max, c.Output.Max = 1, 1 }},
	{"nothing-arrives", func(c *Config) { c.FailedTransfers, c.Impatient, c.Cancels = 1, 0.5, 0.5 }},
	{"everyone-leaves", func(c *Config) { c.Impatient, c.Patience, c.Cancels = 1, 100*time.Millisecond, 1 }},
	{"everyone-leaves-unified", func(c *Config) {
		c.Mode, c.Impatient, c.Patience, c.Cancels = Unified, 1, 100*time.Millisecond, 1
	}},
}

// simulate plays the default run of a seed with a change.
func simulate(t *testing.T, seed uint64, change func(*Config)) *Run {
	t.Helper()
	return play(t, DefaultConfig(seed), change)
}

// simulateSmall is simulate with fewer requests, for tests of all configs.
func simulateSmall(t *testing.T, seed uint64, change func(*Config)) *Run {
	t.Helper()
	c := DefaultConfig(seed)
	c.Requests = 100
	return play(t, c, change)
}

func play(t *testing.T, c Config, change func(*Config)) *Run {
	t.Helper()
	change(&c)
	r, err := Simulate(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// output returns what a run writes.
func output(t *testing.T, r *Run) (otlp, truth []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := WriteOTLP(&b, r); err != nil {
		t.Fatal(err)
	}
	truth, err := json.Marshal(r.Truth())
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), truth
}

func TestSeedDecidesEverything(t *testing.T) {
	for _, mode := range []Mode{PDGateway, PDDirect, Unified} {
		t.Run(mode.String(), func(t *testing.T) {
			change := func(c *Config) { c.Mode, c.Requests = mode, 60 }
			otlp, truth := output(t, simulate(t, 1, change))
			again, againTruth := output(t, simulate(t, 1, change))
			if !bytes.Equal(otlp, again) || !bytes.Equal(truth, againTruth) {
				t.Error("the same seed gave other bytes")
			}
			other, otherTruth := output(t, simulate(t, 2, change))
			if bytes.Equal(otlp, other) || bytes.Equal(truth, otherTruth) {
				t.Error("another seed gave the same bytes")
			}
		})
	}
}

// TestTruthIsTheSameAfterWriting guards against state that a writer leaves behind.
func TestTruthIsTheSameAfterWriting(t *testing.T) {
	r := simulate(t, 3, func(c *Config) {})
	before, err := json.Marshal(r.Truth())
	if err != nil {
		t.Fatal(err)
	}
	if _, after := output(t, r); !bytes.Equal(before, after) {
		t.Error("writing changed the truth")
	}
}

// TestDefaultShowsEverything checks that the demo has what it promises.
func TestDefaultShowsEverything(t *testing.T) {
	for _, test := range []struct {
		mode     Mode
		outcomes []string
		events   []string
	}{
		{PDGateway, []string{"finished", "client_canceled", "client_gone", "transfer_failed"}, []string{"schedule", "retract"}},
		{Unified, []string{"finished", "client_canceled", "client_gone", "queue_full"}, []string{"schedule", "retract"}},
	} {
		truth := simulate(t, 1, func(c *Config) { c.Mode = test.mode }).Truth()
		for _, o := range test.outcomes {
			if countOf(t, truth.Counts.Outcomes, o) == 0 {
				t.Errorf("%v: nobody ended as %s", test.mode, o)
			}
		}
		for _, e := range test.events {
			if countOf(t, truth.Counts.Events, e) == 0 {
				t.Errorf("%v: no %s event", test.mode, e)
			}
		}
		if n := truth.Counts.Spans; n < 10_000 || n > 20_000 {
			t.Errorf("%v: %d spans, want ten to twenty thousand", test.mode, n)
		}
		if len(truth.Slow) == 0 || countOf(t, truth.Counts.Slices, "chunked_prefill") == 0 {
			t.Errorf("%v: no slow requests or no chunks", test.mode)
		}
	}
}

func countOf(t *testing.T, rows []NameCount, name string) int {
	t.Helper()
	for _, row := range rows {
		if row.Name == name {
			return row.Count
		}
	}
	t.Fatalf("no row %q in %v", name, rows)
	return 0
}

func TestEveryRequestEndsOnce(t *testing.T) {
	for _, test := range configs {
		t.Run(test.name, func(t *testing.T) {
			r := simulateSmall(t, 7, test.change)
			total := 0
			for _, row := range r.Truth().Counts.Outcomes {
				total += row.Count
			}
			if total != r.config.Requests || len(r.requests) != total {
				t.Errorf("%d requests in, %d out", r.config.Requests, total)
			}
			for i, q := range r.requests {
				if err := CheckRequest(r, q); err != nil {
					t.Errorf("request %d, %s: %v", i, q.outcome, err)
				}
			}
		})
	}
}

// CheckRequest checks that the times and counts of a request make sense.
func CheckRequest(r *Run, q *request) error {
	if q.end <= q.arrival {
		return fmt.Errorf("ends %d ns after arrival", q.end-q.arrival)
	}
	a := q.answering()
	if full := a.tokens == q.output; q.outcome == finished && (!full || a.finish != q.stop) {
		return fmt.Errorf("finished %q with %d of %d tokens", a.finish, a.tokens, q.output)
	}
	for _, h := range q.halves {
		if h.received < q.arrival || h.end <= h.received {
			return fmt.Errorf("half received %d and ended %d ns after arrival", h.received-q.arrival, h.end-q.arrival)
		}
		if n := len(r.gaps(h)) + 1; h == a && q.outcome == finished && n != q.output {
			return fmt.Errorf("turns for %d of %d tokens", n, q.output)
		}
		for _, th := range r.threads(h) {
			if err := checkThread(&th); err != nil {
				return fmt.Errorf("%s: %w", r.processes[th.process].rank, err)
			}
		}
	}
	return nil
}

// checkThread checks that the stages of a thread follow each other inside it, and
// that nested ones lie inside those around them.
func checkThread(th *thread) error {
	last := map[int]int64{} // end of the last stage, by parent
	for i, st := range th.stages {
		name := st.name()
		if st.start < th.start || st.end > th.end || st.end < st.start {
			return fmt.Errorf("%s [%d, %d] is not in its thread [%d, %d]", name, st.start, st.end, th.start, th.end)
		}
		if st.parent >= i {
			return fmt.Errorf("%s is nested in a later stage", name)
		}
		if st.parent >= 0 {
			if p := th.stages[st.parent]; st.kind != decodeBootstrap && (st.start < p.start || st.end > p.end) {
				return fmt.Errorf("%s [%d, %d] is not in %s [%d, %d]", name, st.start, st.end, p.name(), p.start, p.end)
			}
		}
		if st.kind == runBatchCPU || st.parent >= 0 && st.kind == decodeBootstrap {
			continue // beside others, and SGLang's bootstrap of a retracted request
		}
		if st.start < last[st.parent] {
			return fmt.Errorf("%s starts %d ns before the one before ends", name, last[st.parent]-st.start)
		}
		last[st.parent] = st.end
	}
	return nil
}

func TestRanksRunInLockstep(t *testing.T) {
	for _, test := range configs {
		t.Run(test.name, func(t *testing.T) {
			if err := CheckLockstep(simulateSmall(t, 5, test.change)); err != nil {
				t.Error(err)
			}
		})
	}
}

// CheckLockstep checks that no rank of a TP group starts a step before all have
// finished the one before.
func CheckLockstep(r *Run) error {
	free := map[[3]int]int64{} // by instance, DP rank and stage
	for i := range r.steps {
		st := &r.steps[i]
		tp := r.instances[st.instance].size.TP
		for stage := range len(st.ranks) / tp {
			key := [3]int{st.instance, st.dp, stage}
			group := st.ranks[stage*tp:][:tp]
			end := int64(0)
			for _, k := range group {
				if k.formed > k.scheduled || k.scheduled > k.computed || k.computed > k.done {
					return fmt.Errorf("step %d: times of a rank out of order: %+v", i, k)
				}
				if k.scheduled < free[key] {
					return fmt.Errorf("step %d, stage %d: a rank starts %d ns before its peers are done", i, stage, free[key]-k.scheduled)
				}
				end = max(end, k.computed)
			}
			free[key] = end
		}
	}
	return nil
}

func TestConfigIsChecked(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(*Config)
	}{
		{"unknown mode", func(c *Config) { c.Mode = 9 }},
		{"Level", func(c *Config) { c.Level = -1 }},
		{"Start", func(c *Config) { c.Start = time.Time{} }},
		{"Requests", func(c *Config) { c.Requests = 0 }},
		{"Rate", func(c *Config) { c.Rate = math.NaN() }},
		{"Prompt", func(c *Config) { c.Prompt.Sigma = math.Inf(1) }},
		{"Output", func(c *Config) { c.Output.Max = 0 }},
		{"ChunkTokens", func(c *Config) { c.ChunkTokens = 0 }},
		{"KVTokens", func(c *Config) { c.KVTokens = 100 }},
		{"BurstFactor", func(c *Config) { c.Incident.BurstFactor = 0 }},
		{"DPShare", func(c *Config) { c.Incident.DPShare = 1.5 }},
		{"DPRank", func(c *Config) { c.Incident.DPRank = 2 }},
		{"straggler TP2-PP0-DP0 is no rank", func(c *Config) { c.Straggler.TP = 2 }},
		{"RanksPerHost", func(c *Config) { c.RanksPerHost = -1 }},
		{"HostSkew", func(c *Config) { c.HostSkew = time.Hour }},
		{"DecodeDrift", func(c *Config) { c.DecodeDrift = math.NaN() }},
		{"Patience", func(c *Config) { c.Patience = 0 }},
		{"an instance of TP0", func(c *Config) { c.Decode.TP = 0 }},
		{"an instance of TP64", func(c *Config) { c.Decode = Parallel{TP: 64, PP: 64, DP: 64} }},
	} {
		c := DefaultConfig(1)
		test.change(&c)
		if _, err := Simulate(c); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want %q", err, test.want)
		}
	}
}

func TestWriteDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	r := simulate(t, 1, func(c *Config) { c.Requests = 5 })
	for range 2 { // the second time over the files of the first
		if err := WriteRecordedDir(dir, r, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	var want bytes.Buffer
	if err := WriteOTLP(&want, r); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "otel.jsonl")); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("otel.jsonl is not what WriteOTLP writes (%v)", err)
	}
	readTruth(t, dir)
	if err := WriteRecordedDir(filepath.Join(dir, "otel.jsonl"), r, nil, nil); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// readTruth reads truth.json.
func readTruth(t *testing.T, dir string) *RecordedTruth {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	truth := new(RecordedTruth)
	if err := json.Unmarshal(text, truth); err != nil || truth.Schema != TruthSchema {
		t.Fatalf("truth.json of schema %q (%v)", truth.Schema, err)
	}
	return truth
}

// brokenWriter takes some bytes, then fails.
type brokenWriter struct{ left int }

var errBroken = errors.New("broken")

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errBroken
	}
	return len(b), nil
}

func TestWriteErrorIsReported(t *testing.T) {
	r := simulate(t, 1, func(c *Config) { c.Requests = 50 })
	for _, left := range []int{0, 1000, 200_000} {
		if err := WriteOTLP(&brokenWriter{left}, r); !errors.Is(err, errBroken) {
			t.Errorf("after %d bytes: error %v", left, err)
		}
	}
}
