package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// restartsOf returns the restarts of each server of a role that had any.
func (l *Lives) restartsOf(role request.Role) [][]restart {
	var by order.Groups[*server, []restart]
	for _, r := range l.restarts {
		if r.new.server.role == role {
			order.Add(&by, r.new.server, r)
		}
	}
	return by.List
}

// flapping returns the restarts, by server, of the servers of a role that were away at the same times,
// if there are several and some were away again and again.
func (l *Lives) flapping(role request.Role) [][]restart {
	by := l.restartsOf(role)
	all := slices.Concat(by...)
	of := order.Only(by, func(own []restart) bool {
		return len(l.deathsOf(own[0].new.server)) == 0 && slices.ContainsFunc(own, func(r restart) bool { return r.isBeside(all) })
	})
	if len(of) < 2 || !slices.ContainsFunc(of, func(own []restart) bool { return len(own) > 1 }) {
		return nil
	}
	return of
}

// isOf reports whether the server at a place is among those that were restarted.
func isOf(list [][]restart, at place.Location) bool {
	return slices.ContainsFunc(list, func(own []restart) bool { return own[0].new.server.at == at })
}

// stopped says since when a server has not been seen.
func (e *Event) stopped() string {
	return fmt.Sprintf("%s has served nothing since %s", name(&e.Server), e.stopAt())
}

// stopAt says when a server got its last request, as precisely as that is known.
func (e *Event) stopAt() string { return words.When(e.At+(e.by-e.At)/2, e.At, e.by) }

// isBeside reports whether another server was away at the same time.
func (r *restart) isBeside(list []restart) bool {
	return slices.ContainsFunc(list, func(o restart) bool {
		return o.new.server != r.new.server && o.old.last < r.new.first && r.old.last < o.new.first
	})
}

// flapped returns one finding for servers that were away at the same times, again and again, since one thing must be the cause.
func (l *Lives) flapped(role request.Role, of [][]restart) finding.Finding {
	const few = 4
	list := slices.Concat(of...)
	slices.SortStableFunc(list, func(a, b restart) int { return cmp.Compare(a.old.last, b.old.last) })
	var each []string
	for _, own := range of[:min(few, len(of))] {
		each = append(each, fmt.Sprintf("%s %s", own[0].new.server.at.ServerName(), words.Counted(len(own), "time")))
	}
	if n := len(of) - few; n > 0 {
		each = append(each, fmt.Sprintf("and %d more", n))
	}
	f := l.ofRole(role, list)
	from, to := words.Tenths(f.Since, f.Until)
	f.Text = fmt.Sprintf("%d of %s were restarted again and again between %s and %s, and were away at the same times: %s", len(of), l.serversOf(role), from, to, strings.Join(each, ", "))
	for _, r := range list {
		f.Evidence = append(f.Evidence, finding.Sentence("%s served nothing from %s%s", name(&r.new.server.at), r.period(), pids(r.old, r.new)))
	}
	for i := range l.Events {
		if e := &l.Events[i]; e.What == Stop && isOf(of, e.Server) {
			f.Evidence, f.Until = append(f.Evidence, finding.Sentence("%s", e.stopped())), 0
		}
	}
	f.Evidence = append(f.Evidence, l.outcome(list))
	return f
}

// cameAndWent returns findings about servers that began or ceased to serve while others went on. Those
// that ceased at the same time share one.
func (l *Lives) cameAndWent() (out []finding.Finding) {
	var stops []*Event
	flapping := map[request.Role][][]restart{}
	for i := range l.Events {
		e := &l.Events[i]
		switch {
		case isOf(order.Memo(flapping, e.Server.Role, func() [][]restart { return l.flapping(e.Server.Role) }), e.Server): // this is more of the same
		case e.What == Start:
			out = append(out, finding.Finding{At: e.Server, Subkind: e.What, Since: e.At, Until: e.At,
				Text: fmt.Sprintf("%s started serving at %s: nothing shows it before then", name(&e.Server), words.At(e.At, words.TenthLayout))})
		case e.What == Stop:
			unseen := l.unseen(e)
			if unseen == 0 {
				stops = append(stops, e)
				continue
			}
			out = append(out, finding.Finding{At: e.Server, Subkind: Unseen, Since: e.At,
				Text: fmt.Sprintf("the dump has nothing from %s since %s, but it still runs: since then, gateways answered %s that no %s server has a span for", name(&e.Server),
					e.stopAt(), words.Counted(unseen, "request"), e.Server.Role)})
		}
	}
	for len(stops) > 0 {
		with := func(e *Event) bool { return e.Server.Role == stops[0].Server.Role && e.At <= stops[0].by }
		same, rest := order.Only(stops, with), order.Only(stops, func(e *Event) bool { return !with(e) })
		out, stops = append(out, l.stopped(same)), rest
	}
	return out
}

// stopped returns a finding about servers of a role that ceased to serve at the same time, as far as that is known.
func (l *Lives) stopped(list []*Event) finding.Finding {
	const few = 3
	f := finding.Finding{At: list[0].Server, Subkind: Stop, Since: list[0].At}
	f.Text = list[0].stopped() + ": it was stopped, died, or gets no requests"
	others := order.Only(l.observed.servers, func(x *server) bool {
		return x.role == f.At.Role && !slices.ContainsFunc(list, func(e *Event) bool { return e.Server == x.at })
	})
	if n := len(list); n > 1 {
		names := order.Each(list[:min(few, n)], func(e *Event) string { return e.Server.ServerName() })
		f.At = place.Location{Scope: place.WholeRole, Role: f.At.Role}
		f.Text = fmt.Sprintf("%d of %s have served nothing since %s: they were stopped, died, or get no requests (%s)", n, l.serversOf(f.At.Role), list[0].stopAt(), words.Some(names, few))
		if len(others) == 1 {
			f.Text += "; all go to " + name(&others[0].at)
		}
		for _, e := range list {
			f.Evidence = append(f.Evidence, finding.Sentence("%s", e.stopped()))
		}
	}
	f.Evidence = append(f.Evidence, finding.Sentence("all of %[1]s requests have ended, and other servers of %[1]s role kept serving", [...]string{"its", "their"}[min(1, len(list)-1)]))
	return f
}

// unseen returns how many requests gateways have answered since a server stopped that no server of its role has a span
// for. It is 0 unless these come at half the rate at which the server got its own or more, and hardly any came before.
func (l *Lives) unseen(e *Event) int {
	const most, hardly = 0.5, 0.1
	k := slices.IndexFunc(l.observed.servers, func(x *server) bool { return x.at == e.Server })
	if k < 0 {
		return 0
	}
	x, own := l.observed.servers[k], 0
	for _, life := range x.lives {
		own += len(life.jobs)
	}
	before, after := 0, 0
	for i := range l.set.AllRequests() {
		q := &l.set.Requests[i]
		if q.Status != request.Finished || q.Gateway == request.None || slices.ContainsFunc(l.set.PartsOf(q), func(p int) bool { return l.set.Parts[p].Role == x.role }) {
			continue
		}
		if q.Start < e.At {
			before++
		} else {
			after++
		}
	}
	rate := func(n int, from, to trace.Time) float64 { return float64(n) / max(1, float64(to-from)) }
	first := x.lives[0].first
	had := rate(own, first, e.At)
	if rate(after, e.At, l.observed.end) < most*had || rate(before, first, e.At) > hardly*had {
		return 0
	}
	return after
}
