package cluster

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Units of virtual time.
const (
	us     = int64(1_000)
	ms     = int64(1_000_000)
	second = int64(1_000_000_000)
)

// sim plays a Run: it is the clients, the gateway, and the network.
type sim struct {
	Agenda  simulator.Agenda
	run     *Run
	planned []*Request
	servers []*server
	next    map[turnKey]int // round robin
	holds   []func(q *Request) int64
	reads   []func(q *Request) int64              // extra time that clients need to read a response
	slowWay []func(from, to *server) int64        // KV transfers
	arrives []func(v *server, q *Request)         // on a server
	drafts  []func() float64                      // factors of the number accepted
	skews   []func(q *Request, k turnKey) *server // choose a server out of turn
	lots    *rand.Rand                            // for routers that draw at random
	retry   func(q *Request)                      // action of a client that gave up; nil if none
}

// turnKey is a set of servers that get requests in turn.
type turnKey struct {
	pool int
	role Role
}

// Play plays c. It fails only if c is invalid.
func Play(c Config) (*Run, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &Run{Config: c, Start: c.Start.UnixNano()}
	r.End = r.Start + int64(c.Length) + int64(c.Tail)
	s := &sim{run: r, next: map[turnKey]int{}, lots: c.stream(streamRouting, 0)}
	s.deploy()
	s.plan()
	for i := range c.Faults {
		f := &c.Faults[i]
		faults[f.Name].plant(s, f)
	}
	for _, q := range s.planned {
		s.Agenda.At(q.Arrival, func() { s.arrive(q) })
	}
	s.Agenda.PlayUntil(r.End)
	slices.SortStableFunc(r.Requests, func(a, b *Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return r, nil
}

// arrive takes a request to the gateway, or to where its client sends it.
func (s *sim) arrive(q *Request) {
	s.run.Requests = append(s.run.Requests, q)
	at := q.Arrival
	if s.run.Config.Gateway {
		q.Sent = at + q.draws.between(250*us, 450*us)
		for _, hold := range s.holds {
			q.Sent += hold(q)
		}
		at = q.Sent
	}
	if p := int64(s.run.Config.Patience); p > 0 {
		s.Agenda.At(q.Arrival+p, func() { s.giveUp(q) })
	}
	s.Agenda.At(at, func() { s.send(q) })
}

// send chooses servers for a request and sends it there.
func (s *sim) send(q *Request) {
	roles := []Role{Unified}
	if s.run.Config.Pools[q.Pool].Prefill > 0 {
		roles = []Role{Prefill, Decode}
	}
	jobs := make([]*job, len(roles))
	for i, role := range roles {
		v := s.pick(q, turnKey{q.Pool, role})
		if v == nil { // no server is up
			q.End, q.Outcome = s.Agenda.Now+ms, Broken
			return
		}
		jobs[i] = v.newJob(q)
	}
	s.deliver(q, jobs)
}

// deliver sends the jobs of a request to their servers.
func (s *sim) deliver(q *Request, jobs []*job) {
	for i, j := range jobs {
		j.peer = jobs[len(jobs)-1-i]
		s.Agenda.At(s.Agenda.Now+q.draws.between(150*us, 900*us), j.receive)
	}
}

// check sends a health check to a server, if it is up.
func (s *sim) check(q *Request, v *server) {
	if v.up {
		s.run.Requests = append(s.run.Requests, q)
		s.deliver(q, []*job{v.newJob(q)})
	}
}

// pick returns the server that gets a request, or nil.
func (s *sim) pick(q *Request, k turnKey) *server {
	for _, skewed := range s.skews {
		if v := skewed(q, k); v != nil && s.serves(v, k) {
			return v
		}
	}
	if s.run.Config.Routing == InTurn {
		for range s.servers {
			v := s.servers[s.next[k]%len(s.servers)]
			s.next[k]++
			if s.serves(v, k) {
				return v
			}
		}
		return nil
	}
	var best *server
	n := 0
	for _, v := range s.servers {
		if !s.serves(v, k) {
			continue
		}
		n++
		least := s.run.Config.Routing == MinLoaded
		if best == nil || least && len(v.jobs) < len(best.jobs) || !least && s.lots.IntN(n) == 0 {
			best = v
		}
	}
	return best
}

// serves reports whether a server takes requests of a turn.
func (s *sim) serves(v *server, k turnKey) bool {
	at := &s.run.Servers[v.index]
	return at.Pool == k.pool && at.Role == k.role && v.up && !v.draining
}

// giveUp is a client leaving, unless it has been answered.
func (s *sim) giveUp(q *Request) {
	if q.Outcome != Open || len(q.Halves) == 0 || q.answering().Finish != "" {
		return
	}
	for _, v := range s.servers {
		v.cancel(q)
	}
	if s.retry != nil {
		s.retry(q)
	}
}

// end records how a request ended for its user, once its answering half has ended.
func (s *sim) end(q *Request, at int64, how Outcome) {
	q.Outcome, q.End = how, at
	if s.run.Config.Gateway && !q.Health {
		q.End += q.draws.between(400*us, 700*us)
		for _, read := range s.reads {
			q.End += read(q)
		}
	}
}

// newJob makes the half of a request that v does.
func (v *server) newJob(q *Request) *job {
	h := &Half{Server: v.index, Life: len(v.sim.run.Servers[v.index].Lives) - 1, RID: simulator.HexDigits(q.draws.rng, 32)}
	q.Halves = append(q.Halves, h)
	for _, change := range v.sim.arrives {
		change(v, q)
	}
	j := &job{req: q, half: h, server: v, left: q.Prompt - q.Cached}
	v.jobs = append(v.jobs, j)
	return j
}
