package simulator

import "slices"

// job is a half on its way through the simulator.
type job struct {
	req    *Request
	half   *Half
	peer   *job // the other half of a PD request; of a unified one the job itself
	role   Role
	engine *engine // nil until routed
	state  state

	computed int   // prompt tokens, and after a retraction produced ones, in the KV cache
	kv       int   // tokens in the KV cache
	ready    int64 // decode: end of the handshake
	reserved bool  // prefill: the other half has KV memory
	canceled bool  // to be aborted after its next token
}

type state uint8

const (
	stateNew          state = iota
	stateReserving          // decode: waits for KV memory; prefill: for the decode half to have it
	stateTransferring       // KV on its way
	stateWaiting
	stateRunning
	stateRetracted
	stateOver
)

// total returns how many tokens the job needs in the KV cache for its next one.
func (j *job) total() int { return j.req.Prompt + j.half.Tokens }

// did records a turn of the job.
func (j *job) did(k turnKind, at int) {
	j.half.turns = append(j.half.turns, turn{k, int32(at)})
}

// admit is the arrival of a job at its engine. Like every message, it returns the time at which the engine is done with it;
// see engine.inbox.
func (j *job) admit(at int64) int64 {
	e, h := j.engine, j.half
	h.ranks = make([]visit, e.ranks())
	begin := e.notice(at)
	if j.role == RoleUnified && len(e.waiting) >= e.sim.run.Config.MaxQueued {
		j.refuse(begin)
		return at + e.spread()
	}
	for r := range h.ranks {
		v := &h.ranks[r]
		v.begin = begin[r]
		v.received = v.begin + e.sim.between(10*us, 30*us)
		v.queued = v.received + e.sim.between(40*us, 120*us)
	}
	switch j.role {
	case RoleUnified:
		for r := range h.ranks {
			h.ranks[r].waiting = h.ranks[r].queued
		}
		e.enqueue(j)
	case RoleDecode:
		j.state = stateReserving
		j.ready = at + e.sim.between(300*us, 1500*us)
		e.reserving = append(e.reserving, j)
		e.sim.Agenda.At(j.ready, e.wake)
	case RolePrefill:
		j.state = stateReserving
		if j.reserved {
			j.skipBootstrap()
		}
	}
	return at + e.spread() + 210*us
}

// refuse aborts a job that finds the queue full.
func (j *job) refuse(begin []int64) {
	e, h := j.engine, j.half
	for r := range h.ranks {
		h.ranks[r].begin = begin[r]
		h.ranks[r].finished = begin[r] + e.sim.between(70*us, 150*us)
	}
	h.Ending = EndedQueueFull
	h.End = h.ranks[0].finished + e.sim.between(500*us, ms)
	j.state = stateOver
	e.sim.end(j.req, QueueFull)
}

// skipBootstrap moves a prefill job, whose decode half was faster and already has KV memory, straight on to the waiting
// queue.
func (j *job) skipBootstrap() {
	for r := range j.half.ranks {
		v := &j.half.ranks[r]
		v.waiting = v.queued + j.engine.sim.between(25*us, 60*us)
	}
	j.engine.enqueue(j)
}

// hold returns the message to a prefill job that the decode half has KV memory.
func (j *job) hold(at int64) int64 {
	e := j.engine
	if j.state != stateReserving {
		return at
	}
	for r, t := range e.notice(at) {
		j.half.ranks[r].waiting = t
	}
	e.enqueue(j)
	return at + e.spread()
}

// cancel returns the message that the client has left, or has canceled. A queued job is forgotten. A running one is aborted
// after its next token, and the prefill of a PD request just continues.
func (j *job) cancel(at int64) int64 {
	switch {
	case j.state == stateOver:
		return at
	case j.state == stateReserving,
		j.state == stateWaiting && j.half.Tokens == 0,
		j.state == stateTransferring && j.role == RoleDecode && j.half.Tokens == 0:
		return j.drop(at)
	}
	j.canceled = j.role != RolePrefill
	return at
}

// drop forgets a queued job, leaving its threads to the garbage collector. The tokenizer closed the root earlier, when it
// lost the client.
func (j *job) drop(at int64) int64 {
	e, h := j.engine, j.half
	e.forget(j)
	for r, t := range e.notice(at) {
		h.ranks[r].finished = t + e.sim.between(100*us, 2*ms)
	}
	h.Ending = EndedDropped
	h.End = j.req.left + e.sim.between(300*us, ms)
	if h == j.req.answering() {
		e.sim.end(j.req, ClientGone)
	}
	return at + e.spread()
}

// emit counts a token that all ranks knew at the times of a step, and lets the client read it. It reports whether the job
// has to stop now.
func (j *job) emit(st *Step) bool {
	s, h := j.engine.sim, j.half
	before := h.Tokens
	h.Tokens += 1 + j.accepted(st)
	if h.FirstToken == 0 {
		h.FirstToken = st.Ranks[0].done + s.between(200*us, 500*us)
	}
	if before < j.req.cancelAfter && h.Tokens >= j.req.cancelAfter {
		heard := max(s.Agenda.Now, st.Ranks[0].done) + s.between(ms, 4*ms)
		j.engine.post(heard, j.cancel)
	}
	return h.Tokens >= j.req.output || j.canceled
}

// accepted draws the number of drafted tokens that a step of j accepts, and reserves room for them. A configuration without
// drafts draws nothing, so that its runs do not change.
func (j *job) accepted(st *Step) int {
	s := j.engine.sim
	c := &s.run.Config
	if c.AcceptedDrafts == 0 || st.Mode != ModeDecode || c.DraftsLostAtOnset && st.Ranks[0].Formed >= s.run.Onset {
		return 0
	}
	const most = 8
	n := 0
	for range most {
		if s.rng.Float64() < c.AcceptedDrafts/most {
			n++
		}
	}
	n = min(n, j.req.output-j.half.Tokens-1)
	if n = max(0, n); j.engine.hasRoom(n) {
		j.engine.take(j, n)
		return n
	}
	return 0
}

// finish ends a job with the tokens of a step.
func (j *job) finish(st *Step) {
	s, h := j.engine.sim, j.half
	j.engine.forget(j)
	for r := range h.ranks {
		h.ranks[r].finished = st.Ranks[r].done + s.between(10*us, 60*us)
	}
	h.End = st.Ranks[0].done + s.between(500*us, 900*us)
	how := Finished
	h.Finish = j.req.stop
	if h.Tokens < j.req.output {
		how, h.Finish = ClientCanceled, "abort"
	}
	s.end(j.req, how)
}

// remove returns jobs without j.
func remove(jobs []*job, j *job) []*job {
	return slices.DeleteFunc(jobs, func(other *job) bool { return other == j })
}
