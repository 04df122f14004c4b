package transfer

import (
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Slow transfers begin where most of the slow ones are: a few earlier ones, close together, do not count as the start.
func TestMostOfTheSlow(t *testing.T) {
	run := func(n int, every int) (out []bool) {
		for i := range n {
			out = append(out, every > 0 && i%every == 0)
		}
		return out
	}
	join := func(lists ...[]bool) (all []bool) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	at := func(n int, list ...int) (out []changepoint.Change) {
		for i, k := range list {
			c := changepoint.Change{At: k, To: n}
			if i+1 < len(list) {
				c.To = list[i+1]
			}
			out = append(out, c)
		}
		return out
	}
	for _, x := range []struct {
		name         string
		slow         []bool
		changes      []changepoint.Change
		since, until int
	}{
		{"none", run(100, 0), nil, 0, 0},
		{"from some time on", join(run(100, 0), run(100, 2)), at(200, 100), 100, 0},
		{"for a while", join(run(100, 0), run(50, 2), run(100, 0)), at(250, 100, 150), 100, 150},
		{"at first", join(run(100, 2), run(100, 0)), at(200, 100), 0, 100},
		{"after a few", join(run(50, 0), run(20, 4), run(200, 0), run(200, 2)), at(470, 50, 70, 270), 270, 0},
		{"ever more", join(run(100, 0), run(100, 3), run(100, 2)), at(300, 100, 200), 100, 0},
	} {
		since, until := most(x.changes, changepoint.Count(x.slow))
		number := func(c *changepoint.Change) int {
			if c == nil {
				return 0
			}
			return c.At
		}
		if number(since) != x.since || number(until) != x.until {
			t.Errorf("%s: from %d to %d, want %d to %d", x.name, number(since), number(until), x.since, x.until)
		}
	}
}

// found returns what is said about the transfers of a scenario, and when its fault sets in.
func found(t *testing.T, scenario string, seed uint64, change func(c *cluster.Config)) (*Transfers, []finding.Finding, *cluster.Truth) {
	s := cluster.Find(scenario)
	c := s.Config(seed)
	change(&c)
	set, truth := testset.ClusteredAs(t, s, c)
	peers := place.Of(set)
	times := cause.NewAttributor(peers).All()
	cause.SplitSizes(set, times, peers.Len())
	x := Find(set, times)
	return x, x.Findings(cause.NewCosts(set, times, cause.UsualOf(times))), truth
}

// A transfer is not slow because the ones before it are long: the prefill server sends one after the other.
func TestTransfersInTurn(t *testing.T) {
	for seed := range uint64(3) {
		if x, said, _ := found(t, "healthy_pd", seed+1, func(c *cluster.Config) {
			p := &c.Pools[0]
			p.Costs.TransferPerKV, p.Costs.InTurn, p.Rate = 20*time.Millisecond, true, 4*p.Rate
		}); x.N < 1000 || len(said) > 0 {
			t.Errorf("seed %d: of %d transfers: %+v", seed+1, x.N, said)
		}
	}
}

// If all transfers take longer, that is said of all, with what it costs.
func TestAllTransfersSlower(t *testing.T) {
	for seed := range uint64(3) {
		_, said, truth := found(t, "slow_links", seed+1, func(*cluster.Config) {})
		if len(said) != 1 || said[0].Subkind != finding.SlowLink || !strings.HasPrefix(said[0].Text, "KV transfers take ") {
			t.Fatalf("seed %d: %+v", seed+1, said)
		}
		f, share := &said[0], float64(truth.ExtraNs)/float64(truth.TotalNs)
		if off := f.Since - trace.Time(truth.OnsetNs); max(off, -off) > 3e9 || f.Cost < 0.9*share || f.Cost > 1.1*share {
			t.Errorf("seed %d: %v off, costs %v, true %v: %q", seed+1, off, f.Cost, share, f.Text)
		}
	}
}

// The KV of a larger model takes longer to send. That is no slow transfer, as its servers do not do what the others do.
func TestTransfersOfTwoModels(t *testing.T) {
	for seed := range uint64(2) {
		_, said, _ := found(t, "healthy_pd", seed+1, func(c *cluster.Config) {
			larger := c.Pools[0]
			larger.Model, larger.Costs.TransferPerKV, larger.Rate = "meta-llama/Llama-3.3-70B-Instruct", 100*time.Millisecond, c.Pools[0].Rate/3
			c.Pools = append(c.Pools, larger)
		})
		if len(said) > 0 {
			t.Errorf("seed %d: %+v", seed+1, said)
		}
	}
}
