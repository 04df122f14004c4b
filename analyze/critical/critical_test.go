package critical

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// addUp checks that the parts of each request add up to its E2E, and that its pieces are contiguous
// from its start to its end, to the ns. It returns the number of requests that have a path.
func addUp(t *testing.T, s *request.Set, r *replay.Run) (n int) {
	t.Helper()
	for i := range s.Requests {
		path, chain, q := PathOf(r, nil, i), ChainOf(r, nil, i), &s.Requests[i]
		if (path == nil) != (chain == nil) {
			t.Fatalf("request %d: path %v, chain %v", i, path, chain)
		}
		if path == nil {
			continue
		}
		n++
		sum := int64(0)
		for k := range path.Parts {
			if path.Parts[k].Ns <= 0 {
				t.Errorf("%s of %d ns", path.Parts[k].Why, path.Parts[k].Ns)
			}
			sum += path.Parts[k].Ns
		}
		if sum != q.Metrics.E2E {
			t.Fatalf("request %d: parts take %d ns, E2E is %d", i, sum, q.Metrics.E2E)
		}
		at := q.Start
		for _, p := range chain.Pieces {
			if p.First != at || p.Until <= at || int64(p.Until-at) != p.Ns {
				t.Fatalf("request %d: %s from %d to %d takes %d ns, and the piece before ends at %d", i, p.Why, p.First, p.Until, p.Ns, at)
			}
			at = p.Until
		}
		if at != q.Start+trace.Time(q.Metrics.E2E) {
			t.Fatalf("request %d: the last piece ends at %d, the request at %d", i, at, q.End)
		}
	}
	return n
}

// addsUp calls addUp, and checks that nearly all requests have a path.
func addsUp(t *testing.T, s *request.Set) *replay.Run {
	t.Helper()
	r := replay.Read(s)
	if n := addUp(t, s, r); 10*n < 9*len(s.Requests) {
		t.Errorf("%d of %d requests have a path", n, len(s.Requests))
	}
	return r
}

func TestPathsAddUp(t *testing.T) {
	for i, mode := range testset.AllModes {
		c := simulator.DefaultConfig(uint64(i + 1))
		c.Mode, c.Requests = mode, 1000
		s, _ := testset.Simulated(t, c)
		addsUp(t, s)
	}
	n := 0
	for _, name := range []string{"healthy_pd", "healthy", "caches_and_drafts", "small_burst"} {
		s, _ := testset.Clustered(t, cluster.Find(name), 2)
		addsUp(t, s)
		n += len(s.Requests)
	}
	if n < 1000 {
		t.Errorf("%d requests of the other simulator", n)
	}
}

// Without trace level 3, decoding still counts as decoding, and not as the way back to the user.
func TestDecodingWithoutSteps(t *testing.T) {
	c := testset.Calm(3)
	c.Level = 2
	s, _ := testset.Simulated(t, c)
	r := addsUp(t, s)
	out := SumSlow(r, nil)
	decode, back := most(out, replay.Decoding), most(out, replay.Returning)
	if out.Untraced != out.Requests || decode == nil || decode.At == "" || back != nil && 10*back.Ns > decode.Ns {
		t.Errorf("%d of %d requests have no steps; decode %+v, return %+v", out.Untraced, out.Requests, decode, back)
	}
}

// planted are faults, and who must be blamed for the waits of slow requests.
var planted = []struct {
	name  string
	why   replay.WaitReason
	play  func(t *testing.T, seed uint64, plant bool) (s *request.Set, hosts []string)
	blame func(s *request.Set, first *Part, hosts []string) bool
}{
	{"late rank", replay.LateRank, simulated(func(c *simulator.Config) {
		c.Straggler = simulator.Straggler{TP: 1, DP: 1, Factor: 1.2}
	}), func(_ *request.Set, p *Part, _ []string) bool { return p.At == "decode DP1 TP1" || p.At == "DP1 TP1" }},
	{"slow transfers", replay.Transferring, simulated(func(c *simulator.Config) {
		c.SlowTransfers, c.Mode = 0.1, simulator.PDGateway
	}), func(_ *request.Set, p *Part, _ []string) bool { return strings.HasPrefix(p.From, "prefill") }},
	{"long prompts", replay.HeldUp, alone(simulated(func(c *simulator.Config) {
		c.LongPrompts, c.LongTokens, c.KVTokens, c.Mode = 0.03, 8192, 1<<17, simulator.Unified
	})), func(s *request.Set, p *Part, _ []string) bool { return promptOf(s, p.Other) == 8192 }},
	{"tokenizer", replay.Dispatching, alone(clustered("slow_tokenizer")), atHost},
	{"gateway", replay.Dispatching, clustered("gateway_holds"), func(*request.Set, *Part, []string) bool { return true }},
	{"slow pair", replay.Transferring, alone(clustered("slow_pair")), func(_ *request.Set, p *Part, hosts []string) bool {
		return strings.Contains(p.From, hosts[0]) && strings.Contains(p.At, hosts[1]) || strings.Contains(p.From, hosts[1]) && strings.Contains(p.At, hosts[0])
	}},
	{"slow server", replay.Decoding, alone(clustered("one_slower_always")), atHost},
}

// simulated plays a run of the simulator, with or without the planted fault.
func simulated(plant func(c *simulator.Config)) func(*testing.T, uint64, bool) (*request.Set, []string) {
	return func(t *testing.T, seed uint64, planted bool) (*request.Set, []string) {
		c := testset.Calm(seed)
		c.Mode = testset.AllModes[seed%uint64(len(testset.AllModes))]
		if planted {
			plant(&c)
		}
		s, _ := testset.Simulated(t, c)
		return s, nil
	}
}

// clustered plays a scenario of the cluster; without its fault, one of healthy servers.
func clustered(name string) func(*testing.T, uint64, bool) (*request.Set, []string) {
	return func(t *testing.T, seed uint64, planted bool) (*request.Set, []string) {
		if !planted {
			s, _ := testset.Clustered(t, cluster.Find("healthy"), seed)
			return s, nil
		}
		s, truth := testset.Clustered(t, cluster.Find(name), seed)
		return s, truth.Hosts
	}
}

// alone plays nothing without the fault, for faults that need no comparison.
func alone(play func(*testing.T, uint64, bool) (*request.Set, []string)) func(*testing.T, uint64, bool) (*request.Set, []string) {
	return func(t *testing.T, seed uint64, planted bool) (*request.Set, []string) {
		if !planted {
			return nil, nil
		}
		return play(t, seed, true)
	}
}

func atHost(_ *request.Set, p *Part, hosts []string) bool { return strings.Contains(p.At, hosts[0]) }

// promptOf returns the number of tokens in the prompt of a request.
func promptOf(s *request.Set, rid string) int64 {
	for i := range s.Requests {
		if s.Text(s.Requests[i].RID) == rid {
			return s.Requests[i].Metrics.PromptTokens
		}
	}
	return 0
}

// The blame for slow requests falls on the planted fault.
func TestRateOfBlame(t *testing.T) {
	seeds := testset.FirstSeeds(t, 2)
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			var right atomic.Int64
			testset.EachSeed(seeds, func(seed uint64) {
				s, hosts := p.play(t, seed, true)
				first := mostNamed(replay.Read(s), p.why)
				usual := (*Part)(nil)
				if calm, _ := p.play(t, seed, false); calm != nil {
					usual = mostNamed(replay.Read(calm), p.why)
				}
				if first != nil && p.blame(s, first, hosts) && (usual == nil || first.Ns > 3*usual.Ns) {
					right.Add(1)
				} else {
					t.Logf("seed %d: %+v of %v, without %+v", seed, first, hosts, usual)
				}
			})
			testset.Rate(t, p.name+" is what slow requests wait for", int(right.Load()), len(seeds), 95)
		})
	}
}

// mostNamed returns the largest part of a kind in the slow requests, by the request that they wait for.
func mostNamed(r *replay.Run, why replay.WaitReason) *Part {
	s := sum{run: r, index: map[key]int{}}
	list := r.Whole()
	for _, q := range list[:len(list)/slowOneIn] {
		s.add(q, why == replay.HeldUp)
	}
	return most(&Summary{Parts: s.list}, why)
}

// most returns the largest part of a kind.
func most(s *Summary, why replay.WaitReason) (part *Part) {
	for i := range s.Parts {
		if p := &s.Parts[i]; p.Why == why && (part == nil || p.Ns > part.Ns) {
			part = p
		}
	}
	return part
}
