package lifecycle

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// How long a server has to show no sign, with something to do, before that is more than a
// pause: longer than exporters hold spans back, and several times longer than ever before
// on any server of its role.
const (
	minSilence  = 5_000_000_000 // ns; the delay of OpenTelemetry's exporters
	heldBack    = 500_000_000   // ns; that of SGLang's
	usualPauses = 3
	// minWaiting is how many requests that no rank has a row of show that a server hangs:
	// fewer may be in a queue, or their spans are lost.
	minWaiting = 3
)

// An end is where the work of some requests ended, though they did not.
type end struct {
	life     *life
	team     *team      // that hangs; nil is the whole server
	since    trace.Time // its last sign
	by       trace.Time // when it had shown another one, had it gone on
	inFlight []int      // indexes into Set.Requests, ascending: those that were on it
	refused  bool       // a gateway failed to reach the server, or lost it
	waiting  []int      // those that were sent to it later, and are on no rank
}

// requests returns all that never ended.
func (e *end) requests() []int {
	return order.Distinct(slices.Concat(e.inFlight, e.waiting))
}

// hangs finds the teams that show no sign any more though they have something to do, while
// others go on.
func (o *observer) hangs() (list []end) {
	for _, t := range o.teams() {
		if e, ok := o.hang(t); ok {
			list = append(list, e)
		}
	}
	return list
}

// hang judges one team.
func (o *observer) hang(t *team) (end, bool) {
	e := end{life: t.life, team: t, since: t.last}
	pause := o.pauses[t.life.server.role]
	if t.goesOn(o) || t.life.isQuiet(t.life.last, pause) && t.life.last-t.last < minSilence {
		return e, false // all of the server is gone: see death
	}
	e.inFlight = t.inFlight(pause, false)
	busy := t.last
	waiting := o.waiting(t)
	if len(e.inFlight) == 0 {
		if len(waiting) < minWaiting {
			return e, false
		}
		busy = max(busy, waiting[0].start)
	}
	if !t.life.isQuiet(busy, pause) {
		return e, false
	}
	if t.discountIntake(1) {
		e.since, waiting = t.last, o.waiting(t)
	}
	e.by = e.life.until
	if len(t.inFlight(pause, false)) > 0 {
		e.by = min(e.by, e.since+trace.Time(o.nextSign(e.life.server.role)))
	}
	if len(waiting) > 0 {
		e.by = min(e.by, max(e.since, waiting[0].start+trace.Time(o.intake(e.life.server.role))))
	}
	e.inFlight = t.inFlight(pause, true)
	e.waiting = requestsOf(waiting)
	return e, true
}

// isQuiet reports whether the end of a life, or of the dump, is longer after a time than
// pauses are.
func (l *life) isQuiet(since trace.Time, pause int64) bool {
	silent := int64(l.until - since)
	return silent >= minSilence && silent >= usualPauses*pause
}

// goesOn reports whether a job ended on a team after its last sign there, or on nobody
// knows which rank: its spans are lost then.
func (t *team) goesOn(o *observer) bool {
	later := func(at trace.Time) bool { return at > t.last+request.SameBatch }
	return slices.ContainsFunc(t.closed, func(iv request.Interval) bool { return later(iv.To - heldBack) }) ||
		slices.ContainsFunc(t.life.nobodys, later) || slices.ContainsFunc(o.nobodys[t.life.server.role], later)
}

// inFlight returns the requests that were on a team at its last sign, and never ended: also
// those that wait for the other half of the request, if they are asked for.
func (t *team) inFlight(pause int64, blocked bool) []int {
	recent := t.last - trace.Time(max(usualPauses*pause, heldBack))
	var jobs []*job
	for k := range t.life.jobs {
		j := &t.life.jobs[k]
		if j.team == t.number && !j.ended && (blocked || !j.blocked) && j.start <= t.last && j.last >= recent {
			jobs = append(jobs, j)
		}
	}
	return requestsOf(jobs)
}

// requestsOf returns the requests of jobs, each once, ascending.
func requestsOf(jobs []*job) []int {
	return order.Distinct(order.Each(jobs, func(j *job) int { return j.request }))
}

// waiting returns the jobs that were sent to a team after its last sign and that no rank has
// done anything for, by start. Where a tokenizer feeds several teams, nobody knows to which one they went: see
// stranded.
func (o *observer) waiting(t *team) (jobs []*job) {
	for k := range t.life.jobs {
		j := &t.life.jobs[k]
		if (j.team == request.None || j.team == t.number) && !j.ended && j.start > t.last {
			jobs = append(jobs, j)
		}
	}
	slices.SortStableFunc(jobs, func(x, y *job) int { return cmp.Compare(x.start, y.start) })
	if len(t.life.teams) > 1 {
		return t.stranded(jobs)
	}
	return jobs
}

// Of several teams behind one tokenizer, one is stranded if others that came later have been
// answered, and it should have got a share of these.
const (
	overtakenBy = 5    // answered requests that came later
	byChance    = 1e-4 // that a team which goes on gets no request for so long
)

// stranded returns those of the waiting jobs of a life that have been overtaken; nil if the
// team may simply have got none since its last sign.
func (t *team) stranded(waiting []*job) []*job {
	var answered []trace.Time
	own, others := 0, 0
	for k := range t.life.jobs {
		j := &t.life.jobs[k]
		switch {
		case j.start <= t.last && j.team == t.number:
			own++
		case j.start <= t.last && j.team != request.None:
			others++
		case j.start > t.last && j.ended:
			answered = memory.Append(answered, j.start)
		}
	}
	share := float64(own) / float64(max(1, own+others))
	if len(answered) < overtakenBy || math.Pow(1-share, float64(len(answered)))*float64(len(t.life.teams)) > byChance {
		return nil
	}
	slices.Sort(answered)
	return slices.DeleteFunc(waiting, func(j *job) bool { return j.start >= answered[len(answered)-overtakenBy] })
}

// deaths finds the lives that ended with requests in flight: others took their place, or
// nothing comes from any of their processes any more while others go on. Those of hangs are
// not told again.
func (o *observer) deaths(hangs []end) (list []end) {
	for _, s := range o.servers {
		if o.isRemnant(s) {
			continue
		}
		for _, l := range s.lives {
			if slices.ContainsFunc(hangs, func(e end) bool { return e.life == l }) {
				continue
			}
			if e, ok := o.death(l); ok {
				list = append(list, e)
			}
		}
	}
	return list
}

// isRemnant reports whether a server is only what nobody knows the host of, while others of its
// role have one: rows that a process left behind when it died, and that is told there.
func (o *observer) isRemnant(x *server) bool {
	return x.at.Host == naming.Unknown && slices.ContainsFunc(o.servers, func(s *server) bool { return s.role == x.role && s.at.Host != naming.Unknown })
}

// death judges one life.
func (o *observer) death(l *life) (end, bool) {
	e := end{life: l, since: l.last}
	pause := o.pauses[l.server.role]
	if l.until == o.end && !l.isQuiet(l.last, pause) {
		return e, false
	}
	recent := l.last - trace.Time(max(usualPauses*pause, heldBack))
	var jobs []*job
	own := false // some of them wait for nobody else
	for k := range l.jobs {
		j := &l.jobs[k]
		failed := o.set.Requests[j.request].Status == request.Failed
		if !j.ended && j.start <= l.last && (failed || max(j.start, j.last) >= recent) {
			jobs = append(jobs, j)
			own = own || !j.blocked
		}
	}
	refused := o.refusedBy(l)
	e.refused = len(refused) > 0
	e.inFlight = slices.Concat(requestsOf(jobs), refused, o.brokenOff(l.last))
	e.inFlight = order.Distinct(e.inFlight)
	e.by = min(l.until, l.last+heldBack) // what it did last was never exported
	if own {
		e.by = min(l.until, e.by+trace.Time(o.nextSign(l.server.role)))
	}
	for _, i := range refused {
		e.by = min(e.by, max(e.since, o.set.Requests[i].End))
	}
	return e, own || e.refused
}

// refusedBy returns the requests that failed on the server of a life from its last sign on, less
// what exporters may have held back, until the next life.
func (o *observer) refusedBy(l *life) (list []int) {
	for _, i := range o.refused[l.server] {
		q := &o.set.Requests[i]
		if q.End >= l.last-heldBack && q.Start < l.until {
			list = append(list, i)
		}
	}
	return list
}

// brokenOff returns the homeless requests that were under way at a time.
func (o *observer) brokenOff(at trace.Time) (list []int) {
	for _, i := range o.homeless {
		if q := &o.set.Requests[i]; q.Start <= at && q.End >= at {
			list = append(list, i)
		}
	}
	return list
}

// findHomeless finds the requests that failed, and of which no server has a row, nor does a
// gateway say to which one it sent them: it died before it handed on any.
func (o *observer) findHomeless() {
	known := map[int]bool{}
	for _, list := range o.refused {
		for _, i := range list {
			known[i] = true
		}
	}
	for i := range o.set.AllRequests() {
		q := &o.set.Requests[i]
		if q.Status == request.Failed && !known[i] && !slices.ContainsFunc(o.set.PartsOf(q), func(p int) bool { return o.set.Parts[p].Serves() }) {
			o.homeless = append(o.homeless, i)
		}
	}
}
