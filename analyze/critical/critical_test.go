package critical

import (
	"sync/atomic"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// addsUp checks that the parts of each request add up to its E2E, to the ns.
func addsUp(t *testing.T, s *request.Set) *replay.Run {
	t.Helper()
	r := replay.Read(s)
	n := 0
	for i := range s.Requests {
		p := Of(r, i)
		if p == nil {
			continue
		}
		n++
		sum := int64(0)
		for k := range p.Parts {
			if p.Parts[k].Ns <= 0 {
				t.Errorf("%s of %d ns", p.Parts[k].Why, p.Parts[k].Ns)
			}
			sum += p.Parts[k].Ns
		}
		if sum != s.Requests[i].Metrics.E2E {
			t.Fatalf("request %d: parts take %d ns, E2E is %d", i, sum, s.Requests[i].Metrics.E2E)
		}
	}
	if 10*n < 9*len(s.Requests) {
		t.Errorf("%d of %d requests have a path", n, len(s.Requests))
	}
	return r
}

func TestPathsAddUp(t *testing.T) {
	for i, mode := range testset.AllModes {
		c := simulator.DefaultConfig(uint64(i + 1))
		c.Mode = mode
		s, _ := testset.Simulated(t, c)
		addsUp(t, s)
	}
	s, _ := testset.Clustered(t, cluster.Find("healthy_pd"), 2)
	addsUp(t, s)
}

// Who is waited for is who was planted: the rank that is late, and transfers that are slow.
func TestRateOfBlame(t *testing.T) {
	seeds := testset.FirstSeeds(t, 2)
	for _, p := range []struct {
		name  string
		why   replay.Why
		plant func(c *simulator.Config)
		is    func(p *Part) bool
	}{
		{"late rank", replay.LateRank, func(c *simulator.Config) {
			c.Straggler = simulator.Straggler{TP: 1, DP: 1, Factor: 1.2}
		}, func(p *Part) bool { return p.At == "decode DP1 TP1" || p.At == "DP1 TP1" }},
		{"slow transfers", replay.Transferring, func(c *simulator.Config) {
			c.SlowTransfers, c.Mode = 0.1, simulator.PDGateway
		}, func(p *Part) bool { return p.Ns > 0 }},
	} {
		t.Run(p.name, func(t *testing.T) {
			var right atomic.Int64
			testset.EachSeed(seeds, func(seed uint64) {
				c := testset.Calm(seed)
				c.Mode = testset.AllModes[seed%uint64(len(testset.AllModes))]
				calm, _ := testset.Simulated(t, c)
				p.plant(&c)
				s, _ := testset.Simulated(t, c)
				first := most(Slow(replay.Read(s)), p.why)
				usual := most(Slow(replay.Read(calm)), p.why)
				if first != nil && p.is(first) && (usual == nil || first.Ns > 3*usual.Ns) {
					right.Add(1)
				} else {
					t.Logf("seed %d: %+v, without %+v", seed, first, usual)
				}
			})
			testset.Rate(t, p.name+" is what slow requests wait for", int(right.Load()), len(seeds), 95)
		})
	}
}

// most is the largest part of a kind.
func most(s *Summary, why replay.Why) *Part {
	for i := range s.Parts {
		if s.Parts[i].Why == why {
			return &s.Parts[i]
		}
	}
	return nil
}
