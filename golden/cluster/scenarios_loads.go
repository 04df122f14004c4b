package cluster

import (
	"math/rand/v2"
	"time"
)

// loads are scenarios of what arrives.
var loads = []Scenario{
	{Name: "daily_curve", Doc: "load sinks to a fifth and comes back", Healthy: true, plant: func(c *Config, _ *rand.Rand) {
		c.Length = 240 * time.Second
		c.Faults = []Fault{{Name: "wave", Server: All, Size: 0.8, Every: 240 * time.Second}}
	}},
	{Name: "night", Doc: "one request in ten seconds to each server", Healthy: true, plant: func(c *Config, _ *rand.Rand) {
		c.Pools, c.Length = []Pool{small.of(3, 0.1)}, 600*time.Second
	}},
	{Name: "small_burst", Doc: "twice the requests for ten seconds, which the servers can carry", Healthy: true, plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "burst", Server: All, At: since(c, vary), Every: 10 * time.Second, Size: 6}}
	}},
	{Name: "caches_and_drafts", Doc: "prefix caches, speculative decoding, and tenants", Healthy: true, plant: func(c *Config, _ *rand.Rand) {
		c.Pools[0].Cached, c.Pools[0].Accepted, c.Pools[0].Tenants = 0.4, 1.6, 8
	}},
	{Name: "long_outputs", Doc: "answers have five times as many tokens", Words: "output|answer|completion", plant: func(c *Config, vary *rand.Rand) {
		c.Pools = []Pool{small.of(2, 1.5)}
		c.Faults = []Fault{{Name: "long outputs", Server: All, At: since(c, vary), Size: 5}}
	}},
	{Name: "long_prompts", Doc: "prompts have four times as many tokens", Words: "prompts|prompt (tokens|length)", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "long prompts", Server: All, At: since(c, vary), Size: 4}}
	}},
	{Name: "cold_cache", Doc: "the prefix cache has nothing anymore; prompts are long", Words: "cache", plant: func(c *Config, vary *rand.Rand) {
		c.Pools[0].Cached, c.Pools[0].Prompt.Median = 0.45, 3000
		c.Faults = []Fault{{Name: "cold cache", Server: All, At: since(c, vary)}}
	}},
	{Name: "flood", Doc: "one of eight tenants sends many more requests", Words: "tenant-00", plant: func(c *Config, vary *rand.Rand) {
		c.Pools[0].Tenants = 8
		c.Faults = []Fault{{Name: "flood", Server: All, At: since(c, vary), Size: 45}}
	}},
	{Name: "burst_overload", Doc: "for 12 s many more requests arrive than the servers can carry", Words: "arriv|load|requests", plant: func(c *Config, vary *rand.Rand) {
		c.Length = 150 * time.Second
		c.Faults = []Fault{{Name: "burst", Server: All, At: since(c, vary), Every: 12 * time.Second, Size: 110}}
	}},
}

// ways are scenarios of what is between the clients and the schedulers.
var ways = []Scenario{
	{Name: "gateway_holds", Doc: "the gateway holds a quarter of the requests for 250 to 500 ms", Words: "gateway|router", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "gateway holds", Server: All, At: since(c, vary), Size: 0.25, Share: 0.25}}
	}},
	{Name: "slow_tokenizer", Doc: "the tokenizer process of one server is saturated: requests wait for it before their root begins", Words: "HOST.*okeniz|okeniz.*HOST", plant: func(c *Config, vary *rand.Rand) {
		c.Pools = []Pool{small.of(2, 3)}
		c.Faults = []Fault{{Name: "slow tokenizer", Server: vary.IntN(2), At: since(c, vary), Size: 180}}
	}},
	{Name: "slow_pair", Doc: "KV takes 0.4 s longer from one of two prefill servers to one of two decode servers", Words: "HOST", Stage: "transfer", plant: func(c *Config, vary *rand.Rand) {
		c.disaggregate(2, 3)
		c.Faults = []Fault{{Name: "slow pair", Server: vary.IntN(2), Other: 2 + vary.IntN(3), At: since(c, vary), Size: 0.4}}
	}},
	{Name: "clock_step", Doc: "the clock of a server's host is set by 1 s", Healthy: true, Says: "clock[^.]*(step|jump|set )|(step|jump)[^.]*clock", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "clock step", Server: vary.IntN(3), At: since(c, vary), Size: 1 - 2*float64(vary.IntN(2))}}
	}},
	{Name: "clock_step_pd", Doc: "the clock of a decode server's host is set by 1 s", Healthy: true, Says: "clock[^.]*(step|jump|set )|(step|jump)[^.]*clock", plant: func(c *Config, vary *rand.Rand) {
		c.disaggregate(1, 2)
		c.Faults = []Fault{{Name: "clock step", Server: 1 + vary.IntN(2), At: since(c, vary), Size: 1}}
	}},
	{Name: "clock_step_small", Doc: "the clock of a server's host is set back by 50 ms", Healthy: true, Says: "clock[^.]*(step|jump|set )|(step|jump)[^.]*clock", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "clock step", Server: vary.IntN(3), At: since(c, vary), Size: -0.05}}
	}},
}
