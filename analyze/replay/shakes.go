package replay

import (
	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// findMissed lets jobs come after the boundary that they missed: their scheduler told of them soon after it,
// and computed without them, with room for more.
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

// shake works out how long the handshake of a decode half takes after its scheduler took it in,
// until it can have memory, and whether it gets that at a boundary only.
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

// nearNs is how long after a boundary memory is still given at it, in ns.
const nearNs = 300_000

// fitShakes sets the handshakes of requests that got memory at a boundary, or that waited for it: it
// is over by then, and takes what it usually takes as far as that explains it.
func (r *Run) fitShakes() {
	for i := range r.allJobs() {
		j, e := &r.jobs[i], &r.Engines[r.jobs[i].engine]
		if j.role != request.Decode || j.booked == 0 {
			continue
		}
		taken := e.next(j.reach)
		limited := e.limits.kv != unlimited
		soon := taken + trace.Time(2*r.shakes) // it could have memory by then, if there is any
		b := e.boundary(j.booked)
		if at := b > 0 && r.polled && e.Steps[b].Done >= taken && (j.booked-e.Steps[b].Done < nearNs || e.next(j.booked) > j.booked); at {
			j.booked = e.Steps[b].Done // the scheduler tells of it once it has dealt with all that came
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
		if limited { // what is longer is the wait for memory, which is played
			j.booking = min(j.booking, r.shakes)
		}
	}
}
