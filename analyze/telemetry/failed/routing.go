package failed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Unrouted is the subkind of findings about servers that a router sends nothing to.
const Unrouted = "unrouted"

// Router is the subkind of findings about routers that restart.
const Router = "router"

// An outage is the events of a server until a router sends requests to it again.
type outage struct {
	events []*telemetry.Event
	back   *telemetry.Event // nil if nothing says that it came back
}

// Routing finds servers that a router took out of service, or that did not answer it, and since when.
func Routing(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "servers that a router sends nothing to", Of: "event", Needed: 1, Reason: "the input has no log of a router that says anything of servers"}
	open := map[int32]*outage{}
	var all []*outage
	for i := range l.Events { // sorted by time
		switch e := &l.Events[i]; e.Kind {
		case series.Unrouted:
			check.N, check.Reason = check.N+1, ""
			o := open[e.Server]
			if o == nil {
				o = &outage{}
				open[e.Server], all = o, append(all, o)
			}
			o.events = append(o.events, e)
		case series.Routed:
			check.N, check.Reason = check.N+1, ""
			if o := open[e.Server]; o != nil {
				o.back = e
				delete(open, e.Server)
			}
		}
	}
	var out []finding.Finding
	for _, o := range all {
		out = append(out, takenOut(l, o))
	}
	for i := range l.Events {
		if e := &l.Events[i]; e.Kind == series.Starting && l.Set.Servers[e.Server].Role == "router" && amid(l, e.Last) {
			check.N, check.Reason = check.N+1, ""
			f := failure(l, e, Router)
			f.Severity, f.Since, f.Until = finding.Info, e.Last, 0
			f.Text = fmt.Sprintf("the router of %s began anew at %s", l.Name(e), words.TimeOfDay(e.Last))
			f.Evidence = append(f.Evidence, finding.Sentence("servers had run for long by then: what a router knew of them is gone"))
			out = append(out, f)
		}
	}
	return out, check
}

// amid reports whether servers logged batches long before a time, and continue after it.
func amid(l *telemetry.Logged, at trace.Time) bool {
	return slices.ContainsFunc(l.Ranks, func(r telemetry.Rank) bool { return r.From < at-together && r.To > at+together })
}

// takenOut makes the finding of an outage. The removal leads, and earlier events are the reasons.
func takenOut(l *telemetry.Logged, o *outage) finding.Finding {
	lead, failed := o.events[0], false
	for _, e := range o.events {
		removed := strings.HasPrefix(e.Text, "is removed")
		if removed && !strings.HasPrefix(lead.Text, "is removed") {
			lead = e
		}
		failed = failed || !removed || strings.HasSuffix(e.Text, "failed")
	}
	f := failure(l, lead, Unrouted)
	if s := &l.Set.Servers[lead.Server]; s.Address != "" && s.Address != s.Called() {
		f.Evidence = append(f.Evidence, finding.Sentence("it listens at %s", s.Address))
	}
	f.Since, f.Until, f.Cost = o.events[0].First, 0, least
	for _, e := range o.events {
		if e != lead {
			f.Evidence = append(f.Evidence, finding.Sentence("%s", l.Sentence(e)))
		}
	}
	from, to, _ := l.Set.Bounds()
	part := func(end trace.Time) float64 { return share(end-f.Since, to-from, routedTo(l)) }
	switch {
	case o.back != nil:
		f.Until, f.Cost = o.back.First, part(o.back.First)
		f.Text += ", until " + words.TimeOfDay(o.back.First)
		f.Evidence = append(f.Evidence, finding.Sentence("%s", l.Sentence(o.back)))
	case !failed: // someone took it out on purpose
		f.Severity, f.Cost = finding.Info, 0
		f.Evidence = append(f.Evidence, finding.Sentence("nothing says that it failed before"))
	case strings.HasPrefix(lead.Text, series.OutOfRouter):
		f.Cost = part(to)
		f.Evidence = append(f.Evidence, finding.Sentence("its metrics say so until they end"))
	case strings.HasPrefix(lead.Text, "is removed"):
		f.Cost = part(to)
		f.Evidence = append(f.Evidence, finding.Sentence("nothing says that it came back"))
	case isChecked(o):
		f.Cost, f.Confidence = part(to), finding.Likely
		f.Evidence = append(f.Evidence, finding.Sentence("nothing says that it came back, but a router keeps using a server that fails only a few checks, and does not log that"))
	default: // only single requests failed, and the router still sends to it
		f.Severity, f.Confidence = finding.Warning, finding.Likely
	}
	return f
}

// isChecked reports whether health checks of a server failed.
func isChecked(o *outage) bool {
	return slices.ContainsFunc(o.events, func(e *telemetry.Event) bool { return strings.Contains(e.Text, "health check") })
}
