package simulator

// The cost of a forward pass, roughly that of a 70B model on two GPUs. A pipeline divides it among its stages.
const (
	prefillBase     = 6 * ms
	prefillPerToken = 70 * us
	decodeBase      = 20 * ms
	decodePerJob    = 450 * us
	decodePerKV     = int64(200) // ns per token in the KV cache of the batch
	stageHop        = 100 * us   // from one pipeline stage to the next
)

// Ranks never take exactly the same time, and now and then one is interrupted.
const (
	jitterShare = 0.004
	hiccupShare = 0.01
	hiccupMean  = 3 * ms
	hiccupMax   = 12 * ms
)

// cost returns the duration of a step, without variation among ranks.
func cost(m ForwardMode, batch []portion) int64 {
	if m == ModePrefill {
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

// launch runs a step on all ranks and records it with the jobs. Every rank of a stage starts when the scheduler has formed
// the batch and the previous stage has passed it on, and takes its own time.
func (e *engine) launch(b *microbatch, m ForwardMode, batch []portion, at int64) {
	s := e.sim
	st := Step{
		Instance: e.instance, DP: e.dp, microbatch: b.index, Mode: m,
		Requests: len(batch), Ranks: make([]RankStep, e.ranks()),
	}
	st.slow = e.spell.holds(&s.run.Config.Straggler, m, len(batch), at)
	part := cost(m, batch) / int64(e.size.PP)
	if pace := s.run.Config.Pace; pace > 0 {
		part = int64(float64(part) * pace)
	}
	input := int64(0) // when the stage gets the output of the previous one
	for r, formed := range e.notice(at + s.between(20*us, 60*us)) {
		stage := r / e.size.TP
		if stage > 0 && r%e.size.TP == 0 {
			input = e.stageFree[stage-1] + stageHop
		}
		k := &st.Ranks[r]
		k.Formed = formed
		k.Scheduled = max(formed, max(input, e.stageFree[stage])+s.between(0, 20*us))
		k.Computed = k.Scheduled
		if st.slow && e.straggles(r, k.Scheduled) {
			k.Computed += e.spell.delay(&s.run.Config.Straggler) + s.vary(part, s.run.Config.Straggler.Factor)
		} else {
			k.Computed += s.vary(part, 1)
		}
		if r%e.size.TP == e.size.TP-1 {
			e.stageFree[stage] = Latest(st.Ranks[stage*e.size.TP:r+1], computed)
		}
	}
	e.answer(&st)

	kind := turnDecode
	for _, p := range batch {
		st.Tokens += p.tokens
		if m == ModePrefill {
			kind = turnChunk
			if p.last {
				kind = turnPrefill
			}
		}
		p.job.did(kind, len(s.run.Steps))
	}
	s.run.Steps = append(s.run.Steps, st)
	s.Agenda.At(Latest(st.Ranks, Done), func() { e.complete(b, &st, batch) })
}

// answer fills in when each rank knows the tokens of a step: the ranks of the last stage at once, the others when these
// have told them.
func (e *engine) answer(st *Step) {
	last := st.Ranks[len(st.Ranks)-e.size.TP:]
	told := Latest(last, computed) + stageHop
	for r := range st.Ranks {
		k := &st.Ranks[r]
		k.done = k.Computed
		if r < len(st.Ranks)-e.size.TP {
			k.done = told + e.sim.between(0, 80*us)
		}
	}
}

// straggles reports whether a rank of e is a planted straggler that may be slow at a time.
func (e *engine) straggles(r int, at int64) bool {
	run := e.sim.run
	s := &run.Config.Straggler
	return s.planted() && e.instance == len(run.Instances)-1 && r == s.PP*e.size.TP+s.TP &&
		e.dp >= s.DP && e.dp < s.DP+max(1, s.Replicas) && at >= run.slowFrom()
}

// vary returns how long a rank that is slower by a factor takes for a part of a step.
func (s *sim) vary(part int64, factor float64) int64 {
	t := float64(part) * (1 + jitterShare*s.rng.Float64()) * max(1, factor)
	if s.rng.Float64() < hiccupShare {
		t += min(s.rng.ExpFloat64()*float64(hiccupMean), float64(hiccupMax))
	}
	return int64(t)
}

// complete takes the results of a step and starts the next iteration.
func (e *engine) complete(b *microbatch, st *Step, batch []portion) {
	if st.Mode == ModeDecode {
		b.running = b.running[:0]
	}
	for _, p := range batch {
		switch {
		case !p.last:
		case e.role == RolePrefill:
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

func computed(k *RankStep) int64 { return k.Computed }
func Done(k *RankStep) int64     { return k.done }

// Latest returns the latest of one time over the ranks.
func Latest(ranks []RankStep, of func(*RankStep) int64) int64 {
	t := of(&ranks[0])
	for i := range ranks[1:] {
		t = max(t, of(&ranks[i+1]))
	}
	return t
}
