package cluster

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Scenario is a kind of run with a planted fault, and the findings that it must lead to.
type Scenario struct {
	Name, Doc string
	// Healthy means that nothing deserves a warning.
	Healthy bool
	// Words is a regular expression that one of the first two findings must match, in addition to naming one of the places;
	// empty matches anything. In it, HOST stands for any of the places.
	Words string
	// Stage is the stage that is slower, or empty.
	Stage string
	// Says is a regular expression that the report must match somewhere; empty matches anything.
	Says string
	// Lead is the finding required from logs, records, and metrics without a dump.
	Lead Lead
	// plant changes a healthy run; vary provides random numbers of the seed.
	plant func(c *Config, vary *rand.Rand)
}

// disaggregate turns all servers into prefill and decode servers.
func (c *Config) disaggregate(prefill, decode int) {
	p := small.withServers(decode, 1.5)
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

// Scenarios are all scenarios.
var Scenarios = slices.Concat(lives, speeds, loads, ways)

// Find returns the scenario with a name, or nil.
func Find(name string) *Scenario {
	for _, list := range [][]Scenario{Scenarios, Evident} {
		if i := slices.IndexFunc(list, func(s Scenario) bool { return s.Name == name }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// Config returns the run for a seed: the trace level varies over three seeds, and one of five has servers with two TP
// ranks.
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

// gone matches findings about a server that hangs or dies.
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
		c.Pools, c.HealthEvery = []Pool{small.withServers(2, 1.5), large.withServers(2, 0.4), embedding.withServers(1, 6)}, 10*time.Second
	}},
	{Name: "hang_idle", Doc: "a scheduler hangs when it has nothing to do; what is sent to it later never ends", Words: gone, plant: func(c *Config, vary *rand.Rand) {
		c.Pools = []Pool{small.withServers(3, 0.7)}
		c.Faults = []Fault{{Name: "hang", Server: vary.IntN(3), At: 55 * time.Second}}
	}},
	{Name: "hang_busy", Doc: "a scheduler hangs in the middle of a step; what it has and gets never ends", Words: gone, plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "hang", Server: vary.IntN(3), At: 70 * time.Second, Share: 1}}
	}},
	{Name: "hang_only", Doc: "the only scheduler hangs when it has nothing to do", Words: gone, plant: func(c *Config, _ *rand.Rand) {
		c.Pools = []Pool{small.withServers(1, 0.7)}
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
		c.Pools, c.Length = []Pool{small.withServers(64, 0.4)}, 75*time.Second
	}},
	{Name: "slow_one_of_64", Doc: "one of 64 servers takes 30 % longer for all steps, all the time", Words: "HOST", plant: func(c *Config, vary *rand.Rand) {
		c.Pools, c.Length = []Pool{small.withServers(64, 0.4)}, 75*time.Second
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
		c.Pools = []Pool{small.withServers(2, 1.5), large.withServers(3, 0.5)}
		c.Faults = []Fault{{Name: "slow steps", Server: 2 + vary.IntN(3), Size: 1.35}}
	}},
}

// loads are scenarios of arrivals.
var loads = []Scenario{
	{Name: "daily_curve", Doc: "load sinks to a fifth and comes back", Healthy: true, plant: func(c *Config, _ *rand.Rand) {
		c.Length = 240 * time.Second
		c.Faults = []Fault{{Name: "wave", Server: All, Size: 0.8, Every: 240 * time.Second}}
	}},
	{Name: "night", Doc: "one request in ten seconds to each server", Healthy: true, plant: func(c *Config, _ *rand.Rand) {
		c.Pools, c.Length = []Pool{small.withServers(3, 0.1)}, 600*time.Second
	}},
	{Name: "small_burst", Doc: "twice the requests for ten seconds, which the servers can carry", Healthy: true, plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "burst", Server: All, At: since(c, vary), Every: 10 * time.Second, Size: 6}}
	}},
	{Name: "caches_and_drafts", Doc: "prefix caches, speculative decoding, and tenants", Healthy: true, plant: func(c *Config, _ *rand.Rand) {
		c.Pools[0].Cached, c.Pools[0].Accepted, c.Pools[0].Tenants = 0.4, 1.6, 8
	}},
	{Name: "long_outputs", Doc: "answers have five times as many tokens", Words: "output|answer|completion", plant: func(c *Config, vary *rand.Rand) {
		c.Pools = []Pool{small.withServers(2, 1.5)}
		c.Faults = []Fault{{Name: "long outputs", Server: All, At: since(c, vary), Size: 5}}
	}},
	{Name: "long_prompts", Doc: "prompts have four times as many tokens", Words: "prompts|prompt (tokens|length)", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "long prompts", Server: All, At: since(c, vary), Size: 4}}
	}},
	{Name: "cold_cache", Doc: "the prefix cache has nothing anymore; prompts are long", Words: "cache", plant: func(c *Config, vary *rand.Rand) {
		c.Pools[0].Cached, c.Pools[0].Prompt.Median = 0.45, 3000
		c.Faults = []Fault{{Name: "cold cache", Server: All, At: since(c, vary)}}
	}},
	{Name: "cold_cache_one", Doc: "the prefix cache of one of three servers has nothing anymore; prompts are long", Words: "HOST.*cached tokens|cached tokens.*HOST", plant: func(c *Config, vary *rand.Rand) {
		c.Pools[0].Cached, c.Pools[0].Prompt.Median = 0.45, 3000
		c.Faults = []Fault{{Name: "cold cache", Server: vary.IntN(3), At: since(c, vary)}}
	}},
	{Name: "flood", Doc: "one of eight tenants sends many more requests", Words: "tenant-00", plant: func(c *Config, vary *rand.Rand) {
		c.Pools[0].Tenants = 8
		c.Faults = []Fault{{Name: "flood", Server: All, At: since(c, vary), Size: 45}}
	}},
	{Name: "sticky_tenant", Doc: "one of eight tenants sends long prompts, all of them to one of three servers", Words: "HOST.*length of prompts.*tenant-00", plant: func(c *Config, vary *rand.Rand) {
		c.Pools[0].Tenants = 8
		c.Faults = []Fault{{Name: "sticky tenant", Server: vary.IntN(3), At: since(c, vary), Size: 0.8, Share: 0.7}}
	}},
	{Name: "burst_overload", Doc: "for 12 s many more requests arrive than the servers can carry", Words: "arriv|load|requests", plant: func(c *Config, vary *rand.Rand) {
		c.Length = 150 * time.Second
		c.Faults = []Fault{{Name: "burst", Server: All, At: since(c, vary), Every: 12 * time.Second, Size: 110}}
	}},
}

// ways are scenarios between the clients and the schedulers.
var ways = []Scenario{
	{Name: "gateway_holds", Doc: "the gateway holds a quarter of the requests for 250 to 500 ms", Words: "gateway|router", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "gateway holds", Server: All, At: since(c, vary), Size: 0.25, Share: 0.25}}
	}},
	{Name: "held_back", Doc: "a server holds a quarter of its requests back for 0.5 to 1 s, such as for grammars", Words: "HOST.*holds? .*back|HOST.*held .*back", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "held back", Server: vary.IntN(3), At: since(c, vary), Size: 0.5, Share: 0.25}}
	}},
	{Name: "held_back_all", Doc: "all servers hold their requests back for 0.2 to 0.4 s, such as for caches that are loaded", Words: "all 3 unified servers .*held .*back", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "held back", Server: All, At: since(c, vary), Size: 0.2, Share: 1}}
	}},
	{Name: "slow_tokenizer", Doc: "the tokenizer process of one server is saturated: requests wait for it before their root begins", Words: "HOST.*okeniz|okeniz.*HOST", plant: func(c *Config, vary *rand.Rand) {
		c.Pools = []Pool{small.withServers(2, 3)}
		c.Faults = []Fault{{Name: "slow tokenizer", Server: vary.IntN(2), At: since(c, vary), Size: 180}}
	}},
	{Name: "late_answers", Doc: "the answers of one server leave it 0.3 s after its scheduler is done", Words: "HOST.*answer|answer.*HOST", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "late answers", Server: vary.IntN(3), At: since(c, vary), Size: 0.3}}
	}},
	{Name: "late_answers_all", Doc: "the answers of all servers leave them 0.3 s after their schedulers are done", Words: "all 3 unified servers have answered late", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "late answers", Server: All, At: since(c, vary), Size: 0.3}}
	}},
	{Name: "slow_readers", Doc: "half of the clients read their answers for 0.5 to 1 s longer than the servers write them", Words: "answers.*(leave|gateway)|clients", plant: func(c *Config, vary *rand.Rand) {
		c.Faults = []Fault{{Name: "slow readers", Server: All, At: since(c, vary), Size: 0.5, Share: 0.5}}
	}},
	{Name: "slow_pair", Doc: "KV takes 0.4 s longer from one of two prefill servers to one of two decode servers", Words: "HOST", Stage: "transfer", plant: func(c *Config, vary *rand.Rand) {
		c.disaggregate(2, 3)
		c.Faults = []Fault{{Name: "slow pair", Server: vary.IntN(2), Other: 2 + vary.IntN(3), At: since(c, vary), Size: 0.4}}
	}},
	{Name: "slow_links", Doc: "KV takes 0.4 s longer on its way from all prefill servers", Words: "KV transfers take", Stage: "transfer", plant: func(c *Config, vary *rand.Rand) {
		c.disaggregate(2, 2)
		c.Faults = []Fault{{Name: "slow link", Server: All, At: since(c, vary), Size: 0.4}}
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

// since returns a time after about half of a run.
func since(c *Config, vary *rand.Rand) time.Duration {
	return time.Duration(float64(c.Length) * (0.4 + 0.2*vary.Float64())).Truncate(time.Millisecond)
}

// slower matches findings about slower steps.
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
		c.Length, c.Pools = 400*time.Second, []Pool{small.withServers(2, 1.5)}
		c.Faults = []Fault{{Name: "growth", Server: All, Size: 0.05}}
	}},
	{Name: "gradual_one", Doc: "decode steps of one server take 8 % longer with each minute", Words: "HOST", Stage: "decode", plant: func(c *Config, vary *rand.Rand) {
		c.Length, c.Pools = 400*time.Second, []Pool{small.withServers(2, 1.5)}
		c.Faults = []Fault{{Name: "growth", Server: vary.IntN(2), Size: 0.08}}
	}},
	{Name: "heating", Doc: "decode steps of one server take longer gradually for two minutes, by 40 % in the end, and stay like that", Words: "HOST.*gradually|gradually.*HOST", Stage: "decode", plant: func(c *Config, vary *rand.Rand) {
		c.Length = 400 * time.Second
		c.Faults = []Fault{{Name: "growth", Server: vary.IntN(3), At: since(c, vary), Size: 0.2, Share: 0.4}}
	}},
	{Name: "slow_for_a_while", Doc: "all steps of one server take twice as long for 50 s", Words: "HOST.*until", plant: func(c *Config, vary *rand.Rand) {
		c.Length = 180 * time.Second
		c.Faults = []Fault{{Name: "slow steps", Server: vary.IntN(3), At: 60 * time.Second, For: 50 * time.Second, Size: 2}}
	}},
	{Name: "stalls_60", Doc: "a step of one server takes 0.8 s longer every 60 s", Words: "HOST.*(every|period)|(every|period).*HOST", plant: func(c *Config, vary *rand.Rand) {
		c.Length = 400 * time.Second
		c.Faults = []Fault{{Name: "stalls", Server: vary.IntN(3), At: 20 * time.Second, Every: time.Minute, Size: 0.8}}
	}},
	{Name: "slow_every_40", Doc: "decode steps of one server take 80 % longer for 6 s every 40 s", Words: "HOST.*decode.*every 40|decode.*every 40.*HOST", Stage: "decode", plant: func(c *Config, vary *rand.Rand) {
		c.Length = 400 * time.Second
		c.Faults = []Fault{{Name: "slow decode", Server: vary.IntN(3), At: time.Duration(20+vary.IntN(15)) * time.Second, Every: 40 * time.Second, For: 6 * time.Second, Size: 1.8}}
	}},
	{Name: "stalls_60_all", Doc: "a step of every server takes 1 s longer every 60 s", Words: "every|period", plant: func(c *Config, _ *rand.Rand) {
		c.Length = 400 * time.Second
		c.Faults = []Fault{{Name: "stalls", Server: All, At: 20 * time.Second, Every: time.Minute, Size: 1}}
	}},
	{Name: "warm_up", Doc: "all servers take twice as long at first, which fades within a minute", Words: "warm|fell|first|until|faster", plant: func(c *Config, _ *rand.Rand) {
		c.Length = 240 * time.Second
		c.Faults = []Fault{{Name: "warm-up", Server: All, Size: 1, Every: 20 * time.Second}}
	}},
	// Only level 3 has the number of tokens of a step.
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
