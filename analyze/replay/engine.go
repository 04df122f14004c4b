package replay

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// iterate runs one round of a server's loop: it takes in what has arrived and begins a step, prefill before decode.
func (p *player) iterate(v *serving, at trace.Time) {
	joined := int64(0)
	if v.Role == request.Decode {
		p.takeIn(v, at)
		p.resume(v, at)
		p.book(v, at)
		joined = p.join(v, at)
	} else if p.formPrefill(v) {
		f := Features{Requests: int64(len(v.batch)), Context: int64(v.context)}
		for _, x := range v.batch {
			f.New += int64(x.tokens)
		}
		p.begin(v, Prefill, f, at)
		return
	}
	for len(v.running) > 1 && v.limits.kv != unlimited && v.kv+int64(len(v.running)) > v.limits.kv {
		p.retract(v)
	}
	v.busy = len(v.running) > 0
	if v.busy {
		v.batch = v.batch[:0]
		for _, i := range v.running {
			v.batch = append(v.batch, portion{job: i, last: true})
		}
		p.begin(v, Decode, Features{Requests: int64(len(v.batch)), Context: int64(v.context), Joined: joined}, at)
	}
}

func (p *player) begin(v *serving, k Kind, f Features, at trace.Time) {
	v.busy, v.kind, v.began, v.looked = true, k, at, len(v.waiting)
	took, lead := v.cursors[k].take(f, at, p.rng)
	v.told = at + trace.Time(took-lead)
	p.agenda.add(at+trace.Time(took), ends, v.index)
}

// formPrefill moves waiting jobs into the batch, first come first served, up to the limits.
func (p *player) formPrefill(v *serving) bool {
	v.batch = v.batch[:0]
	budget := v.limits.chunk
	add := func(i int32) {
		x := &p.jobs[i]
		n := int32(min(int64(x.left), budget))
		x.left -= n
		budget -= int64(n)
		v.batch = append(v.batch, portion{i, n, x.left == 0})
		v.chunked = None
		if x.left > 0 {
			v.chunked = i
		}
	}
	if v.chunked != None {
		add(v.chunked)
	}
	n := 0
	for ; n < len(v.waiting) && budget > 0 && int64(len(v.batch)) < v.limits.batch && int64(len(v.running)+len(v.batch)) < v.limits.running; n++ {
		i := v.waiting[n]
		j, x := &p.Run.jobs[i], &p.jobs[i]
		need := int64(j.prompt) + x.produced(j)
		margin := int64(1)
		if x.out > 0 && len(v.running) > 0 {
			margin += v.limits.margin
		}
		if !x.gone && v.Role == request.Unified && v.limits.kv != unlimited && v.kv > 0 && v.kv+need+margin > v.limits.kv {
			break
		}
		if j.gaveUp {
			continue // it is unknown how long it would have taken
		}
		p.hold(v, x, need)
		add(i)
	}
	v.waiting = v.waiting[n:]
	return len(v.batch) > 0
}

// produced returns the number of tokens that a job has produced so far.
func (x *playing) produced(j *job) int64 {
	if x.out == 0 {
		return 0
	}
	return 1 + int64(float64(x.out-1)*j.yield)
}

// join moves decode halves whose KV cache has arrived into the batch.
func (p *player) join(v *serving, at trace.Time) (n int64) {
	for len(v.waiting) > 0 && int64(len(v.running)) < v.limits.running {
		i := v.waiting[0]
		v.waiting = v.waiting[1:]
		j, x := &p.Run.jobs[i], &p.jobs[i]
		n++
		if x.held == 0 {
			p.hold(v, x, int64(j.prompt)+x.produced(j))
		}
		if p.prebuilt(v, i, at); x.out == j.tokens {
			continue
		}
		v.running = append(v.running, i)
		v.context += float64(j.prompt) + float64(x.produced(j))
	}
	return n
}

// prebuilt emits the first token of a decode half, which its prefill server has computed.
func (p *player) prebuilt(v *serving, i int32, at trace.Time) {
	if j := &p.Run.jobs[i]; p.jobs[i].out == 0 && j.prebuilt != 0 {
		p.emit(v, i, at+trace.Time(j.prebuilt))
	}
}

// emit emits a token of a job, and ends the job after its last one.
func (p *player) emit(v *serving, i int32, at trace.Time) {
	j, x := &p.Run.jobs[i], &p.jobs[i]
	if x.out++; x.out == 1 {
		x.first = at
	}
	if x.out == j.tokens {
		x.last = at
		v.load--
		p.release(v, x)
	}
}

// complete applies the results of a step.
func (p *player) complete(v *serving, at trace.Time) {
	if v.kind == Decode {
		p.decoded(v)
		return
	}
	for _, b := range v.batch {
		if !b.last {
			continue
		}
		j, x := &p.Run.jobs[b.job], &p.jobs[b.job]
		p.emit(v, b.job, v.told)
		switch {
		case j.role == request.Prefill:
			if j.peer != None && x.out == 1 && p.Run.jobs[j.peer].tokens > 0 {
				p.agenda.add(max(at, v.told+trace.Time(p.plan.Sent[j.peer])), enters, int(j.peer))
			}
			if x.out < j.tokens { // it was recorded more than once
				x.out, x.last = j.tokens, v.told
				v.load--
				p.release(v, x)
			}
		case x.out < j.tokens:
			v.running = append(v.running, b.job)
			v.context += float64(j.prompt) + float64(x.produced(j))
		}
	}
}

func (p *player) decoded(v *serving) {
	keep := v.running[:0]
	for _, i := range v.running {
		j, x := &p.Run.jobs[i], &p.jobs[i]
		before := x.produced(j)
		p.emit(v, i, v.told)
		if x.out < j.tokens {
			grown := x.produced(j) - before
			p.hold(v, x, grown)
			v.context += float64(grown)
			keep = append(keep, i)
		} else {
			v.context -= float64(int64(j.prompt) + before)
		}
	}
	v.running = keep
	if len(keep) == 0 {
		v.context = 0
	}
}

// retract throws out the job that loses least, as SGLang does: the one with the fewest tokens, and among these the
// one with the longest prompt. It comes back when there is memory.
func (p *player) retract(v *serving) {
	i := slices.MinFunc(v.running, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.jobs[a].out, p.jobs[b].out), cmp.Compare(p.Run.jobs[b].prompt, p.Run.jobs[a].prompt))
	})
	j, x := &p.Run.jobs[i], &p.jobs[i]
	v.running = slices.DeleteFunc(v.running, func(k int32) bool { return k == i })
	v.context -= float64(int64(j.prompt) + x.produced(j))
	p.release(v, x)
	if v.Role == request.Decode {
		v.returned = append(v.returned, i)
		return
	}
	x.left = j.prompt + int32(x.produced(j))
	v.waiting = append(v.waiting, i)
}

// resume brings back jobs that were thrown out of a decode server.
func (p *player) resume(v *serving, at trace.Time) {
	for len(v.returned) > 0 {
		i := v.returned[0]
		j, x := &p.Run.jobs[i], &p.jobs[i]
		need := int64(j.prompt) + x.produced(j)
		margin := int64(0)
		if len(v.running) > 0 {
			margin = v.limits.margin
		}
		if v.kv > 0 && v.kv+need+margin > v.limits.kv {
			return
		}
		v.returned = v.returned[1:]
		p.hold(v, x, need)
		p.agenda.add(at+trace.Time(p.sizes.Expected(int64(j.prompt))), enters, int(i))
	}
}
