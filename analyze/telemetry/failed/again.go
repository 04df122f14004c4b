package failed

import (
	"fmt"
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A start is the start of a server that had run before.
type start struct {
	event *telemetry.Event // the server loads weights, which is the first step of a start that takes a while
	last  trace.Time       // last batch before the start
}

// starts returns the starts of servers that ran batches before, in order.
func starts(l *telemetry.Logged) (list []start) {
	for i := range l.Events {
		e := &l.Events[i]
		if e.Kind != series.Starting || e.Text != "loads weights" {
			continue
		}
		if last := lastBatch(l, e.Server, e.First); last > 0 {
			list = append(list, start{e, last})
		}
	}
	return list
}

// again finds servers that were started again although their logs do not say why they ended.
func again(l *telemetry.Logged) (out []finding.Finding) {
	list := starts(l)
	if len(list) == 0 {
		return nil
	}
	killed := victims(l)
	for _, x := range list {
		if f, ok := x.finding(l); ok && !x.told(l, killed) {
			out = append(out, f)
		}
	}
	return out
}

// told reports whether another finding explains why the server ended.
func (x *start) told(l *telemetry.Logged, killed map[*telemetry.Event]victim) bool {
	return slices.ContainsFunc(l.Events, func(e telemetry.Event) bool {
		switch e.Kind {
		case series.Stopping, series.Exception, series.OutOfMemory, series.Crash, series.Timeout, series.Unhealthy, series.Communication:
			return e.Server == x.event.Server && max(e.First, e.Last) >= x.last-together && e.First <= x.event.First
		}
		return false
	}) || slices.ContainsFunc(l.Events, func(e telemetry.Event) bool {
		if !byKernel(&e) || !x.around(&e) {
			return false
		}
		for of, v := range killed {
			if of.First == e.First && v.server == x.event.Server {
				return true
			}
		}
		return false
	})
}

// around reports whether the server may have ended at the time of an event.
func (x *start) around(e *telemetry.Event) bool {
	return e.First != 0 && e.First >= x.last-exact && e.First <= x.event.First
}

// finding makes the finding of a server that was away from its last batch until it was ready again.
func (x *start) finding(l *telemetry.Logged) (f finding.Finding, ok bool) {
	s := &l.Set.Servers[x.event.Server]
	requests := 0.0
	for i := range l.Ranks {
		if r := &l.Ranks[i]; r.Server == x.event.Server {
			var line telemetry.LoggedLine
			has := 0.0
			for lines := l.LinesOf(r.Place); lines.Next(&line) && line.At <= x.last; {
				if line.Has(telemetry.RunningOf) {
					has = line.Values[telemetry.RunningOf]
				}
			}
			requests += has
		}
	}
	from, to, _ := l.Set.Bounds()
	back := to
	for i := range l.Events {
		if e := &l.Events[i]; e.Kind == series.Ready && e.Server == x.event.Server && e.Last > x.event.First {
			back = e.Last
			break
		}
	}
	if requests < 1 {
		return f, false // it had no requests to lose
	}
	f = failure(l, x.event, Restarted)
	f.At, f.Since, f.Until = place.At(telemetry.Role(s), telemetry.Host(s), trace.NoRank, l.Names), x.last, back
	f.Severity, f.Confidence, f.Cost = finding.Critical, finding.Certain, share(back-x.last, to-from, serversOf(l))
	f.Metric = finding.Metric{Name: "requests in its batch", Before: math.NaN(), After: requests}
	f.Brief = fmt.Sprintf("%s was started again", telemetry.Host(s))
	f.Text = fmt.Sprintf("%s was started again at %s, with %s in its batch at %s: its log does not say why it ended", telemetry.Host(s), words.TimeOfDay(x.event.First), words.Counted(int(requests), "request"), words.TimeOfDay(x.last))
	if back < to {
		f.Evidence = append(f.Evidence, finding.Sentence("it was ready at %s", words.TimeOfDay(back)))
	}
	return f, true
}
