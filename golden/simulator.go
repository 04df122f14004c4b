package golden

import (
	"fmt"
	"math/rand/v2"
)

// Units of virtual time.
const (
	us = int64(1_000)
	ms = int64(1_000_000)
)

// Streams of random numbers: each use of a seed has its own, so that a draw more
// in one place does not change another.
const (
	streamDeploy = iota + 1
	streamWorkload
	streamService
	streamIDs
	streamBatch
	streamTorch
	streamTorchGroup
)

// sim plays a Run. Between the tokenizer and the engines it is the network: what
// crosses it takes a little time.
type sim struct {
	agenda
	run     *Run
	rng     *rand.Rand
	engines [][]*engine // by instance, then DP rank
	next    []int       // by instance: DP rank whose turn it is
	owed    float64     // part of a request that the preferred DP rank is owed
}

// Simulate plays the deployment that c describes. It fails only if c does not
// make sense.
func Simulate(c Config) (*Run, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &Run{config: c}
	r.deploy(rand.New(rand.NewPCG(c.Seed, streamDeploy)))
	r.plan(rand.New(rand.NewPCG(c.Seed, streamWorkload)))
	r.setClocks(r.requests[0].arrival)

	s := &sim{run: r, rng: rand.New(rand.NewPCG(c.Seed, streamService)), next: make([]int, len(r.instances))}
	for i := range r.instances {
		replicas := make([]*engine, r.instances[i].size.DP)
		for dp := range replicas {
			replicas[dp] = newEngine(s, i, dp)
		}
		s.engines = append(s.engines, replicas)
	}
	for _, q := range r.requests {
		s.at(q.arrival, func() { s.arrive(q) })
	}
	s.play()

	for i, q := range r.requests {
		if q.outcome == "" {
			return nil, fmt.Errorf("golden: request %d never ended", i)
		}
	}
	return r, nil
}

// between returns a random duration in [lo, hi).
func (s *sim) between(lo, hi int64) int64 { return lo + s.rng.Int64N(hi-lo) }

// arrive sends a request to its instances: the gateway talks to the prefill
// server first, and to the decode server over another connection.
func (s *sim) arrive(q *request) {
	at := q.arrival
	if s.run.config.Mode == PDGateway {
		q.sent = at + s.between(200*us, 550*us)
		at = q.sent + s.between(200*us, 1100*us)
	}
	jobs := make([]*job, len(q.halves))
	for i, h := range q.halves {
		jobs[i] = &job{req: q, half: h, role: s.run.instances[h.instance].role}
		h.received = at
		at += s.between(300*us, 3*ms)
	}
	for i, j := range jobs {
		j.peer = jobs[len(jobs)-1-i]
		s.tokenize(j)
	}
	if q.patience > 0 {
		leaves := q.arrival + q.patience
		for _, h := range q.halves { // by then the schedulers have been sent it
			leaves = max(leaves, h.dispatched+ms)
		}
		s.at(leaves, func() { s.leave(q, jobs) })
	}
}

// tokenize takes a job through the tokenizer process.
func (s *sim) tokenize(j *job) {
	h := j.half
	h.tokenized = h.received + s.between(250*us, 750*us) + int64(j.req.prompt)*400
	h.dispatching = h.tokenized + s.between(30*us, 80*us)
	h.dispatched = h.dispatching + s.between(80*us, 310*us)
	s.at(h.dispatched, func() { s.route(j) })
}

// route takes a job through the DP controller to an engine.
func (s *sim) route(j *job) {
	h := j.half
	in := &s.run.instances[h.instance]
	sent := h.dispatched
	if in.controller >= 0 {
		h.dp = s.pick(h.instance, j.req.arrival)
		h.controlled = sent + s.between(50*us, 110*us)
		h.forwarded = h.controlled + s.between(60*us, 110*us)
		sent = h.forwarded
	}
	j.engine = s.engines[h.instance][h.dp]
	j.engine.post(sent+s.between(60*us, 150*us), j.admit)
}

// pick chooses a DP rank: one after the other, but from the incident on the
// preferred rank gets its share first. Shares are paid exactly, not drawn, so
// that a short run has them too.
func (s *sim) pick(instance int, arrival int64) int {
	in := s.run.config.Incident
	size := s.run.instances[instance].size.DP
	prefer := instance == len(s.run.instances)-1 && s.run.balanced() && arrival >= s.run.onset
	if prefer {
		if s.owed += in.DPShare; s.owed >= 1 {
			s.owed--
			return in.DPRank
		}
	}
	dp := s.next[instance]
	if prefer && dp == in.DPRank && in.DPShare < 1 {
		dp = (dp + 1) % size
	}
	s.next[instance] = (dp + 1) % size
	return dp
}

// leave is an impatient client going away. Each scheduler hears of it a little
// later, and drops the request if it is still queued.
func (s *sim) leave(q *request, jobs []*job) {
	if q.answering().firstToken != 0 || q.outcome != "" {
		return
	}
	q.left = s.now
	for _, j := range jobs {
		j.engine.post(s.now+s.between(300*us, ms), j.cancel)
	}
}

// end records how a request ended for its user, once its answering half has.
func (s *sim) end(q *request, how outcome) {
	q.outcome = how
	q.end = q.answering().end
	if s.run.config.Mode != PDGateway {
		return
	}
	switch how {
	case clientGone:
		q.end = q.left
		return
	case transferFailed:
		q.headers = q.end + s.between(200*us, 400*us)
	default:
		q.headers = max(q.halves[0].end, q.answering().firstToken) + s.between(200*us, 400*us)
	}
	q.end = max(q.end+s.between(500*us, 800*us), q.headers+s.between(100*us, 300*us))
}
