package cluster

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Scenario is a kind of run with something planted in it, and what there is to say about it.
type Scenario struct {
	Name, Doc string
	// Healthy tells that nothing deserves a warning.
	Healthy bool
	// Words is a regular expression for what one of the first two findings must say, besides
	// the place; empty is anything. In it, HOST is any of the places.
	Words string
	// Stage is the stage that is slower, or empty.
	Stage string
	// plant changes a healthy run; vary has numbers of the seed.
	plant func(c *Config, vary *rand.Rand)
}

// Scenarios are all of them.
var Scenarios = []Scenario{
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
	{Name: "deploy_8", Doc: "rolling deploy, drained; all steps take 8 % longer after it", Words: "deploy|restart|rose|longer|slower", Stage: "decode", plant: func(c *Config, _ *rand.Rand) {
		c.Length = 300 * time.Second
		c.Faults = []Fault{{Name: "rolling deploy", Server: All, At: 110 * time.Second, Every: 10 * time.Second, Size: 1.08}}
	}},
	{Name: "mixed_models", Doc: "servers of an 8B and a 70B model and of embeddings behind one gateway, with health checks", Healthy: true, plant: func(c *Config, _ *rand.Rand) {
		c.Pools, c.HealthEvery = []Pool{small.of(2, 1.5), large.of(2, 0.4), embedding.of(1, 6)}, 10*time.Second
	}},
	{Name: "hang_idle", Doc: "a scheduler hangs when it has nothing to do; what is sent to it later never ends", Words: "HOST", plant: func(c *Config, vary *rand.Rand) {
		c.Pools = []Pool{small.of(3, 0.7)}
		c.Faults = []Fault{{Name: "hang", Server: vary.IntN(3), At: 55 * time.Second}}
	}},
	{Name: "hang_busy", Doc: "a scheduler hangs in the middle of a step; what it has and gets never ends", Words: "HOST", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "hang", Server: vary.IntN(3), At: 70 * time.Second, Share: 1}}
	}},
	{Name: "hang_only", Doc: "the only scheduler hangs when it has nothing to do", Words: "HOST", plant: func(c *Config, _ *rand.Rand) {
		c.Pools = []Pool{small.of(1, 0.7)}
		c.Faults = []Fault{{Name: "hang", At: 60 * time.Second}}
	}},
	{Name: "death", Doc: "a server dies in the middle of its requests", Words: "HOST", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "death", Server: vary.IntN(3), At: 70 * time.Second}}
	}},
	{Name: "prefill_hang", Doc: "one of two prefill servers hangs; decode waits for its KV", Words: "HOST", plant: func(c *Config, vary *rand.Rand) {
		c.disaggregate(2, 2)
		c.Faults = []Fault{{Name: "hang", Server: vary.IntN(2), At: 60 * time.Second, Share: float64(vary.IntN(2))}}
	}},
	{Name: "prefill_death", Doc: "one of two prefill servers dies", Words: "HOST", plant: func(c *Config, vary *rand.Rand) {
		c.disaggregate(2, 2)
		c.Faults = []Fault{{Name: "death", Server: vary.IntN(2), At: 60 * time.Second}}
	}},
	{Name: "healthy_pd", Doc: "two prefill and two decode servers", Healthy: true, plant: func(c *Config, _ *rand.Rand) {
		c.disaggregate(2, 2)
	}},
}

// disaggregate makes prefill and decode servers of all.
func (c *Config) disaggregate(prefill, decode int) {
	p := small.of(decode, 1.5)
	p.Prefill = prefill
	c.Pools = []Pool{p}
}

// rolling restarts all servers one after the other.
func (c *Config) rolling(vary *rand.Rand, f Fault) {
	at := time.Duration(40+vary.IntN(10)) * time.Second
	for i := range c.Pools[0].Servers {
		f.Server, f.At = i, at
		c.Faults = append(c.Faults, f)
		at += f.Every + 20*time.Second
	}
}

// Find returns the scenario of a name, or nil.
func Find(name string) *Scenario {
	i := slices.IndexFunc(Scenarios, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &Scenarios[i]
}

// Config returns the run of a seed. Its trace level is that of every third seed.
func (s *Scenario) Config(seed uint64) Config {
	c := DefaultConfig(seed)
	c.Level = 1 + int(seed%3)
	s.plant(&c, c.stream(streamScenario, 0))
	return c
}
