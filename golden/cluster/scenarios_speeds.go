package cluster

import (
	"math/rand/v2"
	"time"
)

// since returns a time after about half of a run.
func since(c *Config, vary *rand.Rand) time.Duration {
	return time.Duration(float64(c.Length) * (0.4 + 0.2*vary.Float64())).Truncate(time.Millisecond)
}

// slower is for what a finding of slower steps may say.
const slower = "(decode|step|TPOT|ITL|token).*(rose|longer|slower|grow|gradual|drift|takes? [0-9.]+ ms)"

// speeds are scenarios of servers that become slower or faster.
var speeds = []Scenario{
	{Name: "all_slower_50", Doc: "decode steps of all servers take 50 % longer", Words: slower, Stage: "decode", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "slow decode", Server: All, At: since(c, vary), Size: 1.5}}
	}},
	{Name: "all_slower_10", Doc: "decode steps of all servers take 10 % longer", Words: slower, Stage: "decode", plant: func(c *Config, vary *rand.Rand) {
		c.Length = 180 * time.Second
		c.Faults = []Fault{{Name: "slow decode", Server: All, At: since(c, vary), Size: 1.1}}
	}},
	{Name: "one_slower_40", Doc: "decode steps of one server take 40 % longer", Words: "HOST", Stage: "decode", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "slow decode", Server: vary.IntN(3), At: since(c, vary), Size: 1.4}}
	}},
	{Name: "one_slower_always", Doc: "all steps of one server take 30 % longer, from the beginning on", Words: "HOST", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "slow steps", Server: vary.IntN(3), Size: 1.3}}
	}},
	{Name: "gradual_all", Doc: "decode steps of all servers take 5 % longer with each minute", Words: slower, Stage: "decode", plant: func(c *Config, _ *rand.Rand) {
		c.Length, c.Pools = 400*time.Second, []Pool{small.of(2, 1.5)}
		c.Faults = []Fault{{Name: "growth", Server: All, Size: 0.05}}
	}},
	{Name: "gradual_one", Doc: "decode steps of one server take 8 % longer with each minute", Words: "HOST", Stage: "decode", plant: func(c *Config, vary *rand.Rand) {
		c.Length, c.Pools = 400*time.Second, []Pool{small.of(2, 1.5)}
		c.Faults = []Fault{{Name: "growth", Server: vary.IntN(2), Size: 0.08}}
	}},
	{Name: "stalls_60", Doc: "a step of one server takes 0.8 s longer every 60 s", Words: "HOST.*(every|period)|(every|period).*HOST", plant: func(c *Config, vary *rand.Rand) {
		c.Length = 400 * time.Second
		c.Faults = []Fault{{Name: "stalls", Server: vary.IntN(3), At: 20 * time.Second, Every: time.Minute, Size: 0.8}}
	}},
	{Name: "stalls_60_all", Doc: "a step of every server takes 1 s longer every 60 s", Words: "every|period", plant: func(c *Config, _ *rand.Rand) {
		c.Length = 400 * time.Second
		c.Faults = []Fault{{Name: "stalls", Server: All, At: 20 * time.Second, Every: time.Minute, Size: 1}}
	}},
	{Name: "warm_up", Doc: "all servers take twice as long at first, which fades within a minute", Words: "warm|fell|first|until|faster", plant: func(c *Config, _ *rand.Rand) {
		c.Length = 240 * time.Second
		c.Faults = []Fault{{Name: "warm-up", Server: All, Size: 1, Every: 20 * time.Second}}
	}},
	// How many tokens a step has, only level 3 tells.
	{Name: "rejected_drafts", Doc: "a fifth of the drafts are accepted that were", Words: "draft|accept|tokens per (decode )?step|" + slower, Stage: "decode", plant: func(c *Config, vary *rand.Rand) {
		c.Pools[0].Accepted = 1.6
		c.Faults = []Fault{{Name: "rejected drafts", Server: All, At: since(c, vary), Share: 0.2}}
	}},
	{Name: "client_timeouts", Doc: "decode steps take 2.4 times as long; clients give up after 2.5 s", Words: slower, Stage: "decode", Says: "gave up|abort|cancel", plant: func(c *Config, vary *rand.Rand) {
		c.Patience, c.Length = 2500*time.Millisecond, 150*time.Second
		c.Faults = []Fault{{Name: "slow decode", Server: All, At: since(c, vary), Size: 2.4}}
	}},
	{Name: "client_retries", Doc: "decode steps take 2.4 times as long; clients give up after 2.5 s, and most ask again", Words: slower, Stage: "decode", Says: "gave up|abort|cancel", plant: func(c *Config, vary *rand.Rand) {
		c.Patience, c.Length = 2500*time.Millisecond, 150*time.Second
		c.Faults = []Fault{{Name: "slow decode", Server: All, At: since(c, vary), Size: 2.4}, {Name: "retries", Server: All, Share: 0.7, Every: 200 * time.Millisecond}}
	}},
	{Name: "slower_for_a_while", Doc: "decode steps of all servers take 60 % longer for 30 s", Words: slower, Stage: "decode", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "slow decode", Server: All, At: since(c, vary), Size: 1.6, For: 30 * time.Second}}
	}},
}
