package replay

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// limits are the capacities of a server, if requests ever had to wait for them.
type limits struct {
	chunk   int64 // prompt tokens in a step
	batch   int64 // requests in a prefill step
	running int64 // requests that decode
	kv      int64 // tokens in the KV cache
	// margin is how many tokens must be free, in addition to its own, before a retracted request comes back.
	margin int64
}

const unlimited = math.MaxInt64 / 4

// findChunks finds the most prompt tokens that a prefill step computes: at least as many as any step with whole
// prompts has, and at most as many as the pieces of chunked prompts allow.
func (r *Run) findChunks() {
	least, most := map[int32]int64{}, map[int32]int64{}
	for i := range r.Engines {
		e := &r.Engines[i]
		pieces := map[int32]int64{}
		for k := range e.Steps {
			st := &e.Steps[k]
			if st.Kind != Prefill {
				continue
			}
			whole := int64(0)
			for _, m := range r.marksOf(st) {
				j := &r.jobs[m.job]
				switch {
				case m.kind == chunkEnd:
					pieces[m.job]++
				case m.kind == prefillEnd && pieces[m.job] == 0:
					whole += int64(j.fresh)
				case m.kind == prefillEnd:
					n := pieces[m.job] + 1
					least[e.Group] = max(least[e.Group], (int64(j.fresh)+n-1)/n)
					if n > 2 {
						if old, ok := most[e.Group]; !ok || int64(j.fresh)/(n-2) < old {
							most[e.Group] = int64(j.fresh) / (n - 2)
						}
					}
				}
			}
			least[e.Group] = max(least[e.Group], whole)
		}
	}
	for i := range r.Engines {
		e := &r.Engines[i]
		lo := max(1, least[e.Group])
		e.limits = limits{chunk: 1 << bits.Len64(uint64(lo-1)), batch: unlimited, running: unlimited, kv: unlimited}
		if hi, ok := most[e.Group]; ok && e.limits.chunk > hi {
			e.limits.chunk = max(lo, hi)
		}
	}
}

// findLag finds out whether schedulers form a batch while the previous one runs (SGLang's overlap scheduler). Then a
// job that arrives at a boundary is in the step after the next one.
func (r *Run) findLag() {
	early, late := map[int32]int{}, map[int32]int{}
	for i := range r.allJobs() {
		j, e := &r.jobs[i], &r.Engines[r.jobs[i].engine]
		if j.from == None {
			continue
		}
		k := sort.Search(len(e.Steps), func(i int) bool { return e.Steps[i].Start >= j.enter })
		if k == 0 || k == len(e.Steps) || k > 0 && e.Steps[k-1].Done < e.Steps[k].Start {
			continue // it was idle
		}
		switch int(j.from) {
		case k:
			early[e.Group]++
		case k + 1:
			late[e.Group]++
		}
	}
	for i := range r.Engines {
		if e := &r.Engines[i]; late[e.Group] > 2*early[e.Group] {
			e.lag = 1
		}
	}
}

// A pool is the evidence for the limits of the servers of a group.
type pool struct {
	running, batch int64   // the largest observed
	ran            []int64 // requests in decode steps while others waited
	cut            []int64 // requests in prefill steps with room left that did not take waiting requests
	retracted      bool
	rooms          []roomNeeded
}

// A roomNeeded is how many tokens the KV cache would hold, including those of a request that asks for room, or the
// next tokens of a batch.
type roomNeeded struct {
	tokens int64
	given  bool
}

// join adds the evidence of another server.
func (p *pool) join(o *pool) {
	p.running, p.batch, p.retracted = max(p.running, o.running), max(p.batch, o.batch), p.retracted || o.retracted
	p.ran, p.cut, p.rooms = append(p.ran, o.ran...), append(p.cut, o.cut...), append(p.rooms, o.rooms...)
}

// fewAsked is the fewest waits that are evidence for a limit.
const fewAsked = 3

// stuckAt returns the number of requests at which decoding was stuck while others waited: the largest number ever
// observed, if it usually was about that large. 0 is no limit.
func (p *pool) stuckAt() int64 {
	if len(p.ran) >= fewAsked && 10*distribution.LowerMedian(slices.Clone(p.ran)) >= 9*p.running {
		return p.running
	}
	return 0
}

// findLimits finds the limits that requests waited for. The servers of a group have the same limits.
func (r *Run) findLimits() {
	r.shows, r.asked = make([]pool, len(r.Engines)), make([][]asking, len(r.Engines))
	for i := range r.Engines {
		r.asked[i] = r.look(&r.Engines[i], i, &r.shows[i])
	}
	for i, p := range r.together(nil) {
		if n := p.stuckAt(); n > 0 {
			r.Engines[i].limits.running = n
		}
	}
	for i := range r.Engines {
		r.ask(&r.Engines[i], r.asked[i], &r.shows[i])
	}
	for _, m := range r.marks {
		if m.kind == thrownOut {
			r.shows[r.jobs[m.job].engine].retracted = true
		}
	}
	for i, p := range r.together(nil) {
		r.limit(i, p)
	}
}

// together returns, for each server, the pooled evidence of its group, except for servers marked in but.
func (r *Run) together(but []bool) []*pool {
	pools, of := map[int32]*pool{}, make([]*pool, len(r.Engines))
	for i := range r.Engines {
		of[i] = order.Memo(pools, r.Engines[i].Group, func() *pool { return &pool{} })
		if but == nil || !but[i] {
			of[i].join(&r.shows[i])
		}
	}
	return of
}

// limit sets the limits of a server from a pool.
func (r *Run) limit(i int, p *pool) {
	l := &r.Engines[i].limits
	l.batch, l.running, l.kv, l.margin = unlimited, unlimited, unlimited, 0
	if n := p.stuckAt(); n > 0 {
		l.running = n
	}
	if kv, sure := p.size(); sure || p.retracted {
		l.kv, l.margin = kv, kv/16
		r.findBlocking(&r.Engines[i], r.asked[i])
	}
	if len(p.cut) >= fewAsked && distribution.LowerMedian(slices.Clone(p.cut)) == p.batch {
		l.batch = p.batch
	}
}

// OwnLimits sets the limits of servers from their own evidence, where they have any, because one server of a group
// may have less than the others. It returns false if no server has.
func (r *Run) OwnLimits() bool {
	own, any := make([]bool, len(r.Engines)), false
	for i := range r.Engines {
		p := &r.shows[i]
		_, sure := p.size()
		own[i] = sure || p.retracted || p.stuckAt() > 0
		any = any || own[i]
	}
	for i, p := range r.together(own) {
		if own[i] {
			p = &r.shows[i]
		}
		r.limit(i, p)
	}
	return any
}

// Most returns the most prompt tokens that a recorded step computed, and the most requests that one decoded.
func (r *Run) Most() (tokens, running int64) {
	for i := range r.Engines {
		for k := range r.Engines[i].Steps {
			if st := &r.Engines[i].Steps[k]; st.Kind == Decode {
				running = max(running, st.Requests)
			} else {
				tokens = max(tokens, st.New)
			}
		}
	}
	return tokens, running
}

// KV returns the number of tokens in the largest KV cache that requests had to wait for; 0 if there is none.
func (r *Run) KV() (tokens int64) {
	for i := range r.Engines {
		if kv := r.Engines[i].limits.kv; kv != unlimited {
			tokens = max(tokens, kv)
		}
	}
	return tokens
}

// ScaleKV multiplies the size of all limited KV caches.
func (r *Run) ScaleKV(factor float64) {
	for i := range r.Engines {
		r.Engines[i].limits.scaleKV(factor)
	}
}

// scaleKV multiplies the size of the KV cache. It reports whether it is limited.
func (l *limits) scaleKV(factor float64) bool {
	if l.kv == unlimited {
		return false
	}
	l.kv = int64(float64(l.kv) * factor)
	return true
}

// size returns the size of the KV cache that best explains which requests got room and which did not. It is sure if
// it explains enough of the refusals; other requests wait for something else.
func (p *pool) size() (kv int64, sure bool) {
	slices.SortFunc(p.rooms, func(x, y roomNeeded) int {
		return cmp.Or(cmp.Compare(x.tokens, y.tokens), order.Bool(x.given, y.given))
	})
	refused := order.Count(p.rooms, func(x roomNeeded) bool { return !x.given })
	above, explained, best := refused, refused, -1 // refusals that needed more than kv; all decisions that kv explains
	next := false                                  // kv is a granted size; the next larger refusal limits how much larger it may be, which is a little if few asked
	for _, x := range p.rooms {
		if !x.given {
			if next && x.tokens > kv {
				kv, next = kv+min((x.tokens-1-kv)/2, kv/100), false
			}
			explained--
			above--
		} else if explained++; explained > best {
			kv, best, next = x.tokens, explained, true
			sure = above >= fewRefused && 2*above >= refused
		}
	}
	return kv, sure
}

// fewRefused is the fewest refusals that are evidence for a limit.
const fewRefused = 3

// An asking is the wait of a request for room: from the first step at which it wants room to the one at which it gets
// it.
type asking struct {
	from, got int
	need      int64
	job       int32
	behind    int // first step at which nobody who later gave up was ahead of it in the queue
}

// ask records at which steps of an engine the request at the head of the queue got room, and at which it did not.
// Steps before which retracted requests must come back do not count.
func (r *Run) ask(e *Engine, list []asking, p *pool) {
	r.lineUp(list)
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y asking) int { return cmp.Compare(x.got, y.got) })
	head, taken := 0, int64(0) // the step at which the previous request got room, and the tokens granted there
	for _, a := range list {
		if r.jobs[a.job].unserved() {
			continue
		}
		if a.got > head {
			for k := max(a.from, a.behind, head); k < a.got; k++ {
				st := &e.Steps[k]
				full := st.running >= e.limits.running || st.Kind == Prefill && (10*st.New >= 9*e.limits.chunk || st.running+st.Requests >= e.limits.running)
				if st.out == 0 && !full {
					p.rooms = append(p.rooms, roomNeeded{st.held + taken + a.need, false})
				}
				taken = 0
			}
			head, taken = a.got, 0
		}
		p.rooms = append(p.rooms, roomNeeded{e.Steps[head].held + taken + a.need, true})
		taken += a.need - 1
	}
}

// unserved reports whether a job gave up before it got any memory.
func (j *job) unserved() bool { return j.gaveUp && j.booked == 0 }

// lineUp sorts askings by arrival, and finds those that waited behind one that gave up.
func (r *Run) lineUp(list []asking) {
	slices.SortStableFunc(list, func(x, y asking) int { return cmp.Compare(r.jobs[x.job].reach, r.jobs[y.job].reach) })
	behind := 0
	for i := range list {
		list[i].behind = behind
		if r.jobs[list[i].job].unserved() {
			behind = max(behind, list[i].got)
		}
	}
}

// findBlocking estimates how much room was wanted by those that gave up while waiting for it: more than there was
// while they were at the head of the queue and whoever was next would have fit. Others did not block the queue.
func (r *Run) findBlocking(e *Engine, list []asking) {
	given := make([]int64, len(e.Steps)+1) // tokens granted at each step
	for _, a := range list {
		given[a.got] += a.need
	}
	head := 0
	for i, a := range list {
		next := i + 1
		for next < len(list) && r.jobs[list[next].job].unserved() {
			next++
		}
		if j := &r.jobs[a.job]; j.unserved() && next < len(list) {
			b := &list[next]
			for k := max(a.from, b.from, head); k < min(a.got, b.got); k++ {
				if room := e.limits.kv - e.Steps[k].held - given[k]; room >= b.need && (e.Steps[k].out == 0 || e.Role == request.Unified) {
					j.prompt = max(j.prompt, int32(room))
				}
			}
		}
		head = max(head, a.got)
	}
}

// look records, for each step, how many requests were waiting, and how much was in use. It returns those that asked
// for room.
func (r *Run) look(e *Engine, engine int, p *pool) (list []asking) {
	waits, books := make([]int32, len(e.Steps)+1), make([]int64, len(e.Steps)+1)
	for i := range r.allJobs() {
		j := &r.jobs[i]
		if int(j.engine) != engine {
			continue
		}
		if j.role == request.Decode && j.booked != 0 {
			at, until := e.first(j.booked), int(j.from)
			if j.from == None {
				until = e.first(j.left)
			}
			if at < until {
				books[at] += int64(j.prompt)
				books[until] -= int64(j.prompt)
			}
			if at > 0 && j.booked-e.Steps[at-1].Start < handling {
				list = append(list, asking{from: e.first(e.next(j.reach) + trace.Time(2*r.shakes)), got: at - 1, need: int64(j.prompt) + 1, job: int32(i)})
			}
		}
		if j.unserved() {
			list = append(list, asking{from: e.first(j.reach), got: e.first(j.left), job: int32(i)})
		}
		if j.from == None {
			continue
		}
		if at := e.first(j.enter) + e.lag; at < int(j.from) {
			waits[at]++
			waits[j.from]--
		}
		if j.role == request.Unified {
			list = append(list, asking{from: e.first(j.enter) + e.lag, got: int(j.from), need: int64(j.prompt) + 1, job: int32(i)})
		}
	}
	waiting, booked, most := int32(0), int64(0), int64(0)
	for k := range e.Steps {
		st := &e.Steps[k]
		waiting, booked = waiting+waits[k], booked+books[k]
		st.held += booked
		if st.Kind == Decode {
			p.running = max(p.running, st.Requests)
			with := st.held + st.Requests // one more token for each request
			if most = max(most, with); st.lost > 0 {
				p.rooms = append(p.rooms, roomNeeded{with, true}, roomNeeded{with + 1 + st.lost, false})
			}
			if waiting > 0 {
				p.ran = append(p.ran, st.Requests)
			}
			continue
		}
		p.batch = max(p.batch, st.Requests)
		if waiting > 0 && 10*st.New < 9*e.limits.chunk {
			p.cut = append(p.cut, st.Requests)
		}
	}
	p.rooms = append(p.rooms, roomNeeded{most, true})
	return list
}

// first returns the first step of an engine that begins at or after a time.
func (e *Engine) first(t trace.Time) int {
	return sort.Search(len(e.Steps), func(i int) bool { return e.Steps[i].Start >= t })
}
