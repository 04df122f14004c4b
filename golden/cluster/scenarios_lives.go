package cluster

import (
	"math/rand/v2"
	"time"
)

// gone is for what a finding of a server that hangs or dies may say.
const gone = "die[sd]|dead|death|silent|stop|crash|gone|never|answer|hang|hung|restart"

// lives are scenarios of servers that come and go, and of different ones side by side.
var lives = []Scenario{
	{Name: "healthy", Doc: "three servers of one model, nothing else", Healthy: true, plant: func(*Config, *rand.Rand) {}},
	{Name: "rolling_restart", Doc: "servers restart one after the other, drained, with other pids", Healthy: true, plant: func(c *Config, vary *rand.Rand) {
		c.Length = 200 * time.Second
		c.rolling(vary, Fault{Name: "restart", Every: 20 * time.Second})
	}},
	{Name: "rolling_restart_same_pid", Doc: "servers restart one after the other, drained, with the pids that they had: containers", Healthy: true, plant: func(c *Config, vary *rand.Rand) {
		c.Length = 200 * time.Second
		c.rolling(vary, Fault{Name: "restart", Every: 20 * time.Second, Share: 1})
	}},
	{Name: "deploy_no_effect", Doc: "rolling deploy, drained; nothing changes by it", Healthy: true, plant: func(c *Config, _ *rand.Rand) {
		c.Length = 240 * time.Second
		c.Faults = []Fault{{Name: "rolling deploy", Server: All, At: 80 * time.Second, Every: 15 * time.Second}}
	}},
	{Name: "deploy_8", Doc: "rolling deploy, drained; all steps take 8 % longer after it", Words: slower + "|deploy", Stage: "decode", plant: func(c *Config, _ *rand.Rand) {
		c.Length = 300 * time.Second
		c.Faults = []Fault{{Name: "rolling deploy", Server: All, At: 110 * time.Second, Every: 10 * time.Second, Size: 1.08}}
	}},
	{Name: "mixed_models", Doc: "servers of an 8B and a 70B model and of embeddings behind one gateway, with health checks", Healthy: true, plant: func(c *Config, _ *rand.Rand) {
		c.Pools, c.HealthEvery = []Pool{small.of(2, 1.5), large.of(2, 0.4), embedding.of(1, 6)}, 10*time.Second
	}},
	{Name: "hang_idle", Doc: "a scheduler hangs when it has nothing to do; what is sent to it later never ends", Words: gone, plant: func(c *Config, vary *rand.Rand) {
		c.Pools = []Pool{small.of(3, 0.7)}
		c.Faults = []Fault{{Name: "hang", Server: vary.IntN(3), At: 55 * time.Second}}
	}},
	{Name: "hang_busy", Doc: "a scheduler hangs in the middle of a step; what it has and gets never ends", Words: gone, plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "hang", Server: vary.IntN(3), At: 70 * time.Second, Share: 1}}
	}},
	{Name: "hang_only", Doc: "the only scheduler hangs when it has nothing to do", Words: gone, plant: func(c *Config, _ *rand.Rand) {
		c.Pools = []Pool{small.of(1, 0.7)}
		c.Faults = []Fault{{Name: "hang", At: 60 * time.Second}}
	}},
	{Name: "death", Doc: "a server dies in the middle of its requests", Words: gone, plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "death", Server: vary.IntN(3), At: 70 * time.Second}}
	}},
	{Name: "prefill_hang", Doc: "one of two prefill servers hangs; decode waits for its KV", Words: gone, plant: func(c *Config, vary *rand.Rand) {
		c.disaggregate(2, 2)
		c.Faults = []Fault{{Name: "hang", Server: vary.IntN(2), At: 60 * time.Second, Share: float64(vary.IntN(2))}}
	}},
	{Name: "prefill_death", Doc: "one of two prefill servers dies", Words: gone, plant: func(c *Config, vary *rand.Rand) {
		c.disaggregate(2, 2)
		c.Faults = []Fault{{Name: "death", Server: vary.IntN(2), At: 60 * time.Second}}
	}},
	{Name: "healthy_pd", Doc: "two prefill and two decode servers", Healthy: true, plant: func(c *Config, _ *rand.Rand) {
		c.disaggregate(2, 2)
	}},
	{Name: "healthy_direct", Doc: "three servers without a gateway", Healthy: true, plant: func(c *Config, _ *rand.Rand) {
		c.Gateway = false
	}},
	{Name: "healthy_64", Doc: "64 servers", Healthy: true, plant: func(c *Config, _ *rand.Rand) {
		c.Pools, c.Length = []Pool{small.of(64, 0.4)}, 75*time.Second
	}},
	{Name: "slow_one_of_64", Doc: "one of 64 servers takes 30 % longer for all steps, all the time", Words: "HOST", plant: func(c *Config, vary *rand.Rand) {
		c.Pools, c.Length = []Pool{small.of(64, 0.4)}, 75*time.Second
		c.Faults = []Fault{{Name: "slow steps", Server: vary.IntN(64), Size: 1.3}}
	}},
	{Name: "hang_direct", Doc: "a scheduler hangs in the middle of a step; no gateway", Words: gone, plant: func(c *Config, vary *rand.Rand) {
		c.Gateway = false
		c.Faults = []Fault{{Name: "hang", Server: vary.IntN(3), At: 70 * time.Second, Share: 1}}
	}},
	{Name: "death_direct", Doc: "a server dies in the middle of its requests; no gateway", Words: gone, plant: func(c *Config, vary *rand.Rand) {
		c.Gateway = false
		c.Faults = []Fault{{Name: "death", Server: vary.IntN(3), At: 70 * time.Second}}
	}},
	{Name: "flapping", Doc: "a server dies three times and comes back", Words: gone, plant: func(c *Config, vary *rand.Rand) {
		server := vary.IntN(3)
		for i := range 3 {
			c.Faults = append(c.Faults, Fault{Name: "death", Server: server, At: time.Duration(30+25*i) * time.Second, Every: 8 * time.Second})
		}
	}},
	{Name: "canary_15", Doc: "one of three servers restarts, and its steps take 15 % longer then", Words: slower, Stage: "decode", plant: func(c *Config, vary *rand.Rand) {
		c.Length = 240 * time.Second
		c.Faults = []Fault{{Name: "restart", Server: vary.IntN(3), At: 100 * time.Second, Every: 12 * time.Second, Size: 1.15}}
	}},
	{Name: "mixed_one_slower", Doc: "of servers of two models, one of the larger one takes 35 % longer for all steps", Words: "HOST", plant: func(c *Config, vary *rand.Rand) {
		c.Pools = []Pool{small.of(2, 1.5), large.of(3, 0.5)}
		c.Faults = []Fault{{Name: "slow steps", Server: 2 + vary.IntN(3), Size: 1.35}}
	}},
}
