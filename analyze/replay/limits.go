package replay

import (
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// limits are what a server can hold, as far as requests ever had to wait for it.
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
			for _, m := range r.marks[st.marks[0]:st.marks[1]] {
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
	for i := range r.jobs {
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
	running, kv, batch int64   // most
	ran                []int64 // requests in decode steps while others waited
	alone              int     // prefill steps with room, which did not take who waited
	cut                int64   // requests in the largest of these
	retracted          bool
}

// findLimits finds out what requests waited for.
func (r *Run) findLimits() {
	pools := map[int32]*pool{}
	for i := range r.Engines {
		e := &r.Engines[i]
		if pools[e.Group] == nil {
			pools[e.Group] = &pool{}
		}
		r.look(e, i, pools[e.Group])
	}
	for i := range r.jobs {
		if r.jobs[i].retract > 0 {
			pools[r.Engines[r.jobs[i].engine].Group].retracted = true
		}
	}
	for i := range r.Engines {
		e := &r.Engines[i]
		p := pools[e.Group]
		const few = 3
		if len(p.ran) >= few && p.atMost() {
			e.limits.running = p.running
		} else if p.retracted || len(p.ran) >= few && e.Role != request.Decode {
			e.limits.kv = p.kv
		}
		if p.retracted {
			e.limits.kv = p.kv
			e.limits.margin = p.kv / 16
		}
		if p.alone >= few && p.cut == p.batch {
			e.limits.batch = p.batch
		}
	}
}

// atMost reports whether requests waited while as many ran as ever did.
func (p *pool) atMost() bool {
	return 10*distribution.LowerMedian(slices.Clone(p.ran)) >= 9*p.running
}

// look counts for each step who waited meanwhile, and what was taken.
func (r *Run) look(e *Engine, engine int, p *pool) {
	waits, books := make([]int32, len(e.Steps)+1), make([]int64, len(e.Steps)+1)
	first := func(t trace.Time) int {
		return sort.Search(len(e.Steps), func(i int) bool { return e.Steps[i].Start >= t })
	}
	for i := range r.jobs {
		j := &r.jobs[i]
		if int(j.engine) != engine {
			continue
		}
		if j.stays > 0 {
			books[first(j.booked)] += int64(j.prompt)
			books[first(j.booked+trace.Time(j.stays))] -= int64(j.prompt)
		}
		if j.from == None {
			continue
		}
		if at := first(j.enter) + e.lag; at < int(j.from) {
			waits[at]++
			waits[j.from]--
		}
		if j.role == request.Decode && j.booked != 0 {
			if at := first(j.booked); at < int(j.from) {
				books[at] += int64(j.prompt)
				books[j.from] -= int64(j.prompt)
			}
		}
	}
	waiting, booked := int32(0), int64(0)
	for k := range e.Steps {
		st := &e.Steps[k]
		waiting, booked = waiting+waits[k], booked+books[k]
		st.waiting, st.held = waiting, st.Context+booked
		p.kv = max(p.kv, st.held)
		if st.Kind == Decode {
			p.running = max(p.running, st.Requests)
			if waiting > 0 {
				p.ran = append(p.ran, st.Requests)
			}
			continue
		}
		p.batch = max(p.batch, st.Requests)
		if waiting > 0 && 10*st.New < 9*e.limits.chunk {
			p.alone++
			p.cut = max(p.cut, st.Requests)
		}
	}
}

// FitKV sets the size of KV caches that requests waited for. The most that a server was seen to hold
// is near it only: what it keeps free, and the rounding to pages, no dump tells. So the recorded run is
// played with sizes around that, and the one with which it is least off stays.
func (r *Run) FitKV(off func([]Latency) float64) {
	seen := make([]limits, len(r.Engines))
	limited := false
	for i := range r.Engines {
		seen[i] = r.Engines[i].limits
		limited = limited || seen[i].kv != unlimited
	}
	if !limited {
		return
	}
	set := func(factor float64) {
		for i := range r.Engines {
			if l := &r.Engines[i].limits; seen[i].kv != unlimited {
				l.kv, l.margin = int64(float64(seen[i].kv)*factor), int64(float64(seen[i].margin)*factor)
			}
		}
	}
	best, least := 1.0, math.Inf(1)
	try := func(factor float64) {
		set(factor)
		if out, ok := r.Play(r.Plan(0)); ok {
			if is := off(out); is < least {
				best, least = factor, is
			}
		}
	}
	for percent := 80; percent <= 130; percent += 5 {
		try(float64(percent) / 100)
	}
	around := best
	for _, d := range []float64{-0.03, -0.02, -0.01, 0.01, 0.02, 0.03} {
		try(around + d)
	}
	set(best)
}
