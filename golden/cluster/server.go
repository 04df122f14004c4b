package cluster

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// The variation of steps, and the frequency and duration of a server's hiccups.
const (
	stepNoise = 0.03
	hiccups   = 5000 // one in this many steps
	hiccupMin = 10 * ms
	hiccupMax = 50 * ms
	tpSpread  = 4 * us
)

// server is a running server: a tokenizer that takes requests one after the other, and a scheduler that prefills whenever a
// request waits and the KV cache has room, and otherwise decodes. If there are several DP ranks, each of them is a server,
// with the tokenizer of the front.
type server struct {
	sim   *sim
	index int
	pool  *Pool
	role  Role
	rng   *rand.Rand
	front *server

	up, draining bool
	hung         bool
	hangsIdle    bool    // it will hang when it is idle
	jobs         []*job  // of its current life, not ended
	tokenizing   int64   // until when the tokenizer is busy
	slow         float64 // factor of tokenizing
	sending      int64   // until when its link is busy
	late         int64   // additional ns from the last step until the response is sent

	busy      bool
	inbox     []*job // not yet taken by the scheduler, between two steps
	waiting   []*job
	running   []*job
	prealloc  []*job  // on a decode server: waiting for room in the KV cache
	retracted []*job  // on a decode server: retracted from the batch
	held      int     // tokens in the KV cache
	hope      float64 // share of the remaining tokens of running requests for which room is kept
	pace      []func(at int64, decode bool) float64
	pauses    []func(at int64) int64
	delays    []func(q *Request) int64 // for how long the scheduler holds back a request
	drained   func()

	steps, given int // decode steps, and tokens since the last log line, which was at given0
	given0       int64
}

// start begins a life of v, with processes from a pid on.
func (v *server) start(at int64, pid int) {
	s := v.sim
	host := s.run.Servers[v.index].Host
	name, tokenizer := "Scheduler", "Tokenizer"
	switch v.role {
	case Prefill:
		name, tokenizer = "Prefill Scheduler", "PrefillTokenizer"
	case Decode:
		name, tokenizer = "Decode Scheduler", "DecodeTokenizer"
	}
	l := Life{From: at}
	if v.front == v {
		l.Tokenizer = s.addProcess(Process{Host: host, TP: -1, DP: -1, PID: pid, Label: tokenizer})
	} else {
		l.Tokenizer = v.front.life().Tokenizer
	}
	dp := s.run.Servers[v.index].DP
	for tp := range v.pool.TP {
		l.Schedulers = append(l.Schedulers, s.addProcess(Process{Host: host, TP: max(0, dp)*v.pool.TP + tp, DP: dp, PID: pid + 100 + 67*tp, Label: name}))
	}
	s.run.Servers[v.index].Lives = append(s.run.Servers[v.index].Lives, l)
	v.up, v.draining, v.hung, v.busy, v.tokenizing = true, false, false, false, 0
}

func (v *server) life() *Life {
	lives := v.sim.run.Servers[v.index].Lives
	return &lives[len(lives)-1]
}

// stop ends the life of v. Unfinished work is never done.
func (v *server) stop() {
	v.up, v.busy = false, false
	v.life().To = v.sim.Agenda.Now
	v.inbox, v.waiting, v.running, v.jobs = nil, nil, nil, nil
	v.prealloc, v.retracted, v.held = nil, nil, 0
}

// die ends the life of v in the middle of its work: clients and gateway see the connections break, and other servers wait.
func (v *server) die() {
	open := v.jobs
	v.stop()
	l := v.life()
	for _, p := range append(slices.Clone(l.Schedulers), l.Tokenizer) {
		v.sim.run.Processes[p].Killed = v.sim.Agenda.Now
	}
	for _, j := range open {
		if j.req.Outcome == Open {
			v.sim.end(j.req, v.sim.Agenda.Now+2*ms, Broken)
		}
	}
}

// drain stops sending requests to v, and calls then when v has finished those that it has.
func (v *server) drain(then func()) {
	v.draining, v.drained = true, then
	v.doWhenIdle()
}

// doWhenIdle runs what waits for v to be idle.
func (v *server) doWhenIdle() {
	if len(v.jobs) > 0 {
		return
	}
	if v.hangsIdle {
		v.hang()
	}
	if v.draining && v.drained != nil {
		then := v.drained
		v.drained = nil
		then()
	}
}

func (v *server) hang() {
	v.hung, v.hangsIdle = true, false
	v.life().Hung = v.sim.Agenda.Now
}

// forget removes a job that has ended, or never will, from everything.
func (v *server) forget(j *job) {
	j.over = true
	j.release()
	is := func(other *job) bool { return other == j }
	for _, list := range []*[]*job{&v.jobs, &v.inbox, &v.waiting, &v.running, &v.prealloc, &v.retracted} {
		*list = slices.DeleteFunc(*list, is)
	}
	v.preallocate()
	if len(v.waiting) > 0 {
		v.wake()
	}
	v.doWhenIdle()
}

// post is a job coming to the scheduler.
func (v *server) post(j *job) {
	v.inbox = append(v.inbox, j)
	v.wake()
}

// enqueue puts a job that can be computed into the queue, once nothing holds it back.
func (v *server) enqueue(j *job) {
	held := int64(0)
	for _, f := range v.delays {
		held += f(j.req)
	}
	if held == 0 {
		v.waiting = append(v.waiting, j)
		v.wake()
		return
	}
	j.at(v.sim.Agenda.Now+held, func() {
		v.waiting = append(v.waiting, j)
		v.wake()
	})
}

// wake begins a step, unless one is running.
func (v *server) wake() {
	if !v.busy {
		v.busy = true
		v.soon(60*us, v.iterate)
	}
}

// soon schedules do, unless v ends its life or hangs before.
func (v *server) soon(t int64, do func()) {
	life := len(v.sim.run.Servers[v.index].Lives)
	v.sim.Agenda.At(v.sim.Agenda.Now+t, func() {
		if v.up && !v.hung && life == len(v.sim.run.Servers[v.index].Lives) {
			do()
		}
	})
}

// iterate is one round of the scheduler: it takes what has arrived, and then does a step.
func (v *server) iterate() {
	took := int64(0)
	for _, j := range v.inbox {
		took += j.admit(v.sim.Agenda.Now + took)
	}
	v.inbox = v.inbox[:0]
	v.soon(took, v.step)
}

func (v *server) step() {
	if v.role == Decode {
		v.preallocate()
		v.join()
	} else if batch := v.formPrefill(); len(batch) > 0 {
		v.prefill(batch)
		return
	}
	if v.busy = len(v.running) > 0; v.busy {
		v.decode()
	} else if len(v.inbox) > 0 {
		v.wake()
	}
}

// takes returns the duration of a step that begins now.
func (v *server) takes(base float64, decode bool) int64 {
	t := base * (1 + stepNoise*v.rng.NormFloat64())
	hiccup, length := v.rng.IntN(hiccups) == 0, v.rng.Int64N(hiccupMax-hiccupMin)
	for _, f := range v.pace {
		t *= f(v.sim.Agenda.Now, decode)
	}
	for _, f := range v.pauses {
		t += float64(f(v.sim.Agenda.Now))
	}
	if hiccup {
		t += float64(hiccupMin + length)
	}
	return max(int64(t), 100*us)
}

// after calls then when a step of v has ended, and continues.
func (v *server) after(t int64, then func()) {
	v.soon(t, func() {
		then()
		v.soon(0, v.iterate)
	})
}

// portion is the part of a job that a prefill step computes.
type portion struct {
	job    *job
	tokens int
}

// formPrefill takes waiting jobs, first come first served, until the chunk is full.
func (v *server) formPrefill() (batch []portion) {
	budget := v.pool.Chunk
	for len(v.waiting) > 0 && budget > 0 && len(v.running)+len(batch) < v.pool.Batch {
		j := v.waiting[0]
		if j.holds == 0 && !v.admits(j) {
			break
		}
		n := min(j.left, budget)
		budget -= n
		j.left -= n
		batch = append(batch, portion{j, n})
		if j.left > 0 {
			break
		}
		v.waiting = v.waiting[1:]
	}
	return batch
}

func (v *server) prefill(batch []portion) {
	v.logPrefill(batch)
	c := &v.pool.Costs
	base := float64(c.Prefill)
	for _, p := range batch {
		base += float64(p.tokens) * float64(c.PerToken)
		if p.job.half.Formed == 0 {
			p.job.half.Formed = v.sim.Agenda.Now
			p.job.half.Batches = append(p.job.half.Batches, len(batch))
		}
	}
	v.after(v.takes(base, false), func() {
		for _, p := range batch {
			if !p.job.over {
				p.job.prefilled(v.sim.Agenda.Now)
			}
		}
	})
}

// join takes jobs whose KV has arrived into the batch of a decode server.
func (v *server) join() {
	v.resume()
	for len(v.waiting) > 0 && len(v.running) < v.pool.Batch {
		j := v.waiting[0]
		v.waiting = v.waiting[1:]
		j.half.Formed = v.sim.Agenda.Now
		j.half.Prebuilt = v.sim.Agenda.Now + 250*us
		j.token(j.half.Prebuilt, 1)
		if !j.over {
			v.running = append(v.running, j)
		}
	}
}

func (v *server) decode() {
	v.retract()
	c := &v.pool.Costs
	base := float64(c.Decode)
	batch := slices.Clone(v.running)
	for _, j := range batch {
		base += float64(c.PerJob) + float64(c.PerKV)*float64(j.req.Prompt+j.half.Produced)/1000
		j.half.Scheduled = cmp.Or(j.half.Scheduled, v.sim.Agenda.Now)
	}
	v.given0 = cmp.Or(v.given0, v.sim.Agenda.Now)
	v.after(v.takes(base, true), func() {
		given := 0
		for _, j := range batch {
			if j.over {
				continue
			}
			before := j.half.Produced
			j.half.Tokens = append(j.half.Tokens, v.sim.Agenda.Now)
			j.half.Batches = append(j.half.Batches, len(batch))
			n := 1 + j.accepted()
			j.hold(n)
			j.token(v.sim.Agenda.Now, n)
			given += j.half.Produced - before
		}
		v.logDecode(given)
	})
}

// cancel aborts the jobs of a request whose client has left.
func (v *server) cancel(q *Request) {
	for _, j := range slices.Clone(v.jobs) {
		if j.req == q && !v.hung {
			j.cancel()
		}
	}
}
