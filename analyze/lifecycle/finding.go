package lifecycle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Findings returns what happened to servers. The subkinds are Hang, Death, Restart, Start, Stop, and Unseen.
func (l *Lives) Findings() ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "starts, restarts, hangs, and deaths of servers", Of: "request", N: len(l.set.Requests), Needed: 1}
	out := l.hung()
	for _, x := range l.observed.servers {
		if list := l.deathsOf(x); len(list) > 0 {
			out = append(out, l.died(list))
		}
	}
	return slices.Concat(out, l.restarted(), l.leftOut(), l.cameAndWent()), check
}

// Lost returns the requests that waited for servers that hang or died, as indices into Set.Requests.
func (l *Lives) Lost() (list []int) {
	for _, e := range slices.Concat(l.hangs, l.deaths) {
		list = append(list, e.requests()...)
	}
	return order.Distinct(list)
}

// finding returns what all findings about ends share, for the given requests.
func (l *Lives) finding(e *end, subkind string, list []int) finding.Finding {
	return finding.Finding{At: e.location(), Subkind: subkind, Since: e.middle(), Affected: finding.AffectedOf(l.set, list),
		Cost:   float64(len(list)) / float64(len(l.set.Requests)),
		Metric: finding.Metric{Name: "requests that never ended", Unit: table.Number, Before: math.NaN(), After: float64(len(list))}}
}

// when says when a server ceased to work: "21:56:35.6 ± 0.2 s".
func (e *end) when() string {
	if e.isExact() {
		return words.When(e.middle(), e.since, e.by)
	}
	from, to := words.Tenths(e.since, e.by)
	return fmt.Sprintf("some time between %s, when it did something last, and %s", from, to)
}

// isExact reports whether the middle of the time in which a server may have ceased to work is precise
// enough.
func (e *end) isExact() bool { return e.by-e.since < 1_000_000_000 }

// middle returns the middle of that time, or the server's last sign if that is not precise enough.
func (e *end) middle() trace.Time {
	if e.isExact() {
		return e.since + (e.by-e.since)/2
	}
	return e.since
}

// hung returns findings about servers that hang. Those of a role that hang since the same moment share one, as they have one cause.
func (l *Lives) hung() (out []finding.Finding) {
	const together = trace.Time(5e9) // ns within which they have something to do, or wait for each other
	for rest := slices.Clone(l.hangs); len(rest) > 0; {
		first := rest[0]
		same := slices.DeleteFunc(slices.Clone(rest), func(e end) bool { return !e.isWith(&first, together) })
		rest = slices.DeleteFunc(rest, func(e end) bool { return e.isWith(&first, together) })
		each := order.EachRow(same, l.hungAlone)
		if len(each) > 1 {
			each = []finding.Finding{l.hungTogether(same, each)}
		}
		out = append(out, each...)
	}
	return out
}

// isWith reports whether two hangs began at about the same time, of servers of one role.
func (e *end) isWith(o *end, together trace.Time) bool {
	return e.life.server.role == o.life.server.role && max(e.middle()-o.middle(), o.middle()-e.middle()) <= together
}

// hungTogether makes one finding of several about hangs.
func (l *Lives) hungTogether(list []end, each []finding.Finding) finding.Finding {
	const few = 3
	first := slices.MinFunc(list, func(x, y end) int { return cmp.Compare(x.middle(), y.middle()) })
	var requests []int
	inFlight, waiting := 0, 0
	for i := range list {
		e := &list[i]
		requests, inFlight, waiting = append(requests, e.requests()...), inFlight+len(e.inFlight), waiting+len(e.waiting)
	}
	f := l.finding(&first, Hang, order.Distinct(requests))
	f.At = place.Location{Scope: place.WholeRole, Role: first.life.server.role}
	names := order.EachRow(each[:min(few, len(each))], func(f *finding.Finding) string { return name(&f.At) })
	if n := len(each) - few; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	all := strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	f.Text = fmt.Sprintf("%s have all hung since %s: %s in flight and %d sent to them later never ended", all, first.when(), words.Counted(inFlight, "request"), waiting)
	f.Until = each[0].Until
	for i := range each {
		if f.Until = max(f.Until, each[i].Until); each[i].Until == 0 {
			f.Until = 0
			break
		}
	}
	f.Evidence = append(f.Evidence, finding.Sentence("servers that hang at the same time have a common cause"))
	for i := range each {
		f.Evidence = append(f.Evidence, finding.Sentence("%s", each[i].Text))
		f.Evidence = append(f.Evidence, each[i].Evidence...)
	}
	return f
}

func (l *Lives) hungAlone(e *end) finding.Finding {
	f := l.finding(e, Hang, e.requests())
	if next := l.next(e.life); next != nil {
		f.Until = next.first
		f.Evidence = append(f.Evidence, finding.Sentence("new processes served from %s on%s", words.At(next.first, words.TenthLayout), pids(e.life, next)))
	}
	var what []string
	if n := len(e.inFlight); n > 0 {
		what = append(what, words.Counted(n, "request")+" in flight")
	}
	if n := len(e.waiting); n > 0 {
		what = append(what, words.Counted(n, "request")+" sent to it later")
	}
	f.Text = fmt.Sprintf("%s has hung since %s: %s never ended", name(&f.At), e.when(), strings.Join(what, " and "))
	f.Evidence = append(f.Evidence, l.lastStage(e.team)...)
	if pause := l.observed.pauses[e.life.server.role]; pause > 0 {
		while := ""
		if l.othersGoOn(e) {
			while = ", while others kept working"
		}
		f.Evidence = append(f.Evidence, finding.Sentence("it did nothing for %s%s; no %s server with requests in flight ever paused for longer than %s",
			words.Nearly(int64(e.life.until-e.since)), while, e.life.server.role, words.Nearly(pause)))
	}
	return f
}

// othersGoOn reports whether a team that does not hang shows signs after another one began to.
func (l *Lives) othersGoOn(e *end) bool {
	return slices.ContainsFunc(l.observed.teams(), func(t *team) bool {
		return t.last > e.by && !slices.ContainsFunc(l.hangs, func(other end) bool { return other.team == t })
	})
}

// next returns the life that replaced x; nil if there is none.
func (l *Lives) next(x *life) *life {
	for _, r := range l.restarts {
		if r.old == x {
			return r.new
		}
	}
	return nil
}

// pids says which process replaced which, if that is known: " (pid 412 before, 993 after)".
func pids(old, next *life) string {
	if old.pid == 0 || next.pid == 0 || old.pid == next.pid {
		return ""
	}
	return fmt.Sprintf(" (pid %d before, %d after)", old.pid, next.pid)
}

// lastStage says what a team did last.
func (l *Lives) lastStage(t *team) []finding.Evidence {
	if t == nil || t.stage == request.None {
		return nil
	}
	return []finding.Evidence{finding.Sentence("the last stage that it finished is %s", l.set.Name(t.stage))}
}

// restarted returns findings about servers that were restarted: one for a role if each of its servers
// was once, and one for each server that was again and again.
func (l *Lives) restarted() (out []finding.Finding) {
	var by order.Groups[request.Role, []restart]
	for _, r := range l.restarts {
		order.Add(&by, r.new.server.role, r)
	}
	for i, role := range by.Keys {
		out = append(out, l.restartedIn(role, by.List[i])...)
	}
	return out
}

// restartedIn returns findings about the restarts of a role, which are in order.
func (l *Lives) restartedIn(role request.Role, list []restart) (out []finding.Finding) {
	by := l.restartsOf(role)
	if len(by) > 1 && len(list) == len(by) {
		return []finding.Finding{l.rolled(role, list)}
	}
	flapping := l.flapping(role)
	if len(flapping) > 0 {
		out = append(out, l.flapped(role, flapping))
	}
	for _, own := range by {
		if s := own[0].new.server; len(l.deathsOf(s)) == 0 && !isOf(flapping, s.at) { // otherwise another finding has them
			out = append(out, l.again(s, own))
		}
	}
	return out
}

// ofRole returns what findings about restarts of several servers of a role share.
func (l *Lives) ofRole(role request.Role, list []restart) finding.Finding {
	f := finding.Finding{At: place.Location{Scope: place.WholeRole, Role: role}, Subkind: Restart, Confidence: finding.Certain, Since: list[0].old.last}
	for _, r := range list {
		f.Since, f.Until = min(f.Since, r.old.last), max(f.Until, r.new.first)
	}
	return f
}

// serversOf says how many servers of a role there are: "4 unified servers".
func (l *Lives) serversOf(role request.Role) string {
	return words.Counted(order.Count(l.observed.servers, func(s *server) bool { return s.role == role }), role.String()+" server")
}

// rolled returns a finding about servers that were each restarted once.
func (l *Lives) rolled(role request.Role, list []restart) finding.Finding {
	const few = 4
	var each []string
	for _, r := range list[:min(few, len(list))] {
		each = append(each, fmt.Sprintf("%s from %s", r.new.server.at.ServerName(), r.period()))
	}
	if n := len(list) - few; n > 0 {
		each = append(each, fmt.Sprintf("and %d more", n))
	}
	how := "one after another"
	for i := range list[1:] {
		if list[i+1].old.last < list[i].new.first {
			how = "partly at the same time"
		}
	}
	f := l.ofRole(role, list)
	f.Text = fmt.Sprintf("%d of %s were restarted, %s: %s", len(list), l.serversOf(role), how, strings.Join(each, ", "))
	f.Evidence = append(f.Evidence, l.outcome(list))
	return f
}

// again returns a finding about a server that was restarted, once or several times.
func (l *Lives) again(s *server, list []restart) finding.Finding {
	first, last := list[0], list[len(list)-1]
	f := finding.Finding{At: s.at, Subkind: Restart, Confidence: finding.Certain, Since: first.old.last, Until: last.new.first}
	if len(list) == 1 {
		f.Text = fmt.Sprintf("%s was restarted: it served nothing from %s%s", name(&s.at), first.period(), pids(first.old, first.new))
	} else {
		from, to := words.Tenths(first.old.last, last.new.first)
		f.Text = fmt.Sprintf("%s was restarted %d times between %s and %s", name(&s.at), len(list), from, to)
		for _, r := range list {
			f.Evidence = append(f.Evidence, finding.Sentence("it served nothing from %s%s", r.period(), pids(r.old, r.new)))
		}
	}
	f.Evidence = append(f.Evidence, l.outcome(list))
	return f
}

// name names a place with its host, even if it is the only one.
func name(at *place.Location) string {
	text := at.String()
	if host := at.ServerName(); at.Host != naming.Unknown && !strings.Contains(text, host) {
		text += " (" + host + ")"
	}
	return text
}

// period returns from when to when the server was away: "19:57:24.1 to 19:57:55.4".
func (r *restart) period() string {
	from, to := words.Tenths(r.old.last, r.new.first)
	return from + " to " + to
}

// outcome says what happened to the requests that were in flight.
func (l *Lives) outcome(list []restart) finding.Evidence {
	var lost []int
	for _, r := range list {
		for _, e := range slices.Concat(l.hangs, l.deaths) {
			if e.life == r.old {
				lost = append(lost, e.requests()...)
			}
		}
	}
	resent, moved := 0, 0
	for _, r := range list {
		n, elsewhere := r.old.resent()
		resent, moved = resent+n, moved+elsewhere
	}
	var parts []string
	if len(lost) > 0 {
		parts = append(parts, l.became(lost))
	}
	if resent > 0 {
		again := words.Counted(resent, "request") + " in flight had to be sent again"
		if moved == resent {
			again += ", to another server"
		}
		parts = append(parts, again)
	}
	switch {
	case len(parts) > 0:
		return finding.Sentence("%s", strings.Join(parts, " and "))
	case len(list) > 1:
		return finding.Sentence("each server's requests in the files had all ended before its restart")
	}
	return finding.Sentence("all of its requests in the files had ended before that")
}

// resent returns how many jobs of a life had to be repeated, and how many of these on another server.
func (l *life) resent() (n, moved int) {
	for k := range l.jobs {
		if l.jobs[k].resent {
			n++
		}
		if l.jobs[k].moved {
			moved++
		}
	}
	return n, moved
}

// hasResent reports whether any job of a life had to be repeated.
func (l *life) hasResent() bool {
	n, _ := l.resent()
	return n > 0
}

// sentences describe events. They follow the name of the server.
var sentences = map[string]string{
	Start:   "serves its first request",
	Drain:   "ends, with all of its requests in the files answered",
	Restart: "serves again, with new processes",
	Stop:    "serves its last request",
	Hang:    "hangs: nothing more comes from it",
	Death:   "is gone, with requests in flight",
}

// Sentence describes an event.
func (e *Event) Sentence() string {
	text := name(&e.Server) + " " + sentences[e.What]
	if e.ReplacedBy != 0 && e.ReplacedBy != e.PID {
		text += fmt.Sprintf("; pid %d takes the place of %d", e.ReplacedBy, e.PID)
	}
	return text
}

// Began returns when a server began to serve, if a finding is about one that was started or restarted; 0 if not.
func Began(f *finding.Finding) trace.Time {
	switch {
	case f.At.Scope != place.OneRank:
	case f.Subkind == Restart:
		return f.Until
	case f.Subkind == Start:
		return f.Since
	}
	return 0
}
