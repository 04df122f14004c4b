package golden

// What a forward pass costs, roughly a 70B model on two GPUs. A pipeline divides
// it by its stages.
const (
	prefillBase     = 6 * ms
	prefillPerToken = 70 * us
	decodeBase      = 20 * ms
	decodePerJob    = 450 * us
	decodePerKV     = int64(200) // ns per token in the KV cache of the batch
	stageHop        = 100 * us   // from one pipeline stage to the next
)

// Ranks never take quite the same time, and now and then one is interrupted.
const (
	jitterShare = 0.004
	hiccupShare = 0.01
	hiccupMean  = 3 * ms
	hiccupMax   = 12 * ms
)

// cost returns what a step takes, without what is particular to ranks.
func cost(m mode, batch []portion) int64 {
	if m == modePrefill {
		t := int64(prefillBase)
		for _, p := range batch {
			t += int64(p.tokens) * prefillPerToken
		}
		return t
	}
	t := decodeBase + int64(len(batch))*decodePerJob
	for _, p := range batch {
		t += int64(p.job.kv) * decodePerKV
	}
	return t
}

// launch runs a step on all ranks and notes it with the jobs. Every rank of a
// stage starts when the scheduler has formed the batch and the stage before has
// passed it on, and takes its own time.
func (e *engine) launch(b *microbatch, m mode, batch []portion, at int64) {
	s := e.sim
	st := step{
		instance: e.instance, dp: e.dp, microbatch: b.index, mode: m,
		requests: len(batch), ranks: make([]rankStep, e.ranks()),
	}
	part := cost(m, batch) / int64(e.size.PP)
	input := int64(0) // when the stage gets what the one before computed
	for r, formed := range e.notice(at + s.between(20*us, 60*us)) {
		stage := r / e.size.TP
		if stage > 0 && r%e.size.TP == 0 {
			input = e.stageFree[stage-1] + stageHop
		}
		k := &st.ranks[r]
		k.formed = formed
		k.scheduled = max(formed, max(input, e.stageFree[stage])+s.between(0, 20*us))
		k.computed = k.scheduled + s.vary(part, e.straggles(r, k.scheduled))
		if r%e.size.TP == e.size.TP-1 {
			e.stageFree[stage] = latest(st.ranks[stage*e.size.TP:r+1], computed)
		}
	}
	e.answer(&st)

	kind := turnDecode
	for _, p := range batch {
		st.tokens += p.tokens
		if m == modePrefill {
			kind = turnChunk
			if p.last {
				kind = turnPrefill
			}
		}
		p.job.did(kind, len(s.run.steps))
	}
	s.run.steps = append(s.run.steps, st)
	s.at(latest(st.ranks, done), func() { e.complete(b, &st, batch) })
}

// answer fills in when each rank knows the tokens of a step: the ranks of the
// last stage at once, the others when these have told them.
func (e *engine) answer(st *step) {
	last := st.ranks[len(st.ranks)-e.size.TP:]
	told := latest(last, computed) + stageHop
	for r := range st.ranks {
		k := &st.ranks[r]
		k.done = k.computed
		if r < len(st.ranks)-e.size.TP {
			k.done = told + e.sim.between(0, 80*us)
		}
	}
}

// straggles reports whether a rank of e is the planted straggler, and slow at a
// time.
func (e *engine) straggles(r int, at int64) bool {
	run := e.sim.run
	return run.straggler() == run.instances[e.instance].schedulers[e.dp*e.ranks()+r] && at >= run.slowFrom()
}

// vary returns what a rank takes for a part of a step.
func (s *sim) vary(part int64, straggles bool) int64 {
	t := float64(part) * (1 + jitterShare*s.rng.Float64())
	if straggles {
		t *= s.run.config.Straggler.Factor
	}
	if s.rng.Float64() < hiccupShare {
		t += min(s.rng.ExpFloat64()*float64(hiccupMean), float64(hiccupMax))
	}
	return int64(t)
}

// complete takes the results of a step and starts the next iteration.
func (e *engine) complete(b *microbatch, st *step, batch []portion) {
	if st.mode == modeDecode {
		b.running = b.running[:0]
	}
	for _, p := range batch {
		switch {
		case !p.last:
		case e.role == rolePrefill:
			e.sim.transfer(p.job, st)
		case p.job.emit(st):
			p.job.finish(st)
		default:
			p.job.state = stateRunning
			b.running = append(b.running, p.job)
		}
	}
	b.busy = false
	e.wake()
}

func computed(k *rankStep) int64 { return k.computed }
func done(k *rankStep) int64     { return k.done }

// latest returns the greatest of one time of the ranks.
func latest(ranks []rankStep, of func(*rankStep) int64) int64 {
	t := of(&ranks[0])
	for i := range ranks[1:] {
		t = max(t, of(&ranks[i+1]))
	}
	return t
}
