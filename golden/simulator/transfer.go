package simulator

// The path of a PD request from its prefill to its decode half:
//
//	decode   reserving ──memory──▶ transferring ─────────────KV──▶ waiting ─▶ prebuilt, decode
//	prefill  reserving ──────────hold──▶ waiting ─▶ prefill ─▶ transferring ─▶ over
//
// A decode engine without memory therefore shows as long bootstraps on the prefill host.
const (
	networkHop      = 300 * us // one message between the hosts, at most
	transferBase    = 1500 * us
	transferPerKV   = 5 * us // per token
	reloadBase      = 2 * ms // retracted KV, from host memory
	reloadPerKV     = 10 * us
	slowTransferMin = 300 * ms // in addition, for the planted ones
	slowTransferMax = 800 * ms
	failureTimeout  = 900 * ms // until a decode engine gives up
)

// reserve gives KV memory to the jobs that wait for it, in order, and tells their other halves. Nobody gets any while a
// retracted job needs it.
func (e *engine) reserve(at int64) {
	s := e.sim
	for len(e.reserving) > 0 && len(e.retracted) == 0 {
		j := e.reserving[0]
		if j.ready > at || !e.hasRoom(j.total()+1) {
			return
		}
		e.reserving = e.reserving[1:]
		e.take(j, j.total())
		j.state = stateTransferring
		for r, t := range e.notice(at) {
			j.half.ranks[r].bootstrapped = t
		}
		p := j.peer
		s.Agenda.At(at+e.spread()+s.between(networkHop/2, networkHop), func() {
			p.reserved = true
			if p.engine != nil {
				p.engine.post(s.Agenda.Now, p.hold)
			}
		})
	}
}

// transfer sends the KV cache of a prefilled job to its other half.
func (s *sim) transfer(p *job, st *Step) {
	p.state = stateTransferring
	for r := range p.half.ranks {
		p.half.ranks[r].transferStart = st.Ranks[r].done + s.between(20*us, 100*us)
	}
	takes := transferBase + int64(float64(int64(p.req.Prompt)*transferPerKV)*(0.8+0.5*s.rng.Float64()))
	if p.req.slowTransfer {
		takes += s.between(slowTransferMin, slowTransferMax)
	}
	arrives := s.carry(p.req, Latest(st.Ranks, Done)) + takes
	d := p.peer
	if p.req.failTransfer {
		p.engine.post(arrives, p.fail)
		d.engine.post(arrives+s.between(failureTimeout, failureTimeout+100*ms), d.fail)
		return
	}
	p.engine.post(arrives, p.sent)
	d.engine.post(arrives+s.between(networkHop/2, networkHop), d.arrived)
}

// carry returns when the link has carried the KV cache of a request that is ready at a time: one goes after the other.
// Without a limit nothing waits.
func (s *sim) carry(q *Request, ready int64) int64 {
	if s.run.Config.LinkTokens == 0 {
		return ready
	}
	s.linkFree = max(s.linkFree, ready) + int64(q.Prompt)*1_000_000_000/int64(s.run.Config.LinkTokens)
	return s.linkFree
}

// sent returns the message to a prefill job that its KV has been transferred.
func (j *job) sent(at int64) int64 {
	e, h := j.engine, j.half
	for r, t := range e.notice(at) {
		h.ranks[r].transferEnd = t
		h.ranks[r].finished = t + e.sim.between(5*us, 40*us)
	}
	j.close("length")
	return at + e.spread()
}

// arrived returns the message to a decode job that its KV has arrived.
func (j *job) arrived(at int64) int64 {
	e := j.engine
	if j.state != stateTransferring {
		return at // dropped meanwhile
	}
	for r, t := range e.notice(at) {
		j.half.ranks[r].waiting = t
	}
	e.enqueue(j)
	return at + e.spread()
}

// fail returns the message to either half that the transfer has failed. The prefill scheduler reports it, the decode
// scheduler drops the request silently.
func (j *job) fail(at int64) int64 {
	e, h := j.engine, j.half
	if j.state != stateTransferring {
		return at // dropped meanwhile
	}
	e.forget(j)
	h.Ending = EndedTransferFailed
	if j.role == RoleDecode {
		h.Ending = EndedDropped
	}
	for r, t := range e.notice(at) {
		h.ranks[r].finished = t + e.sim.between(20*us, 200*us)
	}
	j.close("abort")
	if j.role == RoleDecode {
		e.sim.end(j.req, TransferFailed)
	}
	return at + e.spread()
}

// close ends the root of a half that never streams: its only response, which SGLang counts as one token, is also its last.
func (j *job) close(finish string) {
	h := j.half
	j.state = stateOver
	h.Tokens, h.Finish = 1, finish
	h.End = h.ranks[0].finished + j.engine.sim.between(400*us, 900*us)
	h.FirstToken = h.End
}

// resume brings retracted jobs back as soon as there is memory, and reloads
// their KV from where it was saved.
func (e *engine) resume(at int64) {
	for len(e.retracted) > 0 {
		j := e.retracted[0]
		if !e.hasRoom(j.total() + e.margin()) {
			return
		}
		e.retracted = e.retracted[1:]
		e.take(j, j.total())
		j.state = stateTransferring
		back := &j.half.retractions[len(j.half.retractions)-1]
		back.resumed = e.notice(at)
		e.post(at+reloadBase+int64(j.total())*reloadPerKV, func(at int64) int64 {
			back.requeued = e.notice(at)
			e.enqueue(j)
			return at + e.spread()
		})
	}
}

// prebuild lets transferred jobs join a batch. SGLang makes a batch of them that computes nothing and only passes on the
// token that came with the KV; it returns when that is done.
func (e *engine) prebuild(b *microbatch, at int64) int64 {
	n := min(len(e.waiting), e.sim.run.Config.MaxRunning-len(b.running))
	if n <= 0 {
		return at
	}
	joining := e.waiting[:n:n]
	e.waiting = e.waiting[n:]
	st := Step{
		Instance: e.instance, DP: e.dp, microbatch: b.index, Mode: ModePrebuilt,
		Requests: n, Ranks: make([]RankStep, e.ranks()),
	}
	for r, t := range e.notice(at + 20*us) {
		t = max(t, e.stageFree[r/e.size.TP]) // a later stage may still compute
		done := t + e.sim.between(150*us, 350*us)
		st.Ranks[r] = RankStep{Formed: t, Scheduled: t, Computed: done, done: done}
	}
	for stage := range e.stageFree {
		e.stageFree[stage] = Latest(st.Ranks[stage*e.size.TP:][:e.size.TP], Done)
	}
	for _, j := range joining {
		j.did(turnPrebuilt, len(e.sim.run.Steps))
		j.state = stateRunning
		if j.half.Tokens == 0 && j.emit(&st) {
			j.finish(&st)
			e.sim.Agenda.At(at, e.wake) // a job may wait for its memory
			continue
		}
		b.running = append(b.running, j)
	}
	e.sim.run.Steps = append(e.sim.run.Steps, st)
	return at + e.spread() + 370*us
}
