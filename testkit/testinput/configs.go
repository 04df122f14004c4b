package testinput

import (
	"errors"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// A Config is a deployment with a name.
type Config struct {
	Name   string
	Change func(*simulator.Config)
}

// Configs are deployments for tests: the three modes, a pipeline, and workloads at the limits of a configuration.
var Configs = []Config{
	{"gateway", func(c *simulator.Config) {}},
	{"direct", func(c *simulator.Config) { c.Mode = simulator.PDDirect }},
	{"unified", func(c *simulator.Config) { c.Mode = simulator.Unified }},
	{"unified-tp2", func(c *simulator.Config) {
		c.Mode, c.Unified = simulator.Unified, simulator.Parallel{TP: 2, PP: 1, DP: 1}
	}},
	{"unified-pp2-dp2", func(c *simulator.Config) {
		c.Mode, c.Unified, c.Level, c.Straggler.Factor = simulator.Unified, simulator.Parallel{TP: 1, PP: 2, DP: 2}, 4, 0
	}},
	{"tp2-pp2-dp3", func(c *simulator.Config) {
		c.Prefill, c.Decode, c.Level, c.Straggler.PP = simulator.Parallel{TP: 4, PP: 2, DP: 2}, simulator.Parallel{TP: 2, PP: 2, DP: 3}, 4, 1
	}},
	{"two-hosts", func(c *simulator.Config) {
		c.Mode, c.Unified, c.RanksPerHost, c.HostSkew = simulator.Unified, simulator.Parallel{TP: 4, PP: 1, DP: 2}, 4, 2500*time.Microsecond
	}},
	{"three-hosts", func(c *simulator.Config) {
		c.Decode, c.RanksPerHost, c.HostSkew = simulator.Parallel{TP: 6, PP: 1, DP: 1}, 2, 2500*time.Microsecond
	}},
	{"level-0", func(c *simulator.Config) { c.Level = 0 }},
	{"level-1", func(c *simulator.Config) { c.Level = 1 }},
	{"level-2-unified", func(c *simulator.Config) { c.Mode, c.Level = simulator.Unified, 2 }},
	{"one-request", func(c *simulator.Config) { c.Requests = 1 }},
	{"calm", func(c *simulator.Config) {
		c.Incident, c.Straggler, c.Cancels, c.Impatient = simulator.Incident{}, simulator.Straggler{}, 0, 0
		c.SlowTransfers, c.FailedTransfers = 0, 0
	}},
	{"all-at-once", func(c *simulator.Config) { c.Rate = 1e5 }},
	{"all-at-once-unified", func(c *simulator.Config) { c.Mode, c.Rate = simulator.Unified, 1e5 }},
	{"one-by-one", func(c *simulator.Config) { c.MaxRunning, c.ChunkTokens = 1, 100 }},
	{"no-memory", func(c *simulator.Config) { c.KVTokens = c.Prompt.Max + c.Output.Max }},
	{"no-memory-unified-pp2", func(c *simulator.Config) {
		c.Mode, c.Unified, c.KVTokens = simulator.Unified, simulator.Parallel{TP: 2, PP: 2, DP: 1}, c.Prompt.Max+c.Output.Max
		c.Prompt.Median, c.Output.Median = 100, 40
	}},
	{"short", func(c *simulator.Config) { c.Prompt.Max, c.Output.Max = 1, 1 }},
	{"nothing-arrives", func(c *simulator.Config) { c.FailedTransfers, c.Impatient, c.Cancels = 1, 0.5, 0.5 }},
	{"everyone-leaves", func(c *simulator.Config) { c.Impatient, c.Patience, c.Cancels = 1, 100*time.Millisecond, 1 }},
	{"everyone-leaves-unified", func(c *simulator.Config) {
		c.Mode, c.Impatient, c.Patience, c.Cancels = simulator.Unified, 1, 100*time.Millisecond, 1
	}},
}

// Play plays the default run of a seed with a change.
func Play(t *testing.T, seed uint64, change func(*simulator.Config)) *simulator.Run {
	t.Helper()
	return play(t, simulator.DefaultConfig(seed), change)
}

// PlaySmall is [Play] with fewer requests, for tests of all configs.
func PlaySmall(t *testing.T, seed uint64, change func(*simulator.Config)) *simulator.Run {
	t.Helper()
	c := simulator.DefaultConfig(seed)
	c.Requests = 100
	return play(t, c, change)
}

func play(t *testing.T, c simulator.Config, change func(*simulator.Config)) *simulator.Run {
	t.Helper()
	change(&c)
	r, err := simulator.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// CountOf returns a row of a count.
func CountOf(t *testing.T, rows []simulator.NameCount, name string) int {
	t.Helper()
	for _, row := range rows {
		if row.Name == name {
			return row.Count
		}
	}
	t.Fatalf("no row %q in %v", name, rows)
	return 0
}

// BrokenWriter accepts Left bytes, then fails with [ErrBroken].
type BrokenWriter struct{ Left int }

// ErrBroken is the error of a [BrokenWriter].
var ErrBroken = errors.New("broken")

func (w *BrokenWriter) Write(b []byte) (int, error) {
	if w.Left -= len(b); w.Left < 0 {
		return 0, ErrBroken
	}
	return len(b), nil
}

// Abs returns the absolute value of n.
func Abs(n int64) int64 { return max(n, -n) }
