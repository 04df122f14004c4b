package failed

import (
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// tracebacks finds exceptions that a server survived, as far as its log shows. Their cost is unknown.
func tracebacks(l *telemetry.Logged) (out []finding.Finding) {
	for i := range l.Events {
		e := &l.Events[i]
		if e.Kind != series.Traceback || ended(l, e) || near(l, e, func(o *telemetry.Event) bool { return isTold(e, o) }) || ofNCCL(e) && near(l, e, func(o *telemetry.Event) bool { return o.Kind == series.Communication }) || isVictim(e.Text) && near(l, e, func(o *telemetry.Event) bool { return o.Kind == series.Timeout }) || ofTransfer(e) && near(l, e, isLostTransfer) ||
			follows(e.Text) && near(l, e, tellsWhy) || strings.HasSuffix(e.Text, unended) && near(l, e, func(o *telemetry.Event) bool { return o.Kind == series.Complaint }) {
			continue
		}
		f := failure(l, e, Raised)
		f.Severity = finding.Info
		for k := range l.Events {
			if o := &l.Events[k]; o.Kind == series.Traceback && follows(o.Text) && o.Server == e.Server && max(o.First-e.First, e.First-o.First) <= together && o != e {
				f.Evidence = append(f.Evidence, finding.Sentence("along with it: %s", l.Sentence(o)))
			}
		}
		f.Evidence = append(waited(l, e), f.Evidence...)
		out = append(out, f)
	}
	return out
}

// tellsWhy reports whether an event is an exception that says what happened, not just that another process failed.
func tellsWhy(e *telemetry.Event) bool { return e.Kind == series.Traceback && !follows(e.Text) }

// complaints finds what servers call errors in words that sgtrace does not know, if nothing known happened at about
// that time. Complaints of a server at one time are one finding, led by the first. Mere warnings from before a server
// serves had no consequences and are left out.
func complaints(l *telemetry.Logged) (out []finding.Finding) {
	var list []*telemetry.Event
	for i := range l.Events {
		e := &l.Events[i]
		if e.Kind == series.Complaint && !slices.ContainsFunc(l.Events, func(o telemetry.Event) bool { return isRefusal(&o, e) }) && !near(l, e, func(o *telemetry.Event) bool {
			return ends(o) || isLostTransfer(o) || o.Kind == series.Traceback && !strings.HasSuffix(o.Text, unended) || o.Kind == series.Communication || o.Kind == series.Timeout
		}) && !(strings.HasPrefix(e.Text, series.Warns) && servesLater(l, e)) {
			list = append(list, e)
		}
	}
	answers := answered(l)
	list = slices.DeleteFunc(list, func(e *telemetry.Event) bool { // it is evidence for those
		return isCount(e) && answers[e.Server].errors.n+answers[e.Server].many.n > 0
	})
	for _, group := range atOnce(list, func(e *telemetry.Event) int32 { return e.Server }) {
		f := failure(l, group[0], Complaint)
		f.Severity, f.Confidence = finding.Info, finding.Likely
		f.Evidence = append(complained(l, group[0], group), f.Evidence...)
		calls := "its program calls it an error: the log does not say what came of it"
		if strings.HasPrefix(group[0].Text, series.Warns) {
			calls = "its program calls it a warning: the log does not say what came of it"
		} else if isCount(group[0]) {
			calls, f.Confidence = "counters do not say why: the log of that server does", finding.Certain
		}
		f.Evidence = append(f.Evidence, finding.Sentence("%s", calls))
		out = append(out, f)
	}
	return out
}

// isCount reports whether a complaint is what a counter says.
func isCount(e *telemetry.Event) bool {
	return e.Kind == series.Complaint && (strings.HasPrefix(e.Text, "counts ") || strings.HasPrefix(e.Text, "has counted "))
}

// isRefusal reports whether an event is a router's refusal of a request that it complains about at the same time.
func isRefusal(e, complaint *telemetry.Event) bool {
	return e.Kind == series.Refusal && e.Server == complaint.Server && max(e.First-complaint.First, complaint.First-e.First) <= exact
}

// complaintsWith returns the complaints of a router about a request that it refused.
func complaintsWith(l *telemetry.Logged, e *telemetry.Event) (list []*telemetry.Event) {
	for i := range l.Events {
		if o := &l.Events[i]; o.Kind == series.Complaint && isRefusal(e, o) {
			list = append(list, o)
		}
	}
	return list
}

// servesLater reports whether the first batch of a server comes after an event.
func servesLater(l *telemetry.Logged, e *telemetry.Event) bool {
	first := trace.Time(math.MaxInt64)
	for i := range l.Ranks {
		if r := &l.Ranks[i]; r.Server == e.Server {
			first = min(first, r.From)
		}
	}
	return first < math.MaxInt64 && first > max(e.First, e.Last)
}

// complained returns what else was called an error when a process ended.
func complained(l *telemetry.Logged, lead *telemetry.Event, group []*telemetry.Event) (list []finding.Evidence) {
	for _, e := range group {
		if e != lead && e.Kind == series.Complaint {
			list = append(list, finding.Sentence("along with it: %s", l.Sentence(e)))
		}
	}
	return list
}

// unexplained says that the log does not explain why a process ended: it has no exception, or only the beginning of
// one, or one that may belong to another process.
func unexplained(l *telemetry.Logged, lead *telemetry.Event, group []*telemetry.Event) []finding.Evidence {
	if lead.Kind != series.Crash && (lead.Stack != "" || !strings.HasSuffix(lead.Text, " died")) {
		return nil
	}
	for _, e := range group {
		if frame, _, _ := strings.Cut(e.Stack, "\n"); frame != "" && strings.HasSuffix(e.Text, unended) {
			return []finding.Evidence{finding.Sentence("the log has only the beginning of its exception, down to %s", frame)}
		}
	}
	for i := range l.Events {
		e := &l.Events[i]
		if e.File == lead.File && e.Stack != "" && e.Server != lead.Server && max(e.First-lead.First, lead.First-e.First) <= together {
			return []finding.Evidence{finding.Sentence("the log has an exception at that time that may be the reason: %s", l.Sentence(e))}
		}
	}
	return []finding.Evidence{finding.Sentence("the log has no exception for it: the reason may be in the log of another node, or the process was killed")}
}
