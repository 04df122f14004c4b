package failed

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A victim is a server with a process that the kernel killed.
type victim struct {
	server int32
	sure   bool    // the logs of the kernel and of the server are from one host
	ending *ending // end of the server's log, if nothing else shows that it ended
}

// byKernel reports whether an event is the kernel killing a process.
func byKernel(e *telemetry.Event) bool {
	return e.Kind == series.Crash && strings.HasPrefix(e.Text, "the kernel killed")
}

// victims finds the servers whose processes the kernel killed: the only one that failed then, or whose log ends then.
// The log of a kernel may name its host, but no server.
func victims(l *telemetry.Logged) map[*telemetry.Event]victim {
	of := map[*telemetry.Event]victim{}
	var all, ended []ending
	for i := range l.Events {
		e := &l.Events[i]
		if !byKernel(e) {
			continue
		}
		if all == nil {
			all = endings(l)
			ended, _ = early(all)
		}
		about := slices.DeleteFunc(slices.Clone(ended), func(x ending) bool { return !then(e, x.last) })
		if v, ok := victimOf(l, e, about); ok {
			of[e] = v
		} else if v, ok = victimOf(l, e, endsThere(l, e, all)); ok && len(about) == 0 {
			of[e] = v
		}
	}
	return of
}

// killedServers returns the servers among the victims.
func killedServers(l *telemetry.Logged) map[int32]bool {
	killed := map[int32]bool{}
	for _, v := range victims(l) {
		killed[v.server] = true
	}
	return killed
}

// endsThere returns the logs whose lines continue until the kernel killed a process, except for silences of usual
// length, and end then.
func endsThere(l *telemetry.Logged, e *telemetry.Event, all []ending) (list []ending) {
	for _, x := range all {
		if _, silent := x.held(l); e.First != 0 && x.last <= e.First+exact && e.First-x.last <= max(exact, manyTimes*silent) {
			list = append(list, x)
		}
	}
	return list
}

// then reports whether a time is when the kernel killed a process, or soon after.
func then(e *telemetry.Event, at trace.Time) bool {
	return e.First == 0 || at >= e.First-exact && at <= e.First+together
}

func victimOf(l *telemetry.Logged, e *telemetry.Event, ended []ending) (v victim, ok bool) {
	host := l.Set.Servers[e.Server].Host
	servers := map[int32]*ending{}
	for i := range ended {
		servers[ended[i].server] = &ended[i]
	}
	for i := range l.Events {
		if o := &l.Events[i]; ends(o) && !byKernel(o) && then(e, o.First) && !learns(l, o) {
			servers[o.Server] = nil
		}
	}
	for _, x := range starts(l) {
		if x.around(e) && e.First-x.last <= together {
			servers[x.event.Server] = nil
		}
	}
	for server := range servers {
		if of := l.Set.Servers[server].Host; of != "" && host != "" && of != host {
			delete(servers, server)
		}
	}
	if len(servers) != 1 {
		return v, false
	}
	for server, x := range servers {
		s := &l.Set.Servers[server]
		v = victim{server, host != "" && (s.Host == host || s.Name == host), x}
	}
	return v, true
}

// learns reports whether an event only shows that a server ended because it lost another.
func learns(l *telemetry.Logged, e *telemetry.Event) bool {
	return isVictim(e.Text) || e.Kind == series.Crash && near(l, e, func(o *telemetry.Event) bool { return o.Kind == series.Exception && isVictim(o.Text) }) &&
		!near(l, e, func(o *telemetry.Event) bool { return o.Kind == series.Exception && !isVictim(o.Text) })
}

// killing makes the finding of a process that the kernel killed, with its server if known. A process that no server
// misses costs nothing.
func killing(l *telemetry.Logged, e *telemetry.Event, killed map[*telemetry.Event]victim) finding.Finding {
	switch v, known := killed[e]; {
	case known:
		own := *e
		own.Server, own.Places = v.server, nil
		f := down(l, &own, failure(l, &own, Died))
		if !v.sure {
			f.Confidence = finding.Likely
			known := "the log of the kernel does not name the server: nothing else ended then"
			if e.First == 0 {
				known = "the log of the kernel tells neither the server nor when: nothing else ended"
			}
			f.Evidence = append(f.Evidence, finding.Sentence("%s", known))
		}
		if v.ending != nil {
			f.Evidence = append(f.Evidence, finding.Sentence("the log of %s ends at %s", telemetry.Host(&l.Set.Servers[v.server]), words.TimeOfDay(v.ending.last)))
			if f.Since = v.ending.last; l.To-f.Since > together {
				f.Cost, f.BasisText = v.ending.cost(l, f.Since), ""
			}
		}
		return f
	case len(l.Ranks) > 0:
		f := failure(l, e, Died)
		all := endings(l)
		switch {
		case e.First == 0 && len(all) == 1:
			f.Severity = finding.Warning
			f.Evidence = append(f.Evidence, finding.Sentence("nothing tells whether it was of the server whose log ends at %s", words.TimeOfDay(all[0].last)))
		case len(endsThere(l, e, all)) == 0:
			f.Severity = finding.Warning
			f.Evidence = append(f.Evidence, finding.Sentence("no server with a log here ended then"))
		}
		return f
	}
	f := down(l, e, failure(l, e, Died))
	f.At = place.At(telemetry.Role(&l.Set.Servers[e.Server]), l.Name(e), trace.NoRank, l.Names)
	return f
}
