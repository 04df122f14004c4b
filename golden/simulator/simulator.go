package simulator

import (
	"fmt"
	"math/rand/v2"
)

// Units of virtual time.
const (
	us = int64(1_000)
	ms = int64(1_000_000)
)

// Streams of random numbers: each use of a seed has its own, so that an additional draw in one place does not change
// another.
const (
	streamDeploy = iota + 1
	streamWorkload
	streamService
	StreamIDs
	streamBatch
	StreamTorch
	StreamTorchGroup
	streamStraggler
)

// sim plays a Run. It is also the network between the tokenizer and the engines, which takes a little time.
type sim struct {
	Agenda  Agenda
	run     *Run
	rng     *rand.Rand
	engines [][]*engine // by instance, then DP rank
	next    []int       // by instance: the DP rank whose turn it is
	owed    float64     // fraction of a request owed to the preferred DP rank
	// linkFree is when the link between the servers has carried all KV caches so far.
	linkFree int64
}

// Play plays the deployment that c describes. It fails only if c is invalid.
func Play(c Config) (*Run, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &Run{Config: c}
	r.deploy(rand.New(rand.NewPCG(c.Seed, streamDeploy)))
	r.plan(rand.New(rand.NewPCG(c.Seed, streamWorkload)))
	r.setClocks(r.Requests[0].Arrival)

	s := &sim{run: r, rng: rand.New(rand.NewPCG(c.Seed, streamService+c.Luck<<8)), next: make([]int, len(r.Instances))}
	for i := range r.Instances {
		replicas := make([]*engine, r.Instances[i].Size.DP)
		for dp := range replicas {
			replicas[dp] = newEngine(s, i, dp)
		}
		s.engines = append(s.engines, replicas)
	}
	for _, q := range r.Requests {
		s.Agenda.At(q.Arrival, func() { s.arrive(q) })
	}
	s.Agenda.Play()

	for i, q := range r.Requests {
		if q.Outcome == "" && !c.Hang.AtOnset {
			return nil, fmt.Errorf("simulator: request %d never ended", i)
		}
	}
	return r, nil
}

// between returns a random duration in [lo, hi).
func (s *sim) between(lo, hi int64) int64 { return lo + s.rng.Int64N(hi-lo) }

// arrive sends a request to its instances: the gateway talks to the prefill
// server first, and to the decode server over another connection.
func (s *sim) arrive(q *Request) {
	at := q.Arrival
	if s.run.Config.Mode == PDGateway {
		q.Sent = at + s.between(200*us, 550*us)
		at = q.Sent + s.between(200*us, 1100*us)
	}
	jobs := make([]*job, len(q.Halves))
	for i, h := range q.Halves {
		jobs[i] = &job{req: q, half: h, role: s.run.Instances[h.Instance].Role, computed: q.Cached}
		h.Received = at
		at += s.between(300*us, 3*ms)
	}
	for i, j := range jobs {
		j.peer = jobs[len(jobs)-1-i]
		s.tokenize(j)
	}
	if q.patience > 0 {
		leaves := q.Arrival + q.patience
		for _, h := range q.Halves { // by then, it has been sent to the schedulers
			leaves = max(leaves, h.Dispatched+ms)
		}
		s.Agenda.At(leaves, func() { s.leave(q, jobs) })
	}
}

// tokenize takes a job through the tokenizer process.
func (s *sim) tokenize(j *job) {
	h := j.half
	h.tokenized = h.Received + s.between(250*us, 750*us) + int64(j.req.Prompt)*400
	if j.req.held {
		h.tokenized += int64(s.run.Config.TenantDelay)
	}
	h.dispatching = h.tokenized + s.between(30*us, 80*us)
	h.Dispatched = h.dispatching + s.between(80*us, 310*us)
	s.Agenda.At(h.Dispatched, func() { s.route(j) })
}

// route takes a job through the DP controller to an engine.
func (s *sim) route(j *job) {
	h := j.half
	in := &s.run.Instances[h.Instance]
	sent := h.Dispatched
	if in.controller >= 0 {
		h.dp = s.pick(h.Instance, j.req.Arrival)
		h.controlled = sent + s.between(50*us, 110*us)
		h.forwarded = h.controlled + s.between(60*us, 110*us)
		sent = h.forwarded
	}
	j.engine = s.engines[h.Instance][h.dp]
	j.engine.post(sent+s.between(60*us, 150*us), j.admit)
}

// pick chooses a DP rank: one after the other, but from the incident on, the preferred rank gets its share first. Shares
// are met exactly, not drawn, so that even a short run has them.
func (s *sim) pick(instance int, arrival int64) int {
	in := s.run.Config.Incident
	size := s.run.Instances[instance].Size.DP
	prefer := instance == len(s.run.Instances)-1 && s.run.balanced() && arrival >= s.run.Onset
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

// leave is an impatient client leaving. Each scheduler hears of it a little later, and drops the request if it is still
// queued.
func (s *sim) leave(q *Request, jobs []*job) {
	if q.answering().FirstToken != 0 || q.Outcome != "" {
		return
	}
	q.left = s.Agenda.Now
	for _, j := range jobs {
		j.engine.post(s.Agenda.Now+s.between(300*us, ms), j.cancel)
	}
}

// end records how a request ended for its user, once its answering half has ended.
func (s *sim) end(q *Request, how Outcome) {
	q.Outcome = how
	q.End = q.answering().End
	if s.run.Config.Mode != PDGateway {
		return
	}
	switch how {
	case ClientGone:
		q.End = q.left
		return
	case TransferFailed:
		q.Headers = q.End + s.between(200*us, 400*us)
	default:
		q.Headers = max(q.Halves[0].End, q.answering().FirstToken) + s.between(200*us, 400*us)
	}
	q.End = max(q.End+s.between(500*us, 800*us), q.Headers+s.between(100*us, 300*us))
}
