package cluster

// job is a half on its way through its server.
type job struct {
	req      *Request
	half     *Half
	peer     *job // the other half of a PD request, or the job itself
	server   *server
	left     int  // tokens of the prompt to compute
	over     bool // it has ended
	canceled bool // it ends with its next token
	holds    int  // tokens in the KV cache
}

// alive reports whether the server is still in the life in which it got the job.
func (j *job) alive() bool {
	v := j.server
	return v.up && j.half.Life == len(v.sim.run.Servers[v.index].Lives)-1
}

// at schedules do, which only happens if the job's server is still alive and the job has not ended.
func (j *job) at(t int64, do func()) {
	j.server.sim.Agenda.At(t, func() {
		if j.alive() && !j.over {
			do()
		}
	})
}

// receive is the arrival of the request at the server: its root begins when the tokenizer process gets to it.
func (j *job) receive() {
	v, h, d := j.server, j.half, &j.req.draws
	if !j.alive() {
		return
	}
	front := v.front
	begin := max(v.sim.Agenda.Now, front.tokenizing)
	front.tokenizing = begin + int64(float64(d.between(300*us, 500*us)+int64(j.req.Prompt)*600)*front.slow)
	h.Received, h.Tokenized = begin, front.tokenizing
	h.Dispatching = h.Tokenized + 40*us
	h.Dispatched = h.Dispatching + d.between(90*us, 260*us)
	front.tokenizing = h.Dispatched
	j.at(h.Dispatched+d.between(60*us, 150*us), func() { v.post(j) })
}

// admit lets the scheduler take the job at a time, and returns how long that takes.
func (j *job) admit(at int64) int64 {
	v, h, d := j.server, j.half, &j.req.draws
	h.Begin = at
	h.Queued = at + d.between(40*us, 130*us)
	switch v.role {
	case Unified:
		h.Waiting = h.Queued
		v.enqueue(j)
	case Prefill:
		j.at(h.Queued, j.reserve)
	case Decode:
		j.at(h.Queued+d.between(400*us, 900*us), func() {
			v.prealloc = append(v.prealloc, j)
			v.preallocate()
		})
	}
	return h.Queued - at
}

// reserve begins the prefill of a PD request once both halves have arrived.
func (j *job) reserve() {
	h, d, now := j.half, j.peer.half, j.server.sim.Agenda.Now
	if !j.alive() || j.over || h.Queued == 0 || h.Queued > now || d.Reserved == 0 || d.Reserved > now || h.Waiting != 0 {
		return
	}
	h.Waiting = now + j.req.draws.between(100*us, 400*us)
	j.at(h.Waiting, func() { j.server.enqueue(j) })
}

// prefilled is the end of a prefill step of the job.
func (j *job) prefilled(at int64) {
	h := j.half
	if h.Prefilled != 0 { // again, after a retraction
		if j.left == 0 {
			h.Tokens, h.Batches = append(h.Tokens, at), append(h.Batches, 1)
			if j.token(at, 1); !j.over {
				j.server.running = append(j.server.running, j)
			}
		}
		return
	}
	if len(h.Chunks) > 0 || j.left > 0 {
		h.Chunks = append(h.Chunks, at)
	}
	if j.left > 0 {
		return
	}
	h.Prefilled = at
	switch {
	case j.server.role == Prefill:
		j.transfer()
	case j.server.pool.Embedding:
		j.answer(at)
		j.finish(at, "length")
	default:
		if j.token(at, 1); !j.over {
			j.server.running = append(j.server.running, j)
		}
	}
}

// transfer sends the KV to the decode half.
func (j *job) transfer() {
	s, h, c := j.server.sim, j.half, &j.server.pool.Costs
	h.TransferStart = s.Agenda.Now + 60*us
	takes := float64(c.Transfer) + float64(c.TransferPerKV)*float64(j.req.Prompt)/1000
	takes *= 1 + 0.2*float64(j.req.draws.between(0, 1000))/1000
	t := h.TransferStart + int64(takes)
	if c.InTurn {
		t = max(t, j.server.sending+int64(takes))
		j.server.sending = t
	}
	for _, slow := range s.slowWay {
		t += slow(j.server, j.peer.server)
	}
	j.at(t, func() {
		h.TransferEnd, h.Produced = t, 1
		j.finish(t, "length")
	})
	d := j.peer
	d.at(t+j.req.draws.between(100*us, 300*us), func() {
		d.half.Waiting = s.Agenda.Now
		d.server.enqueue(d)
	})
}

// token counts n tokens that are known at a time, and ends the job with the last one.
func (j *job) token(at int64, n int) {
	h := j.half
	if j.answer(at); h.Produced+n > j.req.Output {
		n = j.req.Output - h.Produced
	}
	h.Produced += n
	switch {
	case h.Produced >= j.req.Output:
		j.finish(at, j.req.Stop)
	case j.canceled:
		j.finish(at, "abort")
	}
}

// answer is the first sign of a response at the tokenizer.
func (j *job) answer(at int64) {
	if j.half.FirstToken == 0 {
		j.half.FirstToken = max(at, j.server.front.tokenizing) + j.req.draws.between(200*us, 400*us) + j.server.front.late
	}
}

// accepted draws how many of four drafted tokens a step accepts. The k-th step of a request accepts the same number in
// every run with a seed.
func (j *job) accepted() (n int) {
	const most = 4
	share := j.server.pool.Accepted / most
	if share == 0 {
		return 0
	}
	for _, f := range j.server.sim.drafts {
		share *= f()
	}
	for range most {
		if j.req.draws.rng.Float64() < share {
			n++
		}
	}
	return n
}

// finish ends the job. The tokenizer hears of it when it is free.
func (j *job) finish(at int64, finish string) {
	h, d, v := j.half, &j.req.draws, j.server
	h.Finish, h.Ended = finish, at+d.between(30*us, 70*us)
	h.End = max(at, v.front.tokenizing) + d.between(450*us, 750*us) + v.front.late
	if h.FirstToken = min(h.FirstToken, h.End); v.role == Prefill {
		h.FirstToken = h.End
	}
	v.forget(j)
	if h != j.req.answering() {
		return
	}
	how := Finished
	if finish == "abort" {
		how = GaveUp
	}
	v.sim.end(j.req, h.End, how)
}

// cancel aborts the job of a client that has left: a running job at its next token, a waiting one at once.
func (j *job) cancel() {
	h, v := j.half, j.server
	if h.Formed != 0 || h.TransferStart != 0 || v.role == Prefill {
		j.canceled = true
		return
	}
	now := v.sim.Agenda.Now
	if h.Begin != 0 {
		h.Reason, h.Ended = "Aborted", now+ms
	}
	if h.End = now + 2*ms; h == j.req.answering() {
		v.sim.end(j.req, h.End, GaveUp)
	}
	v.forget(j)
}
