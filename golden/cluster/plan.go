package cluster

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Streams of random numbers: each use of a seed has its own.
const (
	streamDeploy = iota + 1
	streamArrivals
	streamRequest
	streamServer
	streamFault
	streamIDs
	streamScenario
	streamRouting
	streamScrapes
	streamGPU
	streamEvidence
	streamHost
)

// Requests added by a fault are numbered from these numbers on.
const (
	firstHealth = 1 << 21
	firstFlood  = 1 << 22
	firstRetry  = 1 << 23
)

// firstTenant is the tenant that floods.
const firstTenant = "tenant-00"

func (c *Config) stream(use, number int) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, uint64(use)|uint64(number)<<8))
}

// draws are the random numbers of a request besides its lengths: numbers from 0 to 1 for its path, and a stream for the
// drafts that its steps accept and for faults.
type draws struct {
	way  [12]float64
	next int
	rng  *rand.Rand
}

// between returns the request's next random duration in [lo, hi).
func (d *draws) between(lo, hi int64) int64 {
	u := d.way[d.next%len(d.way)]
	d.next++
	return lo + int64(u*float64(hi-lo))
}

// deploy lays out hosts, servers, and their first processes.
func (s *sim) deploy() {
	rng := s.run.Config.stream(streamDeploy, 0)
	s.addHost(rng, 0)
	s.addProcess(Process{Host: 0, TP: -1, DP: -1, Label: "smg"})
	for i, p := range s.run.Config.Pools {
		for n := range p.Prefill + p.Servers {
			role := Unified
			if p.Prefill > 0 {
				role = Decode
				if n < p.Prefill {
					role = Prefill
				}
			}
			skew := int64((2*rng.Float64() - 1) * float64(s.run.Config.ClockSkew))
			host := s.addHost(rng, skew)
			for dp := range p.DP {
				at := len(s.run.Servers)
				if p.DP == 1 {
					dp = -1
				}
				node, gpu := s.freeMachine(p.TP)
				s.run.Servers = append(s.run.Servers, Server{Pool: i, Host: host, DP: dp, Role: role, Node: node, GPU: gpu})
				v := &server{sim: s, index: at, pool: &s.run.Config.Pools[i], role: role, rng: s.run.Config.stream(streamServer, at), slow: 1, hope: firstHope}
				s.servers = append(s.servers, v)
				if v.front = v; dp > 0 {
					v.front = s.servers[at-dp]
				}
				v.start(s.run.Start, 4000+rng.IntN(56_000))
			}
		}
	}
}

// gpusOfNode is how many GPUs a machine has.
const gpusOfNode = 8

// freeMachine finds a machine with this many free GPUs: the last one, or a new one.
func (s *sim) freeMachine(gpus int) (node, gpu int) {
	if n := len(s.run.Servers); n > 0 {
		last := &s.run.Servers[n-1]
		node, gpu = last.Node, last.GPU+s.run.Config.Pools[last.Pool].TP
	}
	if gpu+gpus > gpusOfNode {
		node, gpu = node+1, 0
	}
	return node, gpu
}

func (s *sim) addHost(rng *rand.Rand, skew int64) int {
	n := len(s.run.Hosts)
	s.run.Hosts = append(s.run.Hosts, Host{
		ID: simulator.HexDigits(rng, 32), Address: fmt.Sprintf("10.2.%d.%d", (10+n)>>8, (10+n)&0xff), Clock: Clock{Skew: skew},
	})
	return n
}

func (s *sim) addProcess(p Process) int {
	s.run.Processes = append(s.run.Processes, p)
	return len(s.run.Processes) - 1
}

// plan draws the requests of all pools, and the health checks.
func (s *sim) plan() {
	c := &s.run.Config
	for i, p := range c.Pools {
		rng := c.stream(streamArrivals, i)
		at := s.run.Start
		for n := 0; ; n++ {
			if at += int64(rng.ExpFloat64() / p.Rate * 1e9); at >= s.run.Start+int64(c.Length) {
				break
			}
			s.planned = append(s.planned, s.request(i, n*len(c.Pools)+i, at))
		}
	}
	slices.SortStableFunc(s.planned, func(a, b *Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
	if c.HealthEvery > 0 {
		s.planHealth()
	}
}

// planHealth schedules the health checks of all servers.
func (s *sim) planHealth() {
	c := &s.run.Config
	number := firstHealth
	for at := s.run.Start; at < s.run.Start+int64(c.Length); at += int64(c.HealthEvery) {
		for _, v := range s.servers {
			q := s.request(s.run.Servers[v.index].Pool, number, at+int64(v.index)*int64(100*ms))
			number++
			q.Health, q.Prompt, q.Cached, q.Output, q.MaxTokens, q.Stop = true, 1, 0, 1, 1, "length"
			if v.role == Unified {
				s.Agenda.At(q.Arrival, func() { s.check(q, v) })
			}
		}
	}
}

// request draws one request.
func (s *sim) request(pool, number int, at int64) *Request {
	c := &s.run.Config
	p := &c.Pools[pool]
	rng := c.stream(streamRequest, number)
	q := &Request{
		Number: number, Pool: pool, Arrival: at, ID: "chatcmpl-" + simulator.HexDigits(rng, 24),
		Prompt: p.Prompt.Draw(rng), Output: p.Output.Draw(rng), MaxTokens: 1024, Stop: "stop",
		Room: 1 + rng.Uint64N(1<<63-1),
	}
	if rng.IntN(4) == 0 || p.Embedding || q.Output >= 1024 {
		q.Stop, q.MaxTokens = "length", q.Output
	}
	tenant, cached := rng.IntN(max(1, p.Tenants)), rng.Float64()
	if p.Tenants > 0 {
		q.Tenant = fmt.Sprintf("tenant-%02d", tenant)
	}
	q.Cached = int(2 * p.Cached * cached * float64(q.Prompt-1))
	for i := range q.draws.way {
		q.draws.way[i] = rng.Float64()
	}
	q.draws.rng = rng
	return q
}
