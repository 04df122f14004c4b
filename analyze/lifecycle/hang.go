package lifecycle

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// How long a server with something to do must show no sign for that to be more than a pause: longer
// than exporters hold spans back, and several times longer than any pause of a server of its role.
const (
	minSilence  = 5_000_000_000 // ns; how long OpenTelemetry's exporters hold spans back
	heldBack    = 500_000_000   // ns; how long SGLang's exporter does
	usualPauses = 3
	// minWaiting is how many requests that no rank has a row of show that a server hangs: fewer may be
	// queued, or their spans may be lost.
	minWaiting = 3
)

// An end is where work on some requests stopped, though the requests had not ended.
type end struct {
	life     *life
	team     *team      // the one that hangs; nil is the whole server
	since    trace.Time // its last sign
	by       trace.Time // when it would have shown another one, had it gone on
	inFlight []int      // requests that were on it: indices into Set.Requests, ascending
	refused  bool       // a gateway failed to reach the server, or lost it
	waiting  []int      // requests that were sent to it later, and are on no rank
}

// requests returns all requests that never ended.
func (e *end) requests() []int {
	return order.Distinct(slices.Concat(e.inFlight, e.waiting))
}

// hangs finds the teams that show no more signs though they have something to do, while others go on.
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
		return e, false // the whole server is gone: see death
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

// isQuiet reports whether more time passes between since and the end of a life, or of the dump, than in
// any pause.
func (l *life) isQuiet(since trace.Time, pause int64) bool {
	silent := int64(l.until - since)
	return silent >= minSilence && silent >= usualPauses*pause
}

// goesOn reports whether a job ended on a team after its last sign there, or on an unknown rank: then
// spans of the team may be lost.
func (t *team) goesOn(o *observer) bool {
	later := func(at trace.Time) bool { return at > t.last+request.SameBatch }
	return slices.ContainsFunc(t.closed, func(iv request.Interval) bool { return later(iv.To - heldBack) }) ||
		slices.ContainsFunc(t.life.nobodys, later) || slices.ContainsFunc(o.nobodys[t.life.server.role], later)
}

// inFlight returns the requests that were on a team at its last sign, and never ended. If blocked, it
// includes those that wait for their other half on another server.
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

// waiting returns the jobs that were sent to a team after its last sign and for which no rank has done
// anything, by start. If a tokenizer feeds several teams, it is unknown which team they went to: see
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

// One of several teams behind a tokenizer is stranded if requests that came after its own were
// answered, and it should have got a share of these.
const (
	overtakenBy = 5    // answered requests that came later
	byChance    = 1e-4 // probability that a team which goes on gets no request for so long
)

// stranded returns the waiting jobs of a life that were overtaken. It returns nil if the team may just
// have got none since its last sign.
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

// deaths finds the lives that ended with requests in flight: others took their place, or none of their
// processes shows a sign any more while others go on. It leaves out lives that hang.
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

// isRemnant reports whether a server consists only of rows without a host, while others of its role
// have hosts: rows that a process left behind when it died, which is reported for its host.
func (o *observer) isRemnant(x *server) bool {
	return x.stray && slices.ContainsFunc(o.servers, func(s *server) bool { return s.role == x.role && !s.stray })
}

// death judges one life.
func (o *observer) death(l *life) (end, bool) {
	e := end{life: l, since: l.last}
	pause := o.pauses[l.server.role]
	if (l.until == o.end || l.cut) && !l.isQuiet(l.last, pause) {
		return e, false
	}
	recent := l.last - trace.Time(max(usualPauses*pause, heldBack))
	var jobs []*job
	own := false // some of them wait for no other server
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
	e.by = min(l.until, l.last+heldBack) // its last work was never exported
	if own {
		e.by = min(l.until, e.by+trace.Time(o.nextSign(l.server.role)))
	}
	for _, i := range refused {
		e.by = min(e.by, max(e.since, o.set.Requests[i].End))
	}
	return e, own || e.refused
}

// refusedBy returns the requests that failed on the server of a life between its last sign, less the
// delay of exporters, and the next life.
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

// findHomeless finds the failed requests of which no server has a row, and for which no gateway says
// where it sent them: a server died before it handed any row on.
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
