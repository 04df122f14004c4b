package cluster

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// These faults leave evidence in logs, records, and metrics.

// skewedRouting sends a share of the requests to one server, out of turn.
func skewedRouting(s *sim, f *Fault) {
	rng := f.rng(s)
	to := s.servers[f.Server]
	at := &s.run.Servers[f.Server]
	s.skews = append(s.skews, func(_ *Request, k turnKey) *server {
		if s.Agenda.Now < f.since(s) || k.pool != at.Pool || k.role != at.Role || rng.Float64() >= f.Share {
			return nil
		}
		return to
	})
}

// slowLink makes KV transfers from one server, or from all, take longer.
func slowLink(s *sim, f *Fault) {
	rng := f.rng(s)
	s.slowWay = append(s.slowWay, func(from, _ *server) int64 {
		if s.Agenda.Now < f.since(s) || f.Server != All && from.index != f.Server {
			return 0
		}
		return int64(f.Size * (0.5 + rng.Float64()) * 1e9)
	})
}

// throttling lowers the clock of one GPU of a server; all of its ranks wait for that GPU.
func throttling(s *sim, f *Fault) {
	slowSteps(s, f)
	f.each(s, func(v *server) {
		at := &s.run.Servers[v.index]
		slowed := SlowGPU{GPU: at.GPU + f.rng(s).IntN(v.pool.TP), From: f.since(s), Factor: f.Size, Reason: uint64(f.Share)}
		if f.For > 0 {
			slowed.To = slowed.From + int64(f.For)
		}
		at.Slowed = append(at.Slowed, slowed)
	})
}

// Ways in which a server may fail, selected by the Share of the fault.
const (
	ByGPU       = iota // a GPU falls off the bus
	ByMemory           // the memory of a GPU runs out
	ByException        // its own code fails
)

const trace = `Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", line 2713, in run_scheduler_process
    scheduler.event_loop_overlap()
  File "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", line 1003, in event_loop_overlap
    batch_result = self.run_batch(batch)
  File "/sgl-workspace/sglang/python/sglang/srt/managers/tp_worker.py", line 369, in forward_batch_generation
    logits_output, can_run_cuda_graph = self.model_runner.forward(
%s
`

// crash ends a server with an exception in its log, and restarts it after Every, if that is not 0.
func crash(s *sim, f *Fault) {
	f.begins(s, func(v *server) {
		reason := "RuntimeError: The size of tensor a (4096) must match the size of tensor b (4095) at non-singleton dimension 0"
		switch int(f.Share) {
		case ByGPU:
			reason = "torch.AcceleratorError: CUDA error: unspecified launch failure"
			at := &s.run.Servers[v.index]
			s.run.Xids = append(s.run.Xids, Xid{At: s.Agenda.Now - 300*ms, Node: at.Node, GPU: at.GPU + f.rng(s).IntN(v.pool.TP), Code: offBus, Text: "GPU has fallen off the bus."})
		case ByMemory:
			reason = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 139.81 GiB of which 1.12 GiB is free."
		}
		v.say(fmt.Sprintf(trace, reason))
		s.Agenda.At(s.Agenda.Now+120*ms, func() {
			v.say("Received sigquit from a child process. It usually means the child failed.")
			f.kill(v)
		})
	})
}

// mixed draws a deployment: the number of servers, their model, routing, and batching.
func (c *Config) mixed(vary *rand.Rand, servers int) {
	c.Routing = Routing(vary.IntN(3))
	c.Length = time.Duration(180+vary.IntN(240)) * time.Second
	p := small.withServers(servers, 2+2*vary.Float64())
	if vary.IntN(3) == 0 {
		p = large.withServers(servers, 0.6+0.5*vary.Float64())
	}
	p.Chunk, p.Batch = 2048<<vary.IntN(3), []int{48, 64, 128}[vary.IntN(3)]
	p.Prompt.Median, p.Output.Median = p.Prompt.Median*(0.6+vary.Float64()), p.Output.Median*(1+1.5*vary.Float64())
	p.Cached = 0.4 * vary.Float64()
	c.Pools = []Pool{p}
}

// apart turns a third of the servers into prefill servers.
func (c *Config) apart(vary *rand.Rand) {
	p := &c.Pools[0]
	all := p.Servers
	p.Prefill = max(1, all/2-vary.IntN(2))
	p.Servers = max(1, all-p.Prefill)
	p.Rate *= 0.7
}

// A Lead is the required first finding about a run.
type Lead struct {
	Kinds string // accepted kinds of findings
	Words string // a regular expression, in which HOST stands for any of the places
}

// Evident are scenarios that must be found from logs, records, and metrics, without any spans.
var Evident = []Scenario{
	{Name: "fine", Doc: "several servers, of any kind", Healthy: true, plant: func(c *Config, vary *rand.Rand) { c.mixed(vary, 2+vary.IntN(5)) }},
	{Name: "fine_dp", Doc: "a server of several DP ranks", Healthy: true, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 1)
		c.ranks(vary)
	}},
	{Name: "fine_pd", Doc: "prefill and decode servers", Healthy: true, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 3+vary.IntN(4))
		c.apart(vary)
	}},
	{Name: "fine_wave", Doc: "load rises and sinks", Healthy: true, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 2+vary.IntN(5))
		c.Faults = []Fault{{Name: "wave", Server: All, Size: 0.8, Every: c.Length}}
	}},
	{Name: "fine_more", Doc: "half as many requests more from some point on, which the servers can carry", Healthy: true, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 2+vary.IntN(5))
		c.Faults = []Fault{{Name: "burst", Server: All, At: since(c, vary), Every: c.Length, Size: c.Pools[0].Rate / 2}}
	}},
	{Name: "dp_skew", Doc: "one of several DP ranks gets far more than its share", Lead: Lead{"imbalance load", "RANK"}, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 1)
		c.ranks(vary)
		// If all other requests avoid the rank, it only gets the Share: with two ranks, half would not be a skew.
		n := c.Pools[0].DP
		c.Faults = []Fault{{Name: "skewed routing", Server: vary.IntN(n), At: since(c, vary), Share: max(0.4, 1.6/float64(n)) + 0.2*vary.Float64()}}
	}},
	{Name: "server_skew", Doc: "one of several servers gets far more than its share", Lead: Lead{"imbalance load", "HOST"}, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 3+vary.IntN(4))
		c.Faults = []Fault{{Name: "skewed routing", Server: vary.IntN(c.Pools[0].Servers), At: since(c, vary), Share: 0.5 + 0.2*vary.Float64()}}
	}},
	{Name: "slow_server", Doc: "all steps of a server take 40 to 80 % longer from some point on", Lead: Lead{"slower change", "HOST"}, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 3+vary.IntN(4))
		c.Faults = []Fault{{Name: "slow steps", Server: vary.IntN(c.Pools[0].Servers), At: since(c, vary), Size: 1.4 + 0.4*vary.Float64()}}
	}},
	{Name: "slow_always", Doc: "all steps of a server take 40 to 80 % longer", Lead: Lead{"slower change", "HOST"}, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 3+vary.IntN(4))
		c.Faults = []Fault{{Name: "slow steps", Server: vary.IntN(c.Pools[0].Servers), Size: 1.4 + 0.4*vary.Float64()}}
	}},
	{Name: "throttled", Doc: "a GPU lowers its clock for heat, or for power, and its server is slower", Lead: Lead{"gpu", "clock.*(slowdown|brake|limit of power)"}, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 3+vary.IntN(4))
		bits := []float64{0x48, 0x20, 0x88}[vary.IntN(3)]
		c.Faults = []Fault{{Name: "throttling", Server: vary.IntN(c.Pools[0].Servers), At: since(c, vary), Size: 1.4 + 0.4*vary.Float64(), Share: bits}}
	}},
	{Name: "kv_full", Doc: "the KV cache is too small for what comes from some point on", Lead: Lead{"limit memory load change", "KV cache|length of prompts"}, plant: func(c *Config, vary *rand.Rand) {
		c.tight(vary)
		c.Faults = []Fault{{Name: "long prompts", Server: All, At: since(c, vary), Size: 4}}
	}},
	{Name: "retraction", Doc: "answers are five times as long from some point on, and requests are thrown out of full KV caches", Lead: Lead{"limit memory load change", "KV cache|length of answers"}, plant: func(c *Config, vary *rand.Rand) {
		c.tight(vary)
		c.Faults = []Fault{{Name: "long outputs", Server: All, At: since(c, vary), Size: 5}}
	}},
	{Name: "slow_link", Doc: "KV takes 0.4 to 1 s longer on its way from a prefill server", Lead: Lead{"transfer", "HOST"}, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 3+vary.IntN(4))
		c.apart(vary)
		c.Faults = []Fault{{Name: "slow link", Server: vary.IntN(c.Pools[0].Prefill), At: since(c, vary), Size: 0.4 + 0.6*vary.Float64()}}
	}},
	{Name: "burst", Doc: "for some time far more requests come than the servers can carry", Lead: Lead{"load limit", "more|wait|KV cache|stuck|bound|arriv|requests a second come"}, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 2+vary.IntN(3))
		c.overload(vary)
	}},
	{Name: "burst_pd", Doc: "for some time far more requests come than prefill and decode servers can carry", Lead: Lead{"load limit", "more|wait|KV cache|stuck|bound|arriv|requests a second come"}, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 3+vary.IntN(3))
		c.apart(vary)
		c.overload(vary)
	}},
	{Name: "failing_gpu", Doc: "a server dies as a GPU falls off the bus", Lead: Lead{"gpu errors", "Xid 79"}, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 3+vary.IntN(4))
		c.Faults = []Fault{{Name: "crash", Server: vary.IntN(c.Pools[0].Servers), At: since(c, vary), Share: ByGPU}}
	}},
	{Name: "failing", Doc: "a server dies of an exception, or of memory, and comes back or not", Lead: Lead{"errors lifecycle", "HOST"}, plant: func(c *Config, vary *rand.Rand) {
		c.mixed(vary, 3+vary.IntN(4))
		c.Faults = []Fault{{Name: "crash", Server: vary.IntN(c.Pools[0].Servers), At: since(c, vary), Share: float64(1 + vary.IntN(2)), Every: time.Duration(30*vary.IntN(2)) * time.Second}}
	}},
}

// ranks gives each server several DP ranks.
func (c *Config) ranks(vary *rand.Rand) {
	p := &c.Pools[0]
	p.DP = 2 << vary.IntN(3)
	p.Rate *= float64(p.DP)
}

// tight makes KV caches barely large enough for the load.
func (c *Config) tight(vary *rand.Rand) {
	c.mixed(vary, 2+vary.IntN(3))
	p := &c.Pools[0]
	p.Prompt.Max, p.Output.Max = 6000, 2048
	p.Output.Median, p.Prompt.Median, p.Prompt.Sigma = 120, 700, 0.6
	p.KV = 12_000
}

// overload plans a burst of several times the usual load.
func (c *Config) overload(vary *rand.Rand) {
	p := &c.Pools[0]
	c.Faults = []Fault{{Name: "burst", Server: All, At: since(c, vary), Every: time.Duration(15+vary.IntN(20)) * time.Second, Size: 12 * p.Rate}}
}
