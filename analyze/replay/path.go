package replay

import (
	"math"
	"slices"
	"sort"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// WaitReason is a reason for waiting on a request's critical path.
type WaitReason uint8

const (
	Dispatching  WaitReason = iota // on the way to a scheduler: gateway, tokenizer
	Booking                        // for KV cache on its decode server
	Queueing                       // behind steps of others, before its first step
	Prefilling                     // its own prefill
	Transferring                   // its KV transfer
	Joining                        // for the current step to end, before it joins one
	Decoding                       // its own decode steps
	HeldUp                         // others' prefills between its decode steps
	LateRank                       // for a rank that ends a step after all others
	Collective                     // for a rank that comes last to collectives of a step, from profiles; see package critical
	Returning                      // after its last token
)

// String returns the word that reports print.
func (w WaitReason) String() string {
	return [...]string{"dispatch", "kv cache", "queue", "prefill", "transfer", "join", "decode", "held up", "late rank", "collective", "return"}[w]
}

// A Segment is a part of the critical path of a request. It begins where the previous one ends.
type Segment struct {
	Why   WaitReason
	Until trace.Time
	Place int // the rank waited for, for [Run.PlaceName]; None
	From  int // the rank that sends the KV cache waited for; None
	// Other is the request with the most tokens in the batch waited for, an index into Run.Requests, and Tokens is
	// how many it has there. It is None if the batch is the request's own.
	Other  int
	Tokens int64
}

// PlaceName names the rank of a segment; "" for None.
func (r *Run) PlaceName(place int) string {
	if place == None {
		return ""
	}
	return r.ranks.Places[place].String()
}

// PlaceOf returns the rank that a name in a profile means, for [Run.PlaceName]. host breaks ties; it is "" if
// unknown. PlaceOf returns None if no rank, or more than one, matches.
func (r *Run) PlaceOf(name, host string) int {
	var all, there []int
	named := place.Named(name)
	for i := range r.ranks.Places {
		at := &r.ranks.Places[i]
		if at.String() == name {
			return i
		}
		if named.Rank != trace.NoRank && named.Overlaps(at) {
			if all = append(all, i); at.Host == host {
				there = append(there, i)
			}
		}
	}
	for _, list := range [][]int{there, all} {
		if len(list) == 1 {
			return list[0]
		}
	}
	return None
}

// EngineOf returns the rank whose scheduler leads the team of a rank; None if there is none.
func (r *Run) EngineOf(place int) int {
	if list := r.In(&r.ranks.Places[place]); len(list) > 0 {
		return list[0]
	}
	return None
}

// RID returns the ID of a request.
func (r *Run) RID(q int) string {
	if q == None {
		return ""
	}
	return r.set.Text(r.set.Requests[r.Requests[q].Index].RID)
}

// E2E returns the E2E latency of a request, in ns.
func (r *Run) E2E(q int) int64 { return r.set.Requests[r.Requests[q].Index].Metrics.E2E }

// A pathWalk builds the critical path of one request.
type pathWalk struct {
	*Run
	out     []Segment
	at, end trace.Time
	request int
	from    int // as in [Segment]
}

// Path returns the critical path of a request for which [Run.Whole] says that there is one: what it waited for from
// its arrival to its end. Its segments add up to E2E.
func (r *Run) Path(q int) []Segment {
	const tables = 4 // requests, jobs, steps, and marks
	memory.Touch(tables * memory.FarApart)
	req := &r.Requests[q]
	w := &pathWalk{Run: r, at: req.Arrival, request: q, from: None}
	w.end = req.Arrival + trace.Time(r.E2E(q))
	first, answer := req.jobs[0], r.answer(req)
	if first == None {
		first = answer
	}
	a, b := &r.jobs[first], &r.jobs[answer]
	w.add(Segment{Why: Dispatching, Until: a.reach, Place: int(a.engine), Other: None})
	if a != b && b.booked != 0 && r.Coupled {
		w.add(Segment{Why: Booking, Until: b.booked, Place: int(b.engine), Other: None})
	}
	if a.from != None && a.role != request.Decode {
		w.queue(a)
		w.prefill(a)
	}
	if a != b {
		arrived := b.enter
		if b.tokens == 0 { // nobody checked whether it could be put into a batch
			arrived = b.queued
		}
		w.from = int(a.engine)
		w.add(Segment{Why: Transferring, Until: arrived, Place: int(b.engine), Other: None})
		w.from = None
		w.add(Segment{Why: Joining, Until: b.first, Place: int(b.engine), Other: None})
	}
	if b.from != None {
		w.decode(b)
	}
	if w.Untraced(q) {
		w.add(Segment{Why: Decoding, Until: w.set.Threads[b.thread].End, Place: int(b.engine), Other: None})
	}
	w.add(Segment{Why: Returning, Until: w.end, Place: None, Other: None})
	return w.out
}

// Untraced reports whether a request produced tokens in steps that were not traced, which takes trace level 3.
func (r *Run) Untraced(q int) bool {
	j := &r.jobs[r.answer(&r.Requests[q])]
	return j.tokens <= 1 && r.set.Parts[j.part].CompletionTokens > int64(j.tokens)
}

// add adds a segment, cut at the end of the request.
func (w *pathWalk) add(s Segment) {
	s.Until, s.From = min(s.Until, w.end), w.from
	if s.Until <= w.at {
		return
	}
	w.at = s.Until
	w.out = append(w.out, s)
}

// queue adds the steps that a job waits for.
func (w *pathWalk) queue(j *job) {
	e := &w.Engines[j.engine]
	for k := w.next(e); k < int(j.from); k++ {
		w.behind(Queueing, int(j.engine), k)
	}
	w.add(Segment{Why: Queueing, Until: e.Steps[j.from].Start, Place: int(j.engine), Other: None})
}

// next returns the first step of an engine that ends after w.at.
func (w *pathWalk) next(e *Engine) int {
	return sort.Search(len(e.Steps), func(i int) bool { return e.Steps[i].Done > w.at })
}

// behind adds a step of other requests.
func (w *pathWalk) behind(why WaitReason, at, k int) {
	st := &w.Engines[at].Steps[k]
	s := Segment{Why: why, Until: st.Done, Place: at, Other: None}
	if st.Kind == Prefill {
		s.Other, s.Tokens = w.largest(st)
	}
	w.add(s)
}

// largest returns the other request with the most tokens in a prefill step.
func (w *pathWalk) largest(st *Step) (other int, tokens int64) {
	other = None
	for _, m := range w.marks[st.marks[0]:st.marks[1]] {
		j := &w.jobs[m.job]
		if n := min(int64(j.fresh), st.New); m.kind.computed() && int(j.request) != w.request && n > tokens {
			other, tokens = int(j.request), n
		}
	}
	return other, tokens
}

// prefill adds the steps that compute a job's prompt, and the steps between its chunks.
func (w *pathWalk) prefill(j *job) {
	e := &w.Engines[j.engine]
	for k := int(j.from); k < len(e.Steps) && w.at < j.ended; k++ {
		st := &e.Steps[k]
		if !slices.ContainsFunc(w.marks[st.marks[0]:st.marks[1]], func(m mark) bool { return m.kind.computed() && &w.jobs[m.job] == j }) {
			w.behind(HeldUp, int(j.engine), k)
			continue
		}
		s := Segment{Why: Prefilling, Until: min(st.Done, j.ended), Place: int(j.engine), Other: None}
		if other, tokens := w.largest(st); tokens > int64(j.fresh) { // the step mostly computes another prompt
			s.Other, s.Tokens = other, tokens
		}
		w.add(s)
	}
	w.add(Segment{Why: Prefilling, Until: j.ended, Place: int(j.engine), Other: None})
}

// decode adds the decode steps of a job, the time in them that is spent waiting for the last rank, and others'
// prefills between them.
func (w *pathWalk) decode(j *job) {
	e := &w.Engines[j.engine]
	w.add(Segment{Why: Decoding, Until: j.first, Place: int(j.engine), Other: None})
	for k := w.next(e); k < len(e.Steps) && w.at < j.last; k++ {
		st := &e.Steps[k]
		if st.Kind == Prefill {
			w.behind(HeldUp, int(j.engine), k)
			continue
		}
		known := st.second != math.MinInt32
		done := st.End + trace.Time(max(st.second, math.MinInt32/2))
		if known && done < st.Done {
			w.add(Segment{Why: Decoding, Until: min(done, j.last), Place: int(j.engine), Other: None})
			w.add(Segment{Why: LateRank, Until: min(st.Done, j.last), Place: int(st.worst), Other: None})
			continue
		}
		w.add(Segment{Why: Decoding, Until: min(st.Done, j.last), Place: int(j.engine), Other: None})
	}
	w.add(Segment{Why: Decoding, Until: j.last, Place: int(j.engine), Other: None})
}

// Whole returns the requests that have a critical path, slowest first: those with all spans, except that those of
// decode steps may be missing.
func (r *Run) Whole() []int {
	var keys []order.Key
	for i := range r.allRequests() {
		if r.Requests[i].whole {
			keys = memory.Append(keys, order.Key{Time: order.Descending(r.E2E(i)), Index: uint32(i)})
		}
	}
	keys, _ = order.ByTime(keys, memory.Make[order.Key](len(keys)))
	return order.EachRow(keys, func(x *order.Key) int { return int(x.Index) })
}

// Find returns the index in Run.Requests of a request of the set if it has a critical path, or None.
func (r *Run) Find(index int) int {
	if q := int(r.places[index]); q != None && r.Requests[q].whole {
		return q
	}
	return None
}

// Stage returns the row of the set that ends with a segment of request q: a row of the request waited for, on the
// rank waited for. It returns request.None if there is none.
func (r *Run) Stage(q int, s *Segment) int {
	if s.Place == None || s.Why == Dispatching || s.Why == Returning {
		return request.None
	}
	if s.Other != None {
		q = s.Other
	}
	found, nearest := request.None, trace.Time(handling)
	for _, p := range r.set.PartsOf(&r.set.Requests[r.Requests[q].Index]) {
		for _, t := range r.set.ThreadsOf(&r.set.Parts[p]) {
			if int(r.ranks.Of[r.set.Threads[t].Proc]) != s.Place {
				continue
			}
			r.set.EachStage(r.set.StagesOf(t), func(i int) {
				if off := r.set.Row(i).End - s.Until; max(off, -off) < nearest {
					found, nearest = i, max(off, -off)
				}
			})
		}
	}
	return found
}

// findMissed delays jobs that missed a boundary until after it: the scheduler recorded them soon after the boundary
// and computed a step without them, though it had room.
func (r *Run) findMissed() {
	for i := range r.allJobs() {
		j, e := &r.jobs[i], &r.Engines[r.jobs[i].engine]
		if j.from < 1 || j.role == request.Decode || e.lag > 0 {
			continue
		}
		if st := &e.Steps[j.from-1]; st.Kind == Prefill && j.enter <= st.Start && j.queued > st.Start && 10*st.New < 9*e.limits.chunk {
			j.enter = j.queued
		}
	}
}

// shake finds how long the handshake of a decode half takes, from when its scheduler takes it in until it can get
// memory, and whether memory is granted only at boundaries.
func (r *Run) shake() {
	var free, polled, busy []int64
	for i := range r.allJobs() {
		j, e := &r.jobs[i], &r.Engines[r.jobs[i].engine]
		if j.role != request.Decode || j.booked == 0 {
			continue
		}
		taken := e.next(j.reach)
		j.booking = max(0, int64(j.booked-taken))
		if e.next(j.booked-1) == j.booked-1 {
			free = append(free, j.booking)
		} else if b := e.boundary(j.booked); b != None && e.Steps[b].Done > taken {
			if busy = append(busy, j.booking); j.booked-e.Steps[b].Done < nearNs {
				polled = append(polled, j.booking)
			}
		}
	}
	r.polled = len(polled) > 0 && 2*len(polled) > len(busy)
	if len(free) > 0 {
		r.shakes = distribution.LowerMedian(free)
	}
}

// nearNs is how long after a boundary a grant of memory still belongs to it, in ns.
const nearNs = 300_000

// fitShakes sets the handshakes of requests that got memory at a boundary, or waited for it. The handshake is over by
// then, and is assumed to take its usual time if that is consistent with the record.
func (r *Run) fitShakes() {
	for i := range r.allJobs() {
		j, e := &r.jobs[i], &r.Engines[r.jobs[i].engine]
		if j.role != request.Decode || j.booked == 0 {
			continue
		}
		taken := e.next(j.reach)
		limited := e.limits.kv != unlimited
		soon := taken + trace.Time(2*r.shakes) // when it could get memory, if there is any
		b := e.boundary(j.booked)
		if at := b > 0 && r.polled && e.Steps[b].Done >= taken && (j.booked-e.Steps[b].Done < nearNs || e.next(j.booked) > j.booked); at {
			j.booked = e.Steps[b].Done // the scheduler records it only after dealing with everything that arrived
			if j.booked == taken {
				j.booking = 0
				continue
			}
			if !limited || e.Steps[b].Start <= soon {
				lo, hi := e.between(b)
				lo = min(max(lo, e.Steps[b].Start+(hi-lo)/64), hi)
				j.booking = int64(min(max(taken+trace.Time(r.shakes), lo), hi) - taken)
				continue
			}
		}
		if limited { // the rest is the wait for memory, which is simulated
			j.booking = min(j.booking, r.shakes)
		}
	}
}
