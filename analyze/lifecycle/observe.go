package lifecycle

import (
	"cmp"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A server is a place where processes serve requests, one after another.
type server struct {
	at    place.Location // all of its ranks
	host  string
	stray bool // its rows have no host
	role  request.Role
	lives []*life // in order
}

// A life is the time of the processes of a server that work together, until others replace them.
type life struct {
	server      *server
	procs       []int
	pid         int64 // of its tokenizer, or else of its lowest rank; 0 is unknown
	first, last trace.Time
	until       trace.Time // the first sign of the next life, or the end of the dump, or the beginning of a hole
	cut         bool       // until is the beginning of a hole: what became of it was not recorded
	teams       []*team
	jobs        []job
	// nobodys are the ends of finished jobs that no rank has a row of: their rows are lost.
	nobodys []trace.Time
}

// A team is the ranks of a life that work on the same requests: those of one DP rank.
type team struct {
	life   *life
	number int32          // in the list of its life
	at     place.Location // the lowest of its ranks
	ends   []trace.Time
	last   trace.Time // its last sign
	stage  int        // row that ended last
	worked trace.Time // its last sign other than taking in requests
	work   int        // the row of that
	closed []request.Interval
	pause  int64 // ns: the longest without a sign, while it had requests in flight that ended later
}

// A job is the part of a request that one server has.
type job struct {
	request int
	start   trace.Time
	team    int32      // number in the life; None is unknown: no rank has a row of it
	first   trace.Time // first sign of its ranks; 0 without a team
	last    trace.Time
	ended   bool // the server ended it, or the user was answered
	blocked bool // it waits for the other half of the request, on another server
	resent  bool // the server did not end it, and the request was sent again
	moved   bool // to another server
}

// A slot identifies a process within a server: no two have the same one at a time.
type slot struct {
	label string
	rank  trace.Rank
}

// A serverKey identifies a server.
type serverKey struct {
	host   string
	role   request.Role
	number int
}

// An observer collects what the parts of requests show about servers.
type observer struct {
	set     *request.Set
	end     trace.Time         // of the dump
	holes   []request.Interval // times between files for which there is nothing
	servers []*server          // in the order of display
	lifeOf  []*life            // by proc; nil for those that serve nothing
	// nobodys are such ends where even the process is unknown, by role.
	nobodys  [request.Other + 1][]trace.Time
	refused  map[*server][]int // see refusals
	homeless []int             // see findHomeless
	// starts are the starts of jobs, in order, and pauses the longest pause of a team with requests in
	// flight, in ns, by role.
	starts [request.Other + 1][]trace.Time
	pauses [request.Other + 1]int64
}

func observe(s *request.Set) *observer {
	o := &observer{set: s, lifeOf: make([]*life, len(s.Procs))}
	o.findLives()
	open := s.OpenFinder()
	for p := range s.ServingParts {
		o.hear(p, open)
	}
	o.compare()
	o.refused = o.refusals()
	o.findHomeless()
	return o
}

// compare collects what servers are judged by, over all servers of a role.
func (o *observer) compare() {
	for _, t := range o.teams() {
		t.pause = t.longestPause()
		t.discountIntake(minWaiting)
		role := t.life.server.role
		o.pauses[role] = max(o.pauses[role], t.pause)
	}
	for _, x := range o.servers {
		for _, l := range x.lives {
			for k := range l.jobs {
				o.starts[x.role] = memory.Append(o.starts[x.role], l.jobs[k].start)
			}
		}
	}
	for role := range o.starts {
		slices.Sort(o.starts[role])
	}
}

// teams returns the teams of all lives.
func (o *observer) teams() (list []*team) {
	for _, s := range o.servers {
		for _, l := range s.lives {
			list = append(list, l.teams...)
		}
	}
	return list
}

// findLives divides the processes that serve into servers, and those of each into lives.
func (o *observer) findLives() {
	s := o.set
	first, last := o.signs()
	serves := make([]bool, len(s.Procs))
	for p := range s.ServingParts {
		if p.Proc != request.None {
			serves[p.Proc] = true
		}
		for _, t := range s.ThreadsOf(p) {
			serves[s.Threads[t].Proc] = serves[s.Threads[t].Proc] || s.OnScheduler(t)
		}
	}
	var of order.Groups[serverKey, []int]
	for p := range s.Procs {
		if !serves[p] || last[p] == 0 {
			continue
		}
		order.Add(&of, serverKey{s.Procs[p].Host, s.Procs[p].Role, s.Server(p)}, p)
	}
	for i, key := range of.Keys {
		procs := of.List[i]
		at := place.NewLocation(s, procs[0]).Team()
		at.Rank.DP = -1
		x := &server{at: at, host: s.HostOf(procs[0]), stray: s.Procs[procs[0]].Host == "", role: key.role}
		o.servers = append(o.servers, x)
		slices.SortStableFunc(procs, func(p, q int) int { return cmp.Compare(first[p], first[q]) })
		o.divide(x, procs, first, last)
	}
}

// signs returns the first and the last sign of each proc, and notes the end of the dump, and its holes.
func (o *observer) signs() (first, last []trace.Time) {
	s := o.set
	first, last = make([]trace.Time, len(s.Procs)), make([]trace.Time, len(s.Procs))
	files := make([]request.Interval, len(s.Files))
	for i := range s.All() {
		row := s.Row(i)
		if row.Kind == request.Duplicate || s.Implausible(i) {
			continue
		}
		o.end = max(o.end, row.End)
		f := &files[s.Sources[row.Source].File]
		f.From, f.To = order.Earlier(f.From, row.Start), max(f.To, row.End)
		if p := row.Proc; p != request.None {
			if last[p] == 0 || row.Start < first[p] {
				first[p] = row.Start
			}
			last[p] = max(last[p], row.End)
		}
	}
	o.holes = holesBetween(files)
	return first, last
}

// holesBetween returns the times between files, given from when to when each has something, that are too long to be between two parts
// of one capture.
func holesBetween(files []request.Interval) (holes []request.Interval) {
	const part = 10 // of the shorter one of the two sides
	slices.SortFunc(files, func(a, b request.Interval) int { return cmp.Compare(a.From, b.From) })
	var before request.Interval
	for _, f := range files {
		switch gap := f.From - before.To; {
		case f.To == 0:
		case before.To != 0 && gap >= minSilence && part*gap > min(before.To-before.From, f.To-f.From):
			holes = append(holes, request.Interval{From: before.To, To: f.From})
			before = f
		case before.To == 0:
			before = f
		default:
			before.To = max(before.To, f.To)
		}
	}
	return holes
}

// divide divides the procs of a server, which are in the order of their first signs, into lives: a new
// one begins with the first proc whose slot is taken. Two procs with one PID at the same time are one
// process with two exporters: SGLang's asynchronous tracing has its own.
func (o *observer) divide(x *server, procs []int, first, last []trace.Time) {
	var taken map[slot]int
	for _, p := range procs {
		proc := &o.set.Procs[p]
		at := slot{proc.Label, proc.Rank}
		q, ok := taken[at]
		same := ok && proc.PID != 0 && proc.PID == o.set.Procs[q].PID && first[p] <= last[q]
		if taken == nil || ok && !same {
			taken = map[slot]int{}
			x.lives = append(x.lives, &life{server: x, first: first[p], until: o.end})
		}
		taken[at] = p
		l := x.lives[len(x.lives)-1]
		l.procs, l.last = append(l.procs, p), max(l.last, last[p])
		o.lifeOf[p] = l
	}
	for i, l := range x.lives {
		if i+1 < len(x.lives) {
			l.until = x.lives[i+1].first
		}
		k, _ := slices.BinarySearchFunc(o.holes, l.last, func(h request.Interval, t trace.Time) int { return cmp.Compare(h.From, t) })
		if k < len(o.holes) && o.holes[k].From < l.until {
			l.until, l.cut = o.holes[k].From, true
		}
		slices.Sort(l.procs) // tokenizers first, then ranks
		l.pid = o.set.Procs[l.procs[0]].PID
	}
}

// hear notes what a part shows about its server. A part that is open when the gateway's span ends was given up, and has not ended.
func (o *observer) hear(p *request.Part, open *request.OpenFinder) {
	s := o.set
	q := &s.Requests[p.Request]
	j := job{request: p.Request, start: p.Start, team: request.None}
	var led *team
	lead := s.Lead(p)
	ended := p.Root != request.None
	var stage request.Meaning
	for _, t := range s.ThreadsOf(p) {
		th := &s.Threads[t]
		if l := o.lifeOf[th.Proc]; l != nil && s.OnScheduler(t) {
			of := l.teamOf(th.Proc, s)
			if row := of.hear(s, t, &j); t == lead {
				led, j.team, ended = of, of.number, ended || th.Row != request.None
				if row != nil {
					stage = row.Means
				}
			}
		}
	}
	_, goesOn := open.Of(p)
	j.ended = ended || q.Status == request.Finished && !goesOn
	j.blocked = waitsForOther(p.Role, stage) && !(p.Role == request.Decode && (o.prefilled(q) || o.takenIn(q)))
	l := o.lifeOfPart(p, led)
	switch {
	case l == nil && ended:
		o.nobodys[p.Role] = memory.Append(o.nobodys[p.Role], p.End)
		return
	case l == nil:
		return
	case led == nil && ended:
		l.nobodys = memory.Append(l.nobodys, p.End)
	case ended:
		led.closed = memory.Append(led.closed, request.Interval{From: p.Start, To: p.End})
	}
	if !ended {
		j.resent, j.moved = o.wasResent(p, l.server)
	}
	l.jobs = memory.Append(l.jobs, j)
}

// wasResent reports whether a server did the work of part p again later, and whether that is known to be another server than of.
func (o *observer) wasResent(p *request.Part, of *server) (resent, moved bool) {
	for _, k := range o.set.PartsOf(&o.set.Requests[p.Request]) {
		if other := &o.set.Parts[k]; other.Root != request.None && other.Role == p.Role && other.Start >= p.Start {
			if resent = true; other.Proc != request.None && o.lifeOf[other.Proc] != nil {
				moved = o.lifeOf[other.Proc].server != of
			}
		}
	}
	return resent, moved
}

// lifeOfPart returns the life that has a part; led is the team that worked on it, if known. nil is unknown.
func (o *observer) lifeOfPart(p *request.Part, led *team) *life {
	if led != nil {
		return led.life
	}
	if p.Proc != request.None {
		return o.lifeOf[p.Proc]
	}
	return nil
}

// prefilled reports whether the prefill half of a request has ended: its KV cache has arrived.
func (o *observer) prefilled(q *request.Request) bool {
	return slices.ContainsFunc(o.set.PartsOf(q), func(p int) bool { return o.set.Parts[p].Role == request.Prefill && o.set.Parts[p].Root != request.None })
}

// takenIn reports whether a prefill server is ready to connect for a request. From then on it is up to
// the decode server, which makes room for the KV cache before it connects.
func (o *observer) takenIn(q *request.Request) bool {
	return slices.ContainsFunc(o.set.PartsOf(q), func(p int) bool {
		part := &o.set.Parts[p]
		return part.Role == request.Prefill && slices.ContainsFunc(o.set.ThreadsOf(part), func(t int) bool { return o.set.LastStage(t, request.SendPreparing) != nil })
	})
}

// takesIn reports whether the halves of a request only find each other in a stage.
func takesIn(m request.Meaning) bool {
	return m == request.SendPreparing || m == request.ReceivePreparing || m == request.ReceiveConnecting
}

// waitsForOther reports whether a server has nothing to do for a part until the server with the other
// half of the request does something. last is the stage that ended last.
func waitsForOther(role request.Role, last request.Meaning) bool {
	return takesIn(last) || last == request.Prefilling && role == request.Prefill // the decode side must take the KV cache
}

// teamOf returns the team of a proc of a life.
func (l *life) teamOf(proc int, s *request.Set) *team {
	at := place.NewLocation(s, proc)
	i := slices.IndexFunc(l.teams, func(t *team) bool { return t.at.Rank.DP == at.Rank.DP })
	if i < 0 {
		i = len(l.teams)
		l.teams = append(l.teams, &team{life: l, number: int32(i), at: at, stage: request.None})
	}
	t := l.teams[i]
	if at.Rank.Compare(t.at.Rank) < 0 {
		t.at = at
	}
	return t
}

// hear notes the stages of a thread for a job. It returns the top-level stage that ended last; nil if
// there is none.
func (t *team) hear(s *request.Set, thread int, j *job) (last *request.Row) {
	s.EachStage(s.StagesOf(thread), func(i int) {
		row := s.Row(i)
		if s.Implausible(i) {
			return
		}
		t.ends = memory.Append(t.ends, row.End)
		if !takesIn(row.Means) && row.End >= t.worked {
			t.worked, t.work = row.End, i
		}
		j.first, j.last = order.Earlier(j.first, row.End), max(j.last, row.End)
		if row.End >= t.last {
			t.last, t.stage = row.End, i
		}
	})
	for _, i := range s.StagesOf(thread) {
		if row := s.Row(int(i)); last == nil || row.End >= last.End {
			last = row
		}
	}
	return last
}
