package serverlimit

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// What it takes for waiting requests to indicate a limit.
const (
	fewWaiting = 3    // the fewest requests that wait at a time
	fewServed  = 5    // the fewest that leave the queue in a spell while others still wait: fewer may just have arrived together
	nearlyAll  = 0.9  // of the waiting in a spell, for the limit to hold in it
	minor      = 0.05 // of the longest spell's waiting: spells with less are left out
	minShare   = 0.05 // of the E2E of the server's requests
	muchOf     = 0.7  // of the waiting
	halfOf     = 0.5  // of the waiting
	rarely     = 0.02 // of the waiting: for a moment both the request that leaves and the next one count
)

// A phase is the spells in which one limit of a server holds.
type phase struct {
	kind   Kind
	wait   state
	spells []spell
}

// limits finds the limits of a server. whole is the sum of the E2E of its requests, in ns.
func (v *server) limits(whole int64) []Limit {
	all := v.segments()
	var phases []*phase
	for _, wait := range [...]state{queued, awaitingCache} {
		for _, p := range spells(all, wait) {
			kind, ok := v.judge(&p)
			if !ok {
				continue
			}
			k := slices.IndexFunc(phases, func(h *phase) bool { return h.kind == kind && h.wait == wait })
			if k < 0 {
				k = len(phases)
				phases = append(phases, &phase{kind: kind, wait: wait})
			}
			phases[k].spells = append(phases[k].spells, p)
		}
	}
	var out []Limit
	for _, h := range phases {
		h.keepMain()
		limit := v.measure(h)
		if k := slices.IndexFunc(out, func(l Limit) bool { return l.Kind == limit.Kind }); k >= 0 {
			out[k].join(&limit)
		} else {
			out = append(out, limit)
		}
	}
	if limit, ok := v.sharedLink(all); ok {
		out = append(out, limit)
	}
	for i := range out {
		out[i].Share = float64(out[i].Waited) / float64(whole)
	}
	return slices.DeleteFunc(out, func(l Limit) bool { return l.Share < minShare })
}

// judge returns what requests wait for in a spell. ok is false if too few wait, or nothing explains it. It checks, in
// this order:
//
//   - The server throws out requests for others: these have priority.
//   - The server prefills nearly all the time.
//   - Nearly all the time, the same number of requests run: a place is taken as soon as it is free. Other limits let
//     this number vary, or few requests have all of the room and keep it. On a decode server, requests about to run may
//     hold a place, too.
//   - Requests wait for room in the KV cache, which others hold. A decode server says so itself. A unified server
//     either throws out requests meanwhile, or has time to compute prompts, which come first where possible, and does
//     not.
func (v *server) judge(p *spell) (kind Kind, ok bool) {
	if most, _ := p.most(func(s *segment) int32 { return s.n[p.wait] }); most < fewWaiting || v.countLeft(p) < fewServed {
		return 0, false
	}
	prefills := p.share(func(s *segment) bool { return s.n[prefilling] > 0 })
	places := p.weigh(takenBy[Running])
	stuck := places[places.usual()] / places.whole()
	slots := p.weigh(takenBy[Slots])
	either := p.share(func(s *segment) bool { return s.n[prefilling] > 0 || s.n[running] == int32(places.usual()) })
	switch {
	case preempts(v.preempted(v.retractsIn(p)), len(v.retractsIn(p))):
		return Preempted, true
	case v.location.Role != request.Decode && (prefills >= nearlyAll || either >= nearlyAll && prefills > stuck):
		return Prefills, true
	case v.location.Role == request.Prefill:
		return 0, false
	case either >= nearlyAll && stuck >= halfOf && places.beyond(places.usual()) <= rarely && len(v.holders(p.from(), p.to())) < max(1, places.usual()):
		return Running, true
	case p.wait == awaitingCache && slots.isStuck() && slots.usual() > 1: // a single request that fills the cache is not a limit on their number
		return Slots, true
	case p.share(func(s *segment) bool { return s.n[running]+s.n[queued]+s.n[transferring] > 0 }) < nearlyAll:
		return 0, false
	case p.wait == awaitingCache && !v.areFreed(p): // requests wait for their other half
		return 0, false
	case p.wait == awaitingCache || v.retractions(p) > 0 || prefills < muchOf:
		return Room, true
	}
	return 0, false
}

// takenBy returns the places of a server that are taken: by running requests, or by all requests that it has made
// room for.
var takenBy = map[Kind]func(s *segment) int32{
	Running: func(s *segment) int32 { return s.n[running] },
	Slots:   func(s *segment) int32 { return s.n[running] + s.n[queued] + s.n[transferring] },
}

// areFreed reports whether waits in a spell end when a running request ends and frees what they need: most of the
// waiting, weighted by its length, ends soon after that, and far more than would by chance.
func (v *server) areFreed(p *spell) bool {
	const soon = trace.Time(100e6) // a scheduler checks once a step
	var left []trace.Time
	for _, h := range v.intervals[running] {
		left = memory.Append(left, h.time.To)
	}
	slices.Sort(left)
	covered, last := trace.Time(0), p.from() // covered is the time in the spell that is soon after a request ended
	for _, t := range left {
		if from, to := max(t, last), min(t+soon, p.to()); from < to {
			covered, last = covered+to-from, to
		}
	}
	chance := float64(covered) / float64(p.to()-p.from())
	ended, after := 0.0, 0.0 // ns of waiting
	for _, h := range v.within(p) {
		k, _ := slices.BinarySearch(left, h.time.To+request.SameBatch) // both end with the same step
		waited := float64(h.time.To - h.time.From)
		if ended += waited; k > 0 && h.time.To-left[k-1] <= soon {
			after += waited
		}
	}
	return after/ended-chance >= halfOf*(1-chance)
}

// keepMain drops spells with little waiting compared with the longest one. If the limit is a number of places, it
// also drops spells that are stuck at another number: that is chance.
func (h *phase) keepMain() {
	longest := slices.MaxFunc(h.spells, func(x, y spell) int { return cmp.Compare(x.waited(), y.waited()) })
	least, of := int64(minor*float64(longest.waited())), takenBy[h.kind]
	h.spells = slices.DeleteFunc(h.spells, func(p spell) bool {
		return p.waited() < least || of != nil && p.weigh(of).usual() != longest.weigh(of).usual()
	})
}

// within returns the waits of a spell. None lies partly outside, because a spell ends when no request waits.
func (v *server) within(p *spell) []stateInterval {
	list := v.intervals[p.wait]
	from, _ := slices.BinarySearchFunc(list, p.from(), compareStart)
	to, _ := slices.BinarySearchFunc(list, p.to(), compareStart)
	return list[from:to]
}

func compareStart(h stateInterval, t trace.Time) int { return cmp.Compare(h.time.From, t) }

// countLeft counts the waits that end before the spell does.
func (v *server) countLeft(p *spell) int {
	return order.Count(v.within(p), func(h stateInterval) bool { return h.time.To < p.to() })
}

// retractions counts the requests thrown out in a spell.
func (v *server) retractions(p *spell) int { return len(v.retractsIn(p)) }

// retractsIn returns when requests were thrown out in a spell.
func (v *server) retractsIn(p *spell) []trace.Time {
	from, _ := slices.BinarySearch(v.retracts, p.from())
	to, _ := slices.BinarySearch(v.retracts, p.to())
	return v.retracts[from:to]
}

// preempted counts the retractions right before the prefill of another request, which they made room for. If the KV
// cache is full instead, the batch decodes its next token first.
func (v *server) preempted(retracts []trace.Time) (n int) {
	const atOnce = trace.Time(5e6) // until the scheduler has made the batch
	list := v.intervals[prefilling]
	for _, t := range retracts {
		if k, _ := slices.BinarySearchFunc(list, t, compareStart); k < len(list) && list[k].time.From <= t+atOnce {
			n++
		}
	}
	return n
}

// preempts reports whether nearly all retractions made room for other requests, and enough of them to rule out
// chance.
func preempts(preempted, all int) bool {
	const few = 3
	return preempted >= few && float64(preempted) >= nearlyAll*float64(all)
}

// Preempts reports whether requests are thrown out for others that are computed right away, and not because the KV
// cache is full.
func (l *Limits) Preempts() bool {
	n, all := 0, 0
	for _, v := range l.servers {
		n, all = n+v.preempted(v.retracts), all+len(v.retracts)
	}
	return preempts(n, all)
}

// measure sums up the spells of a limit.
func (v *server) measure(h *phase) Limit {
	l := Limit{Location: v.location, Kind: h.kind, Spells: len(h.spells), From: h.spells[0].from(), To: h.spells[len(h.spells)-1].to()}
	l.waits, l.shared = map[int]int64{}, map[int]int64{}
	whole := spell{wait: h.wait}
	for i := range h.spells {
		p := &h.spells[i]
		l.Length += int64(p.to() - p.from())
		l.Waited += p.waited()
		l.Retracted += v.retractions(p)
		for _, h := range v.within(p) {
			l.Requests = append(l.Requests, int(h.request))
			l.waits[int(h.request)] += int64(h.time.To - h.time.From)
		}
		if h.kind == Prefills {
			v.addShared(l.shared, p)
		}
		whole.segments = append(whole.segments, p.segments...)
	}
	l.Requests = order.Distinct(l.Requests)
	most, at := whole.most(func(s *segment) int32 { return s.n[h.wait] })
	l.Most, l.At = int(most), at
	l.Prefilling = whole.share(func(s *segment) bool { return s.n[prefilling] > 0 })
	ran := whole.weigh(takenBy[Running])
	l.Running = ran.mean()
	l.Fewest, l.Greatest = ran.bounds()
	if of := takenBy[h.kind]; of != nil {
		l.StuckAt = whole.weigh(of).usual()
	}
	return l
}

// addShared adds, by request, the part of the prefills that begin in a spell that goes into other prompts of the
// batch: prompts that pile up are computed together, and none gets its token before all are done.
func (v *server) addShared(shared map[int]int64, p *spell) {
	list := v.intervals[prefilling]
	k, _ := slices.BinarySearchFunc(list, p.from(), compareStart)
	for k < len(list) && list[k].time.From <= p.to()+request.SameBatch {
		first, tokens := k, int64(0)
		for ; k < len(list) && list[k].time.From <= list[first].time.From+request.SameBatch; k++ {
			tokens += list[k].tokens
		}
		for _, h := range list[first:k] {
			if tokens > 0 {
				shared[int(h.request)] += int64(float64(h.time.To-h.time.From) * (1 - float64(h.tokens)/float64(tokens)))
			}
		}
	}
}

// join adds waits for the same limit in another state: requests may wait for room, and then for their batch. The
// numbers about running requests stay those of the state with more waiting.
func (l *Limit) join(o *Limit) {
	if o.Waited > l.Waited {
		*l, *o = *o, *l
	}
	l.From, l.To = min(l.From, o.From), max(l.To, o.To)
	l.Waited += o.Waited
	l.Requests = append(l.Requests, o.Requests...)
	l.Requests = order.Distinct(l.Requests)
	for r, ns := range o.waits {
		l.waits[r] += ns
	}
}

// e2e returns the sum of the E2E of the requests that a server worked for, in ns.
func (v *server) e2e(s *request.Set) int64 {
	sum := v.open
	for _, r := range v.served {
		if e2e := s.Requests[r].Metrics.E2E; e2e > 0 && e2e <= request.LongestRequest {
			sum += e2e
		}
	}
	return sum
}

// arrivals returns when the first and the last request arrived, without those far from the others.
func arrivals(s *request.Set) (during request.Interval) {
	bulk := load.BulkOf(s)
	during.From = bulk.From
	for i := range s.AllRequests() {
		if r := &s.Requests[i]; bulk.Holds(r) {
			during.To = max(during.To, r.Start)
		}
	}
	return during
}

// dateWithin sets whether the limit holds from about the first arrival, and until about the last.
func (l *Limit) dateWithin(during request.Interval) {
	const edge = 20 // a margin of one twentieth of the time
	margin := (during.To - during.From) / edge
	l.Always, l.Open = l.From <= during.From+margin, l.To >= during.To-margin
}

// WouldSuffice reports whether no request would have waited at a limit of some kind if the servers at a place had
// been as fast as the others of their role. It is true if requests wait only at these servers, because the others
// serve as many without a queue. If they wait at the others, too, which take over some of the work, it is true if all
// servers at the rate of the others could have served all arrivals. With more arrivals than that, requests wait even
// if no server is slow.
func (l *Limits) WouldSuffice(slow *place.Location, kind string) bool {
	var own, others []*Limit
	for i := range l.List {
		switch x := &l.List[i]; {
		case x.Location.Role != slow.Role || x.Kind.String() != kind:
		case x.Location.Overlaps(slow):
			own = append(own, x)
		default:
			others = append(others, x)
		}
	}
	if len(own) == 0 || len(others) == 0 {
		return len(own) > 0
	}
	during := request.Interval{From: own[0].From, To: own[0].To}
	came, servers := 0, 0
	for _, v := range l.servers {
		if v.location.Role == slow.Role {
			n, _ := v.flow(l.set, during)
			came, servers = came+n, servers+1
		}
	}
	served := 0
	for _, v := range l.servers {
		if slices.ContainsFunc(others, func(x *Limit) bool { return x.Location == v.location }) {
			_, n := v.flow(l.set, during)
			served += n
		}
	}
	return came*len(others) <= served*servers
}

// MostlyBefore reports whether at least half of the waiting at limits of some kind, on servers of a role, is of
// requests that came before a time.
func (l *Limits) MostlyBefore(role request.Role, kind string, at trace.Time) bool {
	before, all := int64(0), int64(0)
	for i := range l.List {
		x := &l.List[i]
		if x.Location.Role != role || x.Kind.String() != kind {
			continue
		}
		for r, ns := range x.waits {
			all += ns
			if l.set.Requests[r].Start < at {
				before += ns
			}
		}
	}
	return 2*before >= all
}

// flow counts the requests that came to a server in a period, and those that it finished. A prefill server finishes
// them with the prefill.
func (v *server) flow(s *request.Set, during request.Interval) (came, served int) {
	for _, i := range v.served {
		r := &s.Requests[i]
		if r.Start >= during.From && r.Start < during.To {
			came++
		}
		if v.location.Role != request.Prefill && r.End >= during.From && r.End < during.To {
			served++
		}
	}
	if v.location.Role == request.Prefill {
		for _, h := range v.intervals[prefilling] {
			if h.time.To >= during.From && h.time.To < during.To {
				served++
			}
		}
	}
	return came, served
}

// A period is the time in which more observations are long than at other times.
type period struct {
	from, to                int        // observations [from, to)
	since, earliest, latest trace.Time // when it began, with 95 % bounds; 0 if from the beginning
	p                       float64    // probability of the change by chance; NaN if unknown
	over                    bool       // it ended before the last observation
	crowd                   bool       // it holds all long observations, and no test found it
}

// when says when the period was; "" if from the beginning to the end. until is when it was over, 0 for never.
func (p *period) when(until trace.Time) string {
	switch {
	case p.since == 0:
		return ""
	case until != 0:
		from, to := words.Tenths(p.since, until)
		return " between " + from + " and " + to
	}
	return " since " + words.When(p.since, p.earliest, p.latest)
}

// findPeriod finds the period. long says which observations, sorted by time, are long, and changes where their share
// changes.
func findPeriod(long []bool, changes []changepoint.Change, at func(k int) trace.Time) period {
	n, count := len(long), changepoint.Count(long)
	p := period{to: n, p: math.NaN()}
	largest, most := -1, 0.0
	for k := range changes {
		c := &changes[k]
		if rise := count.Share(c.At, c.To) - count.Share(c.From, c.At); rise > most {
			largest, most = k, rise
		}
	}
	if largest >= 0 {
		c := &changes[largest]
		p.from, p.to, p.p = c.At, c.To, c.P
		// It began between the last observation before it and its first.
		p.since = at(c.At-1) + (at(c.At)-at(c.At-1))/2
		p.earliest, p.latest = at(max(0, c.First-1)), at(c.Last)
		for _, later := range changes[largest+1:] {
			if count.Share(later.At, later.To)*2 > count.Share(p.from, p.to) {
				p.to = later.To
			}
		}
	}
	const hardly = 0.1 // of the share of long observations in the period
	if p.from > 0 {
		p.over = p.to < n && count.Share(p.to, n) <= hardly*count.Share(p.from, p.to)
	} else if first, last, ok := changepoint.Crowd(long, fewVisits); ok {
		p = period{from: first, to: last + 1, since: at(first), earliest: at(first - 1), latest: at(first), p: math.NaN(), crowd: true, over: n-1-last >= fewVisits}
	}
	return p
}
