package lifecycle

import (
	"cmp"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// What happens to servers.
const (
	Start   = "start"   // its first sign, unless it may have been idle before by chance
	Drain   = "drain"   // the last sign of processes that are replaced; all requests had ended
	Restart = "restart" // the first sign of the processes that replace others
	Stop    = "stop"    // the last sign of a server that gets no more requests; all requests had ended
	Hang    = "hang"    // the last sign of a server that is sent requests and ends none
	Death   = "death"   // the last sign of a server, with requests in flight that never ended

	// Unseen is the subkind of findings about servers that still run, though the dump has nothing more from them. Their event is Stop.
	Unseen = "unseen"
	// LeftOut is that of servers that get nothing for a while, again and again.
	LeftOut = "left out"
)

// Away are the subkinds of findings about servers whose work others took over: nothing on them was lost.
var Away = []string{Restart, Stop, LeftOut}

// An Event is something that happened to a server.
type Event struct {
	At         trace.Time
	What       string
	Server     place.Location
	Host       string
	PID        int64 // of the tokenizer, or else of the lowest rank; 0 is unknown
	ReplacedBy int64 // PID of the processes that took their place; 0 is none, or unknown

	by trace.Time // of Stop: when it usually would have served another request
}

// Lives holds the events of the servers of a set.
type Lives struct {
	Events   []Event // in order
	set      *request.Set
	observed *observer
	hangs    []end
	deaths   []end
	restarts []restart
}

// A restart is one life that replaced another.
type restart struct{ old, new *life }

// Find finds out what happened to the servers of a set.
func Find(s *request.Set) *Lives {
	o := observe(s)
	l := &Lives{set: s, observed: o, hangs: o.hangs(), restarts: o.restarts()}
	l.deaths = o.deaths(l.hangs)
	for _, r := range l.restarts {
		switch {
		case l.suffered(r.old): // that is an event of its own
		case r.old.hasResent():
			l.add(r.old.last, Death, r.old, r.old.server.at)
		default:
			l.add(r.old.last, Drain, r.old, r.old.server.at)
		}
		l.add(r.new.first, Restart, r.new, r.new.server.at)
	}
	for i := range l.hangs {
		l.add(l.hangs[i].since, Hang, l.hangs[i].life, l.hangs[i].location())
	}
	for i := range l.deaths {
		l.add(l.deaths[i].since, Death, l.deaths[i].life, l.deaths[i].location())
	}
	for _, x := range o.servers {
		if o.isRemnant(x) {
			continue
		}
		if first := x.lives[0]; o.absent(x, 0, first.first) {
			l.add(first.first, Start, first, x.at)
		}
		if last := x.lives[len(x.lives)-1]; !l.suffered(last) && o.absent(x, last.last, o.end) {
			l.add(last.last, Stop, last, x.at)
			l.Events[len(l.Events)-1].by = min(o.end, last.last+heldBack+trace.Time(last.nextJob()))
		}
	}
	slices.SortStableFunc(l.Events, func(x, y Event) int { return cmp.Compare(x.At, y.At) })
	return l
}

func (l *Lives) add(at trace.Time, what string, of *life, where place.Location) {
	e := Event{At: at, What: what, Server: where, Host: of.server.host, PID: of.pid}
	for _, r := range l.restarts {
		if r.old == of {
			e.ReplacedBy = r.new.pid
		}
	}
	l.Events = append(l.Events, e)
}

// location returns where an end happened: the DP rank if one of several hangs, or else the server.
func (e *end) location() place.Location {
	if e.team != nil && len(e.life.teams) > 1 {
		return e.team.at.Team()
	}
	return e.life.server.at
}

// suffered reports whether a life ended with requests that never ended.
func (l *Lives) suffered(x *life) bool {
	of := func(e end) bool { return e.life == x }
	return slices.ContainsFunc(l.hangs, of) || slices.ContainsFunc(l.deaths, of)
}

// restarts returns the lives that replaced others, in order. It leaves out servers that nothing tells
// apart and whose lives may just have taken turns, and those between two captures.
func (o *observer) restarts() (list []restart) {
	for _, s := range o.servers {
		for i := 1; i < len(s.lives); i++ {
			old, next := s.lives[i-1], s.lives[i]
			if !old.cut && old.last < next.first && apart(len(old.jobs), len(next.jobs)) < byChance {
				list = append(list, restart{old, next})
			}
		}
	}
	slices.SortStableFunc(list, func(x, y restart) int { return cmp.Compare(x.new.first, y.new.first) })
	return list
}

// Restarted returns when servers were restarted: from the last sign of the first life that was replaced
// until the last new one began; 0 is never.
func (l *Lives) Restarted() (from, to trace.Time) {
	for _, r := range l.restarts {
		from, to = order.Earlier(from, r.old.last), max(to, r.new.first)
	}
	return from, to
}

// apart returns the probability that n requests all come before m others if their order is random.
func apart(n, m int) float64 {
	p := 1.0
	for i := 1; i <= min(n, m); i++ {
		p *= float64(i) / float64(max(n, m)+i)
	}
	return p
}

// absent reports whether a server got none of its role's requests between two times, though chance
// alone would have given it some, by its share of all requests.
func (o *observer) absent(x *server, from, to trace.Time) bool {
	between := func(starts []trace.Time, from, to trace.Time) int { // excluding both
		lower, _ := slices.BinarySearch(starts, from+1)
		upper, _ := slices.BinarySearch(starts, to)
		return max(0, upper-lower)
	}
	own, mine := 0, []trace.Time(nil)
	for _, l := range x.lives {
		own += len(l.jobs)
		for k := range l.jobs {
			mine = memory.Append(mine, l.jobs[k].start)
		}
	}
	slices.Sort(mine)
	all := o.starts[x.role]
	first, last := x.lives[0].first, x.lives[len(x.lives)-1].last
	missed := between(all, from, to) - between(mine, from, to)
	others := between(all, first, last) - between(mine, first, last)
	share := float64(own) / float64(max(1, own+others))
	// By its share, and by order alone: a single request does not show a share.
	chance := max(math.Pow(1-share, float64(missed)), apart(own, missed))
	return missed > 0 && chance*float64(len(o.servers)) < byChance
}

// Report returns the table of what happened to servers; it is empty if l is nil.
func (l *Lives) Report() *table.Table {
	var events []Event
	if l != nil {
		events = l.Events
	}
	pid := func(of func(*Event) int64) func(*Event) int64 {
		return func(e *Event) int64 {
			if v := of(e); v != 0 {
				return v
			}
			return request.Unknown
		}
	}
	fields := []table.Field[Event]{
		table.TimeColumn("time", "when it happened, Unix time", func(e *Event) trace.Time { return e.At }),
		table.TextColumn("event", "kind of event: start, drain, restart, stop, hang, or death", func(e *Event) string { return e.What }),
		table.TextColumn("server", "server: role, host, and DP rank", func(e *Event) string { return name(&e.Server) }),
		table.TextColumn("host", "host name, or the start of its ID", func(e *Event) string { return e.Host }),
		table.CountColumn("pid", "process ID of the tokenizer, else of the lowest rank", pid(func(e *Event) int64 { return e.PID })),
		table.CountColumn("replaced by", "process ID of its replacement", pid(func(e *Event) int64 { return e.ReplacedBy })),
	}
	table.Detail(fields[3:4])
	return table.New("sgtrace.report.summary.events/v1", "Servers that started, drained, were restarted, hung, or died", events, fields)
}
