package replay

import (
	"cmp"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An Engine is the scheduler loop of one rank.
type Engine struct {
	place.Location
	Group int32 // group of servers that do the same work
	Leads bool
	Steps []Step // sorted by end

	marks  [2]int // range in Run.marks
	lag    int    // number of steps between when a job is taken in and when it can be in one
	timing [kinds]timing
	limits limits
}

// Kind is the kind of a step.
type Kind uint8

const (
	Prefill Kind = iota
	Decode
	kinds
)

// String returns the word that reports print.
func (k Kind) String() string { return [...]string{"prefill", "decode"}[k] }

// A Step is one round of a loop: from the previous boundary, or the arrival that woke the loop, to the next boundary,
// when the last rank is done. The lead rank may end it earlier.
type Step struct {
	Start, End, Done trace.Time
	Kind             Kind
	Features
	late

	Prefix  int64    // tokens of its prompts before those that it computes: cached, or in earlier chunks
	marks   [2]int32 // range in Run.marks
	held    int64    // tokens in the KV cache: all of a request except its last one, and prompts being transferred
	running int64    // number of requests that decode before the step
	lost    int64    // tokens of the last request thrown out before the step
	out     int      // number of requests thrown out of the batch that are not back yet
}

// Features describe the work in a step.
type Features struct {
	New      int64 // prompt tokens that are computed
	Requests int64
	Context  int64 // tokens of all requests before the step
	Joined   int64 // number of requests that join a decode batch
}

// gather groups marks into steps: the requests of a batch end within request.SameBatch of each other, and no request
// is in a step twice.
func (r *Run) gather() {
	slices.SortStableFunc(r.marks, func(x, y mark) int {
		return cmp.Or(cmp.Compare(r.jobs[x.job].engine, r.jobs[y.job].engine), cmp.Compare(x.end, y.end))
	})
	batch := make([]int32, len(r.jobs)) // 1 + the last step of each job
	for from := 0; from < len(r.marks); {
		e := &r.Engines[r.jobs[r.marks[from].job].engine]
		to := from
		for to < len(r.marks) && r.jobs[r.marks[to].job].engine == r.jobs[r.marks[from].job].engine {
			to++
		}
		e.marks = [2]int{from, to}
		r.gatherEngine(e, batch)
		from = to
	}
}

func (r *Run) gatherEngine(e *Engine, batch []int32) {
	last := None // index of the last step's last mark
	for at := range memory.Each(e.marks[1]-e.marks[0], markSize) {
		i := e.marks[0] + at
		m := &r.marks[i]
		if !m.kind.computed() {
			continue
		}
		kind := Prefill
		if m.kind == decodeEnd {
			kind = Decode
		}
		n := int32(len(e.Steps))
		if n == 0 || e.Steps[n-1].Kind != kind || !m.follows(&r.marks[last], e.Steps) || batch[m.job] == n {
			e.Steps = memory.Append(e.Steps, Step{Kind: kind, marks: [2]int32{int32(i), int32(i)}})
			n++
		}
		last = i
		st := &e.Steps[n-1]
		st.marks[1] = int32(i + 1)
		st.add(m)
		batch[m.job] = n
		if r.jobs[m.job].from == None {
			r.jobs[m.job].from = n - 1
		}
	}
}

// follows reports whether a mark belongs to the same step as the last one, which is in the last of steps. Either they
// end together, or the scheduler took a while to record both, and the batch of this one was formed at the same time,
// or while the step before was still running: no scheduler forms batches two steps ahead.
func (m *mark) follows(last *mark, steps []Step) bool {
	const telling = 20 * request.SameBatch
	gap := m.end - last.end
	switch {
	case gap <= request.SameBatch:
		return true
	case m.kind == decodeEnd || gap > telling:
		return false
	}
	together := max(m.from-last.from, last.from-m.from) <= request.SameBatch
	return together || len(steps) > 1 && m.from < steps[len(steps)-2].End
}

// add adds the end of a step for a job.
func (s *Step) add(m *mark) {
	s.End = m.end
	if done := m.end + trace.Time(m.last); s.Done == 0 || done > s.Done {
		s.Done, s.late = done, m.late
	}
}

// boundary returns the last boundary at or before a time: the index of the step that ends there, or None before all
// steps.
func (e *Engine) boundary(t trace.Time) int {
	return sort.Search(len(e.Steps), func(i int) bool { return e.Steps[i].End > t }) - 1
}

// handling is how long after a boundary a scheduler still handles what it found there, in ns.
const handling = 1_000_000

// arrived adjusts the time at which something reached the loop so that it explains when it was taken in: after the
// last boundary at which it was not there yet, and no later than the one at which it was.
func (e *Engine) arrived(at, taken trace.Time) trace.Time {
	at = min(at, taken)
	b := e.boundary(taken)
	switch {
	case b == None:
		return at
	case at > e.Steps[b].Done:
		if at-e.Steps[b].Done < handling {
			_, hi := e.between(b)
			return hi
		}
		return at // the loop was idle
	case b > 0:
		lo, hi := e.between(b)
		return max(min(at, hi), lo)
	}
	return at
}

// noticed moves the time at which a scheduler recorded that something left to before the boundary at which it must
// have noticed, if it was busy.
func (e *Engine) noticed(at trace.Time) trace.Time {
	if b := e.boundary(at); b != None && (at-e.Steps[b].Done < handling || e.next(at) > at) {
		_, at = e.between(b)
	}
	return at
}

// between returns the range of times at which something may have arrived that is taken in at a boundary: after the
// previous boundary, and far enough from both that small deviations in the replay don't move it to another boundary.
func (e *Engine) between(b int) (lo, hi trace.Time) {
	hi = e.Steps[b].Done
	if b > 0 {
		lo = e.Steps[b-1].Done
	}
	lo = max(lo, hi-maxStep)
	margin := min((hi-lo)/4, handling/2)
	return lo + margin, hi - margin
}

// maxStep is the longest plausible step, in ns.
const maxStep = 60_000_000_000

// settle determines when steps began, what was in them, and what requests waited for.
func (r *Run) settle() {
	r.couple()
	for i := range r.allJobs() {
		j, e := &r.jobs[i], &r.Engines[r.jobs[i].engine]
		j.enter = e.arrived(j.enter, j.queued)
	}
	r.fitTransfers()
	r.keepOrder()
	r.findChunks()
	for i := range r.Engines {
		r.walk(&r.Engines[i])
	}
	for i := range r.allJobs() {
		if j := &r.jobs[i]; j.left != 0 {
			j.left = r.Engines[j.engine].noticed(j.left)
		}
	}
	r.findLag()
	r.findMissed()
	r.shake()
	r.findLimits()
	r.fitShakes()
}

// FitSteps determines what a replay needs: the durations of steps, and what the replay keeps. Critical paths don't
// need it.
func (r *Run) FitSteps() {
	r.keep()
	for i := range r.Engines {
		r.Engines[i].fit()
	}
}

// couple determines when jobs could enter a queue, and whether prefills wait for memory on their decode servers.
func (r *Run) couple() {
	var hops []int64
	early, pairs := 0, 0
	for i := range r.allJobs() {
		j := &r.jobs[i]
		j.reach = r.Engines[j.engine].arrived(j.reach, r.set.Threads[j.thread].Start)
		j.enter = j.reach
		if j.role != request.Prefill || j.peer == None || r.jobs[j.peer].booked == 0 {
			continue
		}
		pairs++
		hop := int64(j.queued - r.jobs[j.peer].booked)
		const slack = 2_000_000
		if hop < -slack {
			early++
		}
		hops = append(hops, max(0, hop))
	}
	const few = 20 // one in 20
	r.Coupled = pairs > 0 && few*early < pairs
	if !r.Coupled {
		return
	}
	slices.Sort(hops)
	hop := trace.Time(request.NearestRank(hops, 10))
	for i := range r.allJobs() {
		if j := &r.jobs[i]; j.role == request.Prefill && j.peer != None && r.jobs[j.peer].booked != 0 {
			j.enter = max(j.reach, r.jobs[j.peer].booked+hop)
		}
	}
}

// fitTransfers determines when KV caches arrived. If a decode server notices that only at its next boundary, it is
// somewhere since the previous boundary, and exact only if the server was idle. Within that range, the size decides:
// by a line through the exact times, or through the middles of the ranges.
func (r *Run) fitTransfers() {
	type transfer struct {
		job    int
		lo, hi trace.Time
	}
	var all []transfer
	noticed, busy := 0, 0 // transfers noticed at a boundary, and those during which the server was computing
	for i := range r.allJobs() {
		j := &r.jobs[i]
		if j.role != request.Decode || j.peer == None || r.jobs[j.peer].ended == 0 || j.tokens == 0 {
			continue
		}
		e := &r.Engines[j.engine]
		sent := r.jobs[j.peer].ended
		hi := max(sent, j.queued)
		t := transfer{i, hi, hi}
		if b := e.boundary(j.queued); b > 0 && j.queued-e.Steps[b].Done < handling {
			lo, hi := e.between(b)
			t.lo = min(max(sent, lo), t.hi)
			t.hi = max(t.lo, hi)
			noticed++
			busy++
		} else if b >= 0 && b+1 < len(e.Steps) && r.computedAt(e, b+1, j.queued) {
			busy++
		}
		all = append(all, t)
	}
	if 2*noticed < busy {
		for i := range all {
			all[i].hi = max(r.jobs[r.jobs[all[i].job].peer].ended, r.jobs[all[i].job].queued)
			all[i].lo = all[i].hi
		}
	}
	var exact, within []distribution.Sized
	for _, t := range all {
		sent, tokens := r.jobs[r.jobs[t.job].peer].ended, int64(r.jobs[t.job].prompt)
		if t.lo == t.hi {
			exact = append(exact, distribution.Sized{Tokens: tokens, Ns: int64(t.hi - sent)})
		}
		within = append(within, distribution.Sized{Tokens: tokens, Ns: int64(t.lo + (t.hi-t.lo)/2 - sent)})
	}
	if r.sizes = distribution.FitSize(exact); r.sizes.N == 0 {
		r.sizes = distribution.FitSize(within)
	}
	for _, t := range all {
		j := &r.jobs[t.job]
		if j.enter = t.hi; r.sizes.N > 0 {
			j.enter = min(max(r.jobs[j.peer].ended+trace.Time(r.sizes.Expected(int64(j.prompt))), t.lo), t.hi)
		}
	}
}

// computedAt reports whether a step was computing at a time after the boundary before it, which is so if one of its
// jobs was there by then. It works before the starts of steps are known.
func (r *Run) computedAt(e *Engine, k int, at trace.Time) bool {
	for _, m := range r.marksOf(&e.Steps[k]) {
		if j := &r.jobs[m.job]; m.kind.computed() && (j.from != int32(k) || j.queued < at) {
			return true
		}
	}
	return false
}

// tie is how far apart jobs arrive that enter a queue together, in ns.
const tie = 2000

// keepOrder makes jobs enter a queue in the order in which the scheduler put them there.
func (r *Run) keepOrder() {
	jobs := order.Sorted(len(r.jobs), func(a, b int) int {
		x, y := &r.jobs[a], &r.jobs[b]
		return cmp.Or(cmp.Compare(x.engine, y.engine), cmp.Compare(x.queued, y.queued))
	})
	jobs = slices.DeleteFunc(jobs, func(i int) bool { return r.jobs[i].from == None })
	for i := len(jobs) - 2; i >= 0; i-- {
		if x, next := &r.jobs[jobs[i]], &r.jobs[jobs[i+1]]; x.engine == next.engine {
			x.enter = min(x.enter, next.enter-tie)
		}
	}
}

// keep records the durations that the replay does not change: the way to a scheduler, the handshake, the transfer,
// and the join.
func (r *Run) keep() {
	for i := range r.allJobs() {
		j := &r.jobs[i]
		arrival := r.Requests[j.request].Arrival
		switch {
		case j.gaveUp:
			j.stays = int64(j.left - arrival)
		case j.left != 0:
			j.stays = max(1, int64(j.left-j.booked))
		}
		if j.way = int64(j.reach - arrival); j.role == request.Unified {
			j.way = int64(j.enter - arrival)
		}
		switch j.role {
		case request.Decode:
			if j.peer != None {
				j.sent = max(0, int64(j.enter-r.promptEnd(&r.jobs[j.peer])))
			} else {
				j.way = int64(j.enter - arrival)
			}
		case request.Prefill:
			if r.Coupled && j.peer != None && r.jobs[j.peer].booked != 0 {
				j.release = int64(j.enter - r.jobs[j.peer].booked)
			} else {
				j.way = int64(j.enter - arrival)
			}
		}
	}
	for i := range r.Engines {
		e := &r.Engines[i]
		for m := e.marks[0]; m < e.marks[1]; m++ {
			if r.marks[m].kind == joinEnd {
				j := &r.jobs[r.marks[m].job]
				joins := e.next(j.enter)
				if j.early = e.lag > 0; j.from != None && e.Steps[j.from].Start <= r.marks[m].end {
					joins, j.early = e.Steps[j.from].Start, false
				}
				j.prebuilt = min(max(1, int64(r.marks[m].end-joins)), 5*handling)
			}
		}
	}
}

// promptEnd returns when the lead rank ended the step that completed the prompt of a job. The job itself may have
// ended earlier, because the scheduler handles the requests of a batch one after another.
func (r *Run) promptEnd(j *job) trace.Time {
	e := &r.Engines[j.engine]
	k := sort.Search(len(e.Steps), func(i int) bool { return e.Steps[i].End >= j.ended })
	if k < len(e.Steps) && e.Steps[k].Kind == Prefill && e.Steps[k].Start < j.ended {
		return e.Steps[k].End
	}
	return j.ended
}

// next returns when a loop handles what arrives at a time: at once if it is idle, else at the next boundary.
func (e *Engine) next(t trace.Time) trace.Time {
	k := sort.Search(len(e.Steps), func(i int) bool { return e.Steps[i].Done >= t })
	if k == len(e.Steps) || e.Steps[k].Start >= t {
		return t
	}
	return e.Steps[k].Done
}
