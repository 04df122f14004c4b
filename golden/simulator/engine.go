package simulator

import (
	"cmp"
	"slices"
)

// engine is the scheduler loop of one DP rank, run by all its TP and PP ranks together. An iteration begins when the
// slowest rank has finished the previous one, as after a collective: that is how a straggler slows its peers down.
//
//  1. Receive: every message that arrived meanwhile, in order.
//  2. Poll the queues of a decode engine for jobs that now fit into memory.
//  3. Form a batch: prefill if possible, else decode.
//  4. Launch it. Its results are taken when the slowest rank has them.
//
// With pipeline parallelism there is one microbatch per stage in flight, each going through the same iteration; they meet
// at the first stage.
type engine struct {
	sim      *sim
	instance int
	dp       int
	role     Role
	size     Parallel

	// inbox holds messages; each is called when it is taken and returns when the scheduler is done with it.
	inbox []func(at int64) int64

	reserving []*job // decode: wait for KV memory
	retracted []*job // decode: retracted, wait for KV memory
	waiting   []*job
	batches   []*microbatch
	stageFree []int64 // when each pipeline stage can take the next step
	attended  int64   // until when the scheduler handles messages
	kv        int     // tokens in the KV cache
	spell     spell
}

// microbatch is the batch that one slot of the pipeline decodes repeatedly.
type microbatch struct {
	index   int
	busy    bool
	running []*job
	chunked *job // prefill to be continued before anything else
}

func newEngine(s *sim, instance, dp int) *engine {
	in := &s.run.Instances[instance]
	e := &engine{
		sim: s, instance: instance, dp: dp, role: in.Role, size: in.Size,
		stageFree: make([]int64, in.Size.PP), spell: newSpell(s.run.Config.Seed),
	}
	for i := range in.Size.PP {
		e.batches = append(e.batches, &microbatch{index: i})
	}
	return e
}

// ranks returns how many ranks run the loop.
func (e *engine) ranks() int { return e.size.TP * e.size.PP }

// spread returns how much later than rank 0 the last rank of a stage notices things.
func (e *engine) spread() int64 { return int64(e.size.TP) * 20 * us }

// notice returns when each rank learns what rank 0 learns at a time: rank 0 broadcasts to its TP peers, and each pipeline
// stage passes it on to the next.
func (e *engine) notice(at int64) []int64 {
	times := make([]int64, e.ranks())
	for r := range times {
		stage, tp := int64(r/e.size.TP), int64(r%e.size.TP)
		times[r] = at + stage*500*us + tp*20*us + e.sim.between(0, 20*us)
	}
	return times
}

// post delivers a message at a time.
func (e *engine) post(t int64, message func(at int64) int64) {
	e.sim.Agenda.At(t, func() {
		e.inbox = append(e.inbox, message)
		e.wake()
	})
}

// wake starts an iteration of every idle microbatch.
func (e *engine) wake() {
	for _, b := range e.batches {
		if !b.busy {
			e.iterate(b)
		}
	}
}

// iterate is one round of the loop.
func (e *engine) iterate(b *microbatch) {
	at := max(e.sim.Agenda.Now, e.attended)
	b.busy = true
	if e.hangs(at) {
		return
	}
	if free := e.stageFree[0]; free > at {
		e.sim.Agenda.At(free, func() { e.iterate(b) })
		return
	}
	for _, message := range e.inbox {
		at = message(at)
	}
	e.inbox = e.inbox[:0]

	if e.role == RoleDecode {
		e.resume(at)
		e.reserve(at)
		at = e.prebuild(b, at)
	}
	e.attended = at
	if batch := e.formPrefill(b); batch != nil {
		e.launch(b, ModePrefill, batch, at)
	} else if batch := e.formDecode(b, at); batch != nil {
		e.launch(b, ModeDecode, batch, at)
	} else {
		b.busy = false
	}
}

// hangs reports whether e is the engine that is planted to hang, and hangs at a time.
func (e *engine) hangs(at int64) bool {
	run := e.sim.run
	h := run.Config.Hang
	return h.AtOnset && e.dp == h.DP && e.instance == len(run.Instances)-1 && at >= run.Onset
}

// enqueue puts a job into the waiting queue.
func (e *engine) enqueue(j *job) {
	j.state = stateWaiting
	e.waiting = append(e.waiting, j)
}

// forget removes a job from everything.
func (e *engine) forget(j *job) {
	e.release(j)
	e.reserving = remove(e.reserving, j)
	e.waiting = remove(e.waiting, j)
	j.state = stateOver
}

// hasRoom reports whether n more tokens fit into the KV cache. Only engines that
// decode have a limit.
func (e *engine) hasRoom(n int) bool {
	return e.role == RolePrefill || e.kv+n <= e.sim.run.Config.KVTokens
}

// margin returns the number of tokens that must be free for a retracted job beyond its own, lest it be retracted again at
// once.
func (e *engine) margin() int {
	for _, b := range e.batches {
		if len(b.running) > 0 {
			return e.sim.run.Config.KVTokens / 16
		}
	}
	return 0
}

func (e *engine) take(j *job, tokens int) {
	j.kv += tokens
	e.kv += tokens
}

func (e *engine) release(j *job) {
	e.kv -= j.kv
	j.kv = 0
}

// portion is the part of a job that a step computes.
type portion struct {
	job    *job
	tokens int
	last   bool
}

// formPrefill picks waiting jobs, first come first served, until the chunk is full; the remainder of the last one waits for
// the next step.
func (e *engine) formPrefill(b *microbatch) []portion {
	if e.role == RoleDecode {
		return nil
	}
	var batch []portion
	budget := e.sim.run.Config.ChunkTokens
	add := func(j *job) {
		n := min(budget, j.total()-j.computed)
		budget -= n
		j.computed += n
		j.state = stateRunning
		last := j.computed == j.total()
		b.chunked = nil
		if !last {
			b.chunked = j
		}
		batch = append(batch, portion{j, n, last})
	}
	if b.chunked != nil {
		add(b.chunked)
	}
	how := &e.sim.run.Config.Scheduling
	if how.ShortestFirst {
		slices.SortStableFunc(e.waiting, func(a, b *job) int { return cmp.Compare(a.total(), b.total()) })
	}
	for len(e.waiting) > 0 && budget > 0 && len(b.running)+len(batch) < e.sim.run.Config.MaxRunning {
		j := e.waiting[0]
		need := j.total() + 1
		if len(j.half.retractions) > 0 {
			need += e.margin()
		}
		if !e.hasRoom(need) || how.WholePrompts && len(batch) > 0 && j.total()-j.computed > budget {
			break
		}
		e.waiting = e.waiting[1:]
		e.take(j, j.total())
		add(j)
	}
	return batch
}

// formDecode returns the running jobs, after retracting those whose next token does not fit in the KV cache.
func (e *engine) formDecode(b *microbatch, at int64) []portion {
	for len(b.running) > 1 && !e.hasRoom(len(b.running)) {
		e.retract(b, at)
	}
	var batch []portion
	for _, j := range b.running {
		e.take(j, 1)
		batch = append(batch, portion{j, 1, true})
	}
	return batch
}

// retract retracts the job that loses least: the one with the fewest tokens produced, then the one with the longest prompt;
// or any.
func (e *engine) retract(b *microbatch, at int64) {
	j := slices.MinFunc(b.running, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.half.Tokens, b.half.Tokens), cmp.Compare(b.req.Prompt, a.req.Prompt))
	})
	if e.sim.run.Config.Scheduling.RetractAny {
		j = b.running[e.sim.rng.IntN(len(b.running))]
	}
	b.running = remove(b.running, j)
	e.release(j)
	j.computed = 0
	j.did(turnRetract, len(j.half.retractions))
	j.half.retractions = append(j.half.retractions, retraction{at: e.notice(at)})
	if e.role == RoleUnified {
		e.enqueue(j)
		return
	}
	j.state = stateRetracted
	e.retracted = append(e.retracted, j)
}
