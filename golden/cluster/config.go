package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Config describes servers, their load, and their faults.
type Config struct {
	// Seed determines everything random.
	Seed uint64
	// Level is SGLANG_TRACE_LEVEL, from 1 to 3.
	Level int
	// Start is the true time at which requests begin to arrive, for Length; the dump ends
	// Tail later.
	Start        time.Time
	Length, Tail time.Duration
	// Routing is how requests are divided among schedulers.
	Routing Routing
	// Gateway means that an smg gateway sends the requests; otherwise the clients do.
	Gateway bool
	// ClockSkew is the largest offset, in either direction, of the clocks of the servers' hosts from the gateway's.
	ClockSkew time.Duration
	// HealthEvery is the interval between health checks of each server, past the gateway; 0 is never.
	HealthEvery time.Duration
	// Patience is how long clients wait for the end of a response; 0 is forever.
	Patience time.Duration
	Pools    []Pool
	Faults   []Fault
}

// Pool is servers of one model, which get requests round robin. If there are Prefill servers, the others decode.
type Pool struct {
	Model            string
	Embedding        bool
	Prefill, Servers int
	TP               int
	// DP is the number of schedulers of a server, each with its own TP ranks, KV cache, and batch; 0 is one.
	DP int
	// KV is the KV cache of a scheduler in tokens, Chunk the largest number of prompt tokens in a prefill, and Batch the
	// largest number of running requests; 0 is the default.
	KV, Chunk, Batch int
	// Rate is the number of requests per second.
	Rate           float64
	Prompt, Output simulator.Lengths
	// Cached is the mean share of a prompt that is in the prefix cache; Accepted is the average number of drafted tokens that a
	// step accepts.
	Cached, Accepted float64
	// Tenants is the number of tenants that send requests; 0 means that requests name no tenant.
	Tenants int
	Costs   Costs
}

// Routing is how a router distributes requests.
type Routing uint8

const (
	InTurn Routing = iota
	AtRandom
	MinLoaded // to the server with the fewest requests
)

// withDefaults fills in unset fields.
func (p Pool) withDefaults() Pool {
	p.DP, p.KV, p.Chunk, p.Batch = max(1, p.DP), cmp.Or(p.KV, 400_000), cmp.Or(p.Chunk, 2048), cmp.Or(p.Batch, 64)
	return p
}

// Costs are the average durations of steps.
type Costs struct {
	Prefill, PerToken       time.Duration // a prefill, and each of its tokens
	Decode, PerJob, PerKV   time.Duration // a decode step, each of its requests, and each 1000 tokens of their KV
	Transfer, TransferPerKV time.Duration // of KV, and of 1000 tokens of it
	InTurn                  bool          // a prefill server sends the KV of one request after the other
}

// Models that a pool may have.
var (
	small = Pool{
		Model: "meta-llama/Llama-3.1-8B-Instruct", TP: 1,
		Prompt: simulator.Lengths{Median: 600, Sigma: 1, Max: 16000}, Output: simulator.Lengths{Median: 60, Sigma: 0.75, Max: 2048},
		Costs: Costs{
			Prefill: 6 * time.Millisecond, PerToken: 9500 * time.Nanosecond,
			Decode: 8 * time.Millisecond, PerJob: 60 * time.Microsecond, PerKV: 30 * time.Microsecond,
			Transfer: 1200 * time.Microsecond, TransferPerKV: 2 * time.Millisecond,
		},
	}
	large = Pool{
		Model: "meta-llama/Llama-3.3-70B-Instruct", TP: 2, KV: 150_000,
		Prompt: simulator.Lengths{Median: 600, Sigma: 1, Max: 16000}, Output: simulator.Lengths{Median: 60, Sigma: 0.75, Max: 2048},
		Costs: Costs{
			Prefill: 15 * time.Millisecond, PerToken: 45 * time.Microsecond,
			Decode: 24 * time.Millisecond, PerJob: 150 * time.Microsecond, PerKV: 60 * time.Microsecond,
			Transfer: 2 * time.Millisecond, TransferPerKV: 4 * time.Millisecond,
		},
	}
	embedding = Pool{
		Model: "BAAI/bge-m3", Embedding: true, TP: 1,
		Prompt: simulator.Lengths{Median: 250, Sigma: 0.8, Max: 8000}, Output: simulator.Lengths{Median: 1, Max: 1},
		Costs: Costs{Prefill: 6 * time.Millisecond, PerToken: 4 * time.Microsecond},
	}
)

// withServers returns a pool with servers and a rate per server.
func (p Pool) withServers(servers int, rate float64) Pool {
	p.Servers, p.Rate = servers, rate*float64(servers)
	return p
}

// DefaultConfig is three servers of a small model behind a gateway, without faults, for two minutes.
func DefaultConfig(seed uint64) Config {
	return Config{
		Seed: seed, Level: 2, Gateway: true,
		Start: time.Unix(1_840_000_000, 0), Length: 2 * time.Minute, Tail: 10 * time.Second,
		ClockSkew: 4 * time.Millisecond,
		Pools:     []Pool{small.withServers(3, 2)},
	}
}

// Calm returns c without its faults: the run that would have been.
func (c Config) Calm() Config {
	c.Faults = nil
	return c
}

// check returns an error if c cannot be played.
func (c *Config) check() error {
	if c.Level < 1 || c.Level > 3 || c.Length <= 0 || c.Tail < 0 || len(c.Pools) == 0 {
		return fmt.Errorf("cluster: level %d, %v of requests and %v more, %d pools", c.Level, c.Length, c.Tail, len(c.Pools))
	}
	servers := 0
	c.Pools = slices.Clone(c.Pools)
	for i, p := range c.Pools {
		p = p.withDefaults()
		c.Pools[i] = p
		if p.Servers < 1 || p.Prefill < 0 || p.TP < 1 || p.Rate <= 0 || p.Accepted < 0 || p.Accepted > 4 || p.Cached < 0 || p.Cached > 0.5 || p.KV < p.Prompt.Max+p.Output.Max {
			return fmt.Errorf("cluster: pool %d cannot be played: %+v", i, p)
		}
		servers += (p.Servers + p.Prefill) * p.DP
	}
	for i, f := range c.Faults {
		if faults[f.Name].plant == nil || f.Server < All || f.Server >= servers || f.Other < 0 || f.Other >= servers || f.At < 0 {
			return fmt.Errorf("cluster: fault %d cannot be planted: %+v", i, f)
		}
	}
	return nil
}
