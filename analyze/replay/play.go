package replay

import (
	"math/rand/v2"
	"slices"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// An event is something that happens during a replay.
type event struct {
	at   trace.Time
	seq  int32 // breaks ties: the smaller one is first
	what eventKind
	of   int32 // job, server, or request
}

type eventKind uint8

const (
	arrives eventKind = iota // a request arrives
	reaches                  // a job reaches its scheduler
	shakes                   // the handshake of a decode half is over, so that it can get memory
	enters                   // a job can be put into a batch
	leaves                   // a job that never gets a token leaves
	ends                     // a step of a server ends
	wakes                    // the loop of an idle server wakes up
)

func (e event) before(f event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// An agenda is a heap of events.
type agenda struct {
	list []event
	seq  int32
}

func (a *agenda) add(at trace.Time, what eventKind, of int) {
	a.seq++
	a.list = append(a.list, event{at, a.seq, what, int32(of)})
	for i := len(a.list) - 1; i > 0; {
		above := (i - 1) / 2
		if !a.list[i].before(a.list[above]) {
			break
		}
		a.list[i], a.list[above] = a.list[above], a.list[i]
		i = above
	}
}

func (a *agenda) pop() event {
	e, n := a.list[0], len(a.list)-1
	a.list[0] = a.list[n]
	a.list = a.list[:n]
	for i := 0; ; {
		next := 2*i + 1
		if next >= n {
			return e
		}
		if next+1 < n && a.list[next+1].before(a.list[next]) {
			next++
		}
		if !a.list[next].before(a.list[i]) {
			return e
		}
		a.list[i], a.list[next] = a.list[next], a.list[i]
		i = next
	}
}

// A playing is the state of a job during a replay.
type playing struct {
	server      int32
	left        int32 // prompt tokens still to compute
	out         int32 // number of times that tokens have come out
	held        int64 // tokens in the KV cache
	first, last trace.Time
	here        bool // it has reached its scheduler
	gone        bool // it has left without a token
	booked      trace.Time
	come        trace.Time // when it reached its scheduler
	lined       trace.Time // its position in the queue, among jobs that arrive during one step
}

// A player replays a plan.
type player struct {
	*Run
	plan    *Plan
	rng     *rand.Rand
	agenda  agenda
	servers []serving
	jobs    []playing
	groups  map[int32][]int32 // indexes of the servers of each group
	turn    map[int32]int
}

// A serving is the state of a server during a replay.
type serving struct {
	*Server
	index   int // index in player.servers
	cursors [kinds]cursor
	busy    bool
	woken   bool // it is idle, and about to look at what has arrived

	inbox    []int32 // decode halves that the scheduler has not seen yet
	pending  []int32 // decode halves without memory
	returned []int32 // decode halves thrown out of the batch
	unseen   []int32 // jobs that arrived since the last boundary, if batches are formed ahead
	waiting  []int32 // in the order of the queue
	running  []int32
	chunked  int32 // the job whose prompt is partly computed
	batch    []portion
	kind     Kind
	began    trace.Time // when the current step began, and the loop looked at what had arrived
	looked   int        // number of waiting jobs at that time
	told     trace.Time // when the lead rank ends the step
	kv       int64
	context  float64
	load     int // requests sent to it that have not ended
}

// A portion is the part of a job that a step computes.
type portion struct {
	job    int32
	tokens int32
	last   bool
}

func newPlayer(r *Run, plan *Plan) *player {
	p := &player{Run: r, plan: plan, rng: rand.New(rand.NewPCG(plan.Seed, 39)), jobs: make([]playing, len(r.jobs)), servers: make([]serving, len(plan.Servers)),
		groups: map[int32][]int32{}, turn: map[int32]int{}}
	for i := range plan.Servers {
		s := &plan.Servers[i]
		x := &p.servers[i]
		x.Server, x.index, x.chunked = s, i, None
		for k := range kinds {
			x.cursors[k] = cursor{timing: &s.timing[k], luck: plan.Seed != 0}
		}
		if r.Engines[s.Engine].Leads && !s.Off {
			p.groups[s.Group] = append(p.groups[s.Group], int32(i))
		}
	}
	for i := range r.allJobs() {
		p.jobs[i] = playing{server: r.jobs[i].engine, left: r.jobs[i].fresh}
	}
	for i, at := range plan.Arrivals {
		p.agenda.add(at, arrives, i)
	}
	return p
}

func (p *player) run() {
	for len(p.agenda.list) > 0 {
		switch e := p.agenda.pop(); e.what {
		case arrives:
			p.arrive(&p.Requests[e.of], e.at)
		case reaches:
			p.reach(e.of, e.at)
		case shakes:
			v := &p.servers[p.jobs[e.of].server]
			v.pend(p, e.of)
			if !v.busy || !p.polled {
				p.book(v, e.at)
			}
		case enters:
			p.enter(e.of, e.at)
		case leaves:
			v, x := &p.servers[p.jobs[e.of].server], &p.jobs[e.of]
			x.gone = true
			v.load--
			p.release(v, x)
			p.wake(v, e.at)
		case wakes:
			x := &p.servers[e.of]
			x.woken = false
			p.iterate(x, e.at)
		case ends:
			x := &p.servers[e.of]
			p.complete(x, e.at)
			p.iterate(x, e.at)
			if len(x.unseen) > 0 {
				if p.see(x, e.at); !x.busy {
					p.iterate(x, e.at)
				}
			}
		}
	}
}

// arrive sends the jobs of a request to their servers.
func (p *player) arrive(q *Request, at trace.Time) {
	for _, i := range q.jobs {
		if i == None {
			continue
		}
		j, x := &p.Run.jobs[i], &p.jobs[i]
		x.server = p.route(j)
		p.servers[x.server].load++
		p.agenda.add(at+trace.Time(j.way), reaches, int(i))
		if j.gaveUp {
			p.agenda.add(at+trace.Time(j.stays), leaves, int(i))
		}
	}
}

// like returns the job whose random errors a job gets: its own if Seed is 0, else those of a nearby job in the same
// role.
func (p *player) like(i int32) *job {
	j := &p.Run.jobs[i]
	if p.plan.Seed == 0 {
		return j
	}
	k := i + int32(p.rng.IntN(4*window+1)-2*window) // times 2, as most requests have two jobs
	if k >= 0 && int(k) < len(p.Run.jobs) {
		if x := &p.Run.jobs[k]; x.role == j.role && (x.peer == None) == (j.peer == None) && !x.gaveUp {
			return x
		}
	}
	return j
}

// route chooses the server of a job.
func (p *player) route(j *job) int32 {
	group := p.Engines[j.engine].Group
	servers, routing := p.groups[group], p.plan.Routes[group]
	if routing.How == Recorded || len(servers) == 0 {
		return j.engine
	}
	if p.Requests[j.request].Arrival < routing.Since {
		p.turn[group] = slices.Index(servers, j.engine) + 1
		return j.engine
	}
	at := p.turn[group] % len(servers)
	p.turn[group]++
	switch routing.How {
	case RoundRobin:
		return servers[at]
	case Random:
		return servers[p.rng.IntN(len(servers))]
	}
	rest := slices.Concat(servers[at:], servers[:at]) // ties are broken in turn
	return slices.MinFunc(rest, func(a, b int32) int { return p.servers[a].load - p.servers[b].load })
}

// reach handles a job that reaches its scheduler.
func (p *player) reach(i int32, at trace.Time) {
	j, x := &p.Run.jobs[i], &p.jobs[i]
	x.here, x.come = true, at
	switch {
	case j.role == request.Decode && (j.peer != None || j.gaveUp):
		v := &p.servers[x.server]
		v.inbox = append(v.inbox, i)
		if !v.busy {
			p.takeIn(v, at)
			p.book(v, at)
		}
	case j.role == request.Prefill && p.held(j):
		if booked := p.jobs[j.peer].booked; booked != 0 {
			p.agenda.add(max(at, booked+trace.Time(j.release)), enters, int(i))
		}
	default:
		p.enter(i, at)
	}
}

// enter puts a job into the queue of its server, or among those that it has not seen yet.
func (p *player) enter(i int32, at trace.Time) {
	v := &p.servers[p.jobs[i].server]
	if v.busy && v.lag > 0 {
		v.unseen = append(v.unseen, i)
		return
	}
	v.line(p, i, at)
	p.wake(v, at)
}

// line puts a job into the queue. A busy loop looks at what has arrived at the end of its step, in order of arrival.
// For a job that it had not seen before, that is when the job itself came, and for others, when what they were
// waiting for came.
func (v *serving) line(p *player, i int32, at trace.Time) {
	x := &p.jobs[i]
	x.lined = at
	if x.come > v.began {
		x.lined = x.come
	}
	v.waiting = append(v.waiting, i)
	for k := len(v.waiting) - 1; v.busy && k > v.looked && p.jobs[v.waiting[k-1]].lined > x.lined; k-- {
		v.waiting[k-1], v.waiting[k] = v.waiting[k], v.waiting[k-1]
	}
}

// see moves unseen jobs into the queue, from which the step after the next one is formed.
func (p *player) see(v *serving, at trace.Time) {
	for _, i := range v.unseen {
		if p.Run.jobs[i].early {
			p.prebuilt(v, i, at)
		}
	}
	v.waiting = append(v.waiting, v.unseen...)
	v.unseen = v.unseen[:0]
}

// held reports whether a prefill half has to wait for its decode half.
func (p *player) held(j *job) bool {
	return p.Coupled && j.peer != None && p.Run.jobs[j.peer].booked != 0
}

// takeIn begins the handshakes of the decode halves that have arrived.
func (p *player) takeIn(v *serving, at trace.Time) {
	for _, i := range v.inbox {
		if took := p.like(i).booking; took > 0 {
			p.agenda.add(at+trace.Time(took), shakes, int(i))
		} else {
			v.pend(p, i)
		}
	}
	v.inbox = v.inbox[:0]
}

// pend lets a decode half wait for memory, in order of arrival.
func (v *serving) pend(p *player, i int32) {
	v.pending = append(v.pending, i)
	for k := len(v.pending) - 1; k > 0 && p.jobs[v.pending[k-1]].come > p.jobs[i].come; k-- {
		v.pending[k-1], v.pending[k] = v.pending[k], v.pending[k-1]
	}
}

// book grants memory to decode halves, in order. None gets any while a retracted one needs it.
func (p *player) book(v *serving, at trace.Time) {
	n := 0
	for ; n < len(v.pending) && len(v.returned) == 0; n++ {
		i := v.pending[n]
		j, x := &p.Run.jobs[i], &p.jobs[i]
		need := int64(j.prompt) + 1
		if x.gone {
			continue
		}
		if v.limits.kv != unlimited && v.kv+need > v.limits.kv {
			break
		}
		if j.gaveUp && j.booked == 0 {
			continue // it is unknown how long it would have taken
		}
		p.hold(v, x, int64(j.prompt))
		x.booked = at
		if j.stays > 0 && !j.gaveUp {
			p.agenda.add(at+trace.Time(j.stays), leaves, int(i))
		}
		if j.peer == None {
			continue
		}
		k := &p.Run.jobs[j.peer]
		if p.held(k) && p.jobs[j.peer].here {
			p.agenda.add(max(at, x.booked+trace.Time(k.release)), enters, int(j.peer))
		}
	}
	v.pending = v.pending[n:]
}

func (p *player) hold(v *serving, x *playing, tokens int64) {
	x.held += tokens
	v.kv += tokens
}

func (p *player) release(v *serving, x *playing) {
	v.kv -= x.held
	x.held = 0
}

// wake lets an idle loop look at what has arrived, after everything that arrives at the same time.
func (p *player) wake(v *serving, at trace.Time) {
	if !v.busy && !v.woken {
		v.woken = true
		p.agenda.add(at, wakes, v.index)
	}
}
