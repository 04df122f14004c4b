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

// limits are the capacities of a server, as far as requests ever had to wait for them.
type limits struct {
	chunk   int64 // tokens of prompts in a step
	batch   int64 // requests in a prefill step
	running int64 // requests that decode
	kv      int64 // tokens in the KV cache
	// margin is how many tokens must be free besides its own for a request that comes back
	// after a retraction.
	margin int64
}

const unlimited = math.MaxInt64 / 4

// findChunks finds how many tokens of prompts a prefill step computes at most: no fewer than any
// step has that computes whole prompts, and no more than the pieces of a prompt allow.
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

// findLag finds out whether schedulers form a batch while the one before it runs (SGLang's
// overlap scheduler): what has come at a boundary is then in the step after the next one.
func (r *Run) findLag() {
	early, late := map[int32]int{}, map[int32]int{}
	for i := range r.allJobs() {
		j, e := &r.jobs[i], &r.Engines[r.jobs[i].engine]
		if j.from == None {
			continue
		}
		k := sort.Search(len(e.Steps), func(i int) bool { return e.Steps[i].Start >= j.enter })
		if k == 0 || k == len(e.Steps) || k > 0 && e.Steps[k-1].Done < e.Steps[k].Start {
			continue // it did nothing
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

// A pool is what the servers of a group show of their limits.
type pool struct {
	running, batch int64   // most
	ran            []int64 // requests in decode steps while others waited
	cut            []int64 // requests in prefill steps with room, which did not take who waited
	retracted      bool
	rooms          []roomNeeded
}

// roomNeeded is how much of the KV cache would be taken with what asked for it: a request, or the next
// tokens of a batch.
type roomNeeded struct {
	tokens int64
	given  bool
}

// join adds what another server shows.
func (p *pool) join(o *pool) {
	p.running, p.batch, p.retracted = max(p.running, o.running), max(p.batch, o.batch), p.retracted || o.retracted
	p.ran, p.cut, p.rooms = append(p.ran, o.ran...), append(p.cut, o.cut...), append(p.rooms, o.rooms...)
}

// fewAsked is how often somebody waits at least before a limit is believed.
const fewAsked = 3

// stuckAt returns with how many requests servers decoded while others waited, if as many ran as ever did; 0 is no limit.
func (p *pool) stuckAt() int64 {
	if len(p.ran) >= fewAsked && 10*distribution.LowerMedian(slices.Clone(p.ran)) >= 9*p.running {
		return p.running
	}
	return 0
}

// findLimits finds out what requests waited for: servers of a group have the same limits.
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

// together returns for each server what those of its group show, all but some of them.
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

// limit takes for the limits of a server what a pool shows.
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

// OwnLimits takes for the limits of servers what they show themselves, as far as they do: one of a group may have less than the others.
// Without effect, it returns false.
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

// Most returns how many tokens of prompts the recorded steps computed at most, and how many requests they decoded.
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

// KV returns how many tokens the KV cache of a server holds that requests had to wait for.
func (r *Run) KV() (tokens int64) {
	for i := range r.Engines {
		if kv := r.Engines[i].limits.kv; kv != unlimited {
			tokens = max(tokens, kv)
		}
	}
	return tokens
}

// ScaleKV makes the KV caches of all servers that have a limit larger or smaller than what was found.
func (r *Run) ScaleKV(factor float64) {
	for i := range r.Engines {
		r.Engines[i].limits.scaleKV(factor)
	}
}

// scaleKV multiplies the size of the KV cache. It reports whether there is one.
func (l *limits) scaleKV(factor float64) bool {
	if l.kv == unlimited {
		return false
	}
	l.kv = int64(float64(l.kv) * factor)
	return true
}

// size returns the size of the KV cache that explains best who got room and who did not. It is sure where
// it explains most of those who did not: others wait for something else.
func (p *pool) size() (kv int64, sure bool) {
	slices.SortFunc(p.rooms, func(x, y roomNeeded) int {
		return cmp.Or(cmp.Compare(x.tokens, y.tokens), order.Bool(x.given, y.given))
	})
	refused := order.Count(p.rooms, func(x roomNeeded) bool { return !x.given })
	above, explained, best := refused, refused, -1 // refused ones with more tokens than kv; all that kv explains
	next := false                                  // kv is what was given; who is refused next says how much more there can be, a little if few ask
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

// fewRefused is how often a request must have waited for room before a limit is believed.
const fewRefused = 3

// An asking is that a request wants room: from a step on, until it gets it at another one.
type asking struct {
	from, got int
	need      int64
	job       int32
	behind    int // the step until which somebody waited before it who gave up
}

// ask notes at which steps of an engine who got room, and who did not: those at the head of the queue,
// while nothing that was thrown out has to come back first.
func (r *Run) ask(e *Engine, list []asking, p *pool) {
	r.lineUp(list)
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y asking) int { return cmp.Compare(x.got, y.got) })
	head, taken := 0, int64(0) // the step at which the one before got room, and what was given there
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

// unserved reports whether a job gave up before it had any memory.
func (j *job) unserved() bool { return j.gaveUp && j.booked == 0 }

// lineUp puts who asked for room in order, and says who waited behind one that gave up.
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

// findBlocking says how much room those wanted who gave up while they waited for it: more than there was when
// they were the first ones in the queue, and whoever was next would have had room. Others did not block it.
func (r *Run) findBlocking(e *Engine, list []asking) {
	given := make([]int64, len(e.Steps)+1) // at each step
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

// look counts for each step who waited meanwhile, and what was taken. It returns who asked for room.
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
			with := st.held + st.Requests // a token more of each
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

// first returns the first step of an engine that begins at a time, or later.
func (e *Engine) first(t trace.Time) int {
	return sort.Search(len(e.Steps), func(i int) bool { return e.Steps[i].Start >= t })
}
