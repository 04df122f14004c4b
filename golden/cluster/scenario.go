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
	// one of the places; empty is anything. In it, HOST is any of the places.
	Words string
	// Stage is the stage that is slower, or empty.
	Stage string
	// Says is a regular expression for what the report must say somewhere; empty is nothing.
	Says string
	// plant changes a healthy run; vary has numbers of the seed.
	plant func(c *Config, vary *rand.Rand)
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

// Scenarios are all of them.
var Scenarios = slices.Concat(lives, speeds, loads, ways)

// Find returns the scenario of a name, or nil.
func Find(name string) *Scenario {
	i := slices.IndexFunc(Scenarios, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &Scenarios[i]
}

// Config returns the run of a seed: of three seeds each has another trace level, and of five
// one has servers with two TP ranks.
func (s *Scenario) Config(seed uint64) Config {
	c := DefaultConfig(seed)
	c.Level = 1 + int(seed%3)
	s.plant(&c, c.stream(streamScenario, 0))
	if seed%5 == 2 {
		for i := range c.Pools {
			c.Pools[i].TP = 2
		}
	}
	return c
}
