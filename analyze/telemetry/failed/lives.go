package failed

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Subkinds of findings about the lives of servers.
const (
	Hang = "hang"
	Stop = "stop"
)

// Lives finds servers that hang, were told to end, came back, or did not become ready.
func Lives(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := l.JudgedLogs("logged hangs and ends")
	var out []finding.Finding
	hung := map[int32]int{} // index of each server's finding
	for i := range l.Events {
		e := &l.Events[i]
		switch e.Kind {
		case series.Timeout, series.Unhealthy:
			if e.Kind == series.Unhealthy && near(l, e, stalls) {
				continue // covered with the transfers
			}
			if k, ok := hung[e.Server]; ok {
				out[k].Evidence = append(out[k].Evidence, finding.Sentence("%s", l.Sentence(e)))
				if e.Stack != "" {
					out[k].Evidence = append(out[k].Evidence, finding.Sentence("stack: %s", strings.ReplaceAll(e.Stack, "\n", " < ")))
				}
				continue
			}
			if e.Kind == series.Timeout && slices.ContainsFunc(l.Events, func(o telemetry.Event) bool { return leaves(l, &o, e) }) {
				continue // covered with the process that ended
			}
			if f, ok := longStep(l, e); ok {
				out = append(out, f)
				continue
			}
			hung[e.Server] = len(out)
			out = append(out, hang(l, e))
		case series.Stopping:
			if strings.HasSuffix(e.Text, "has ended") && ended(l, e) {
				continue // a server that failed ends this way, too
			}
			if !slices.ContainsFunc(out, func(f finding.Finding) bool { return f.Subkind == Stop && f.At == l.At(e) }) {
				f := failure(l, e, Stop)
				f.Severity = finding.Info
				out = append(out, f)
			}
		}
	}
	all := endings(l)
	for i := range all {
		if f, ok := all[i].stands(l); ok {
			out = append(out, f)
		}
		if f, ok := all[i].standsStill(l); ok {
			out = append(out, f)
		}
	}
	out = slices.Concat(out, slowStarts(l), longStarts(l), again(l), notReady(l))
	return out, check
}

// LongStep is the subkind of findings about long steps of a start that an engine waited for.
const LongStep = "long step"

// longStep makes the finding of an engine that waited for its workers during their start, which then continued: they
// were compiling or warming up, and did not hang. A step that the server had completed before belongs to another
// start. A failure later in the start is a separate finding, which explains why the engine waits from then on.
func longStep(l *telemetry.Logged, e *telemetry.Event) (f finding.Finding, ok bool) {
	waited := gaveUpAfter(e)
	if e.Kind != series.Timeout || waited == 0 || lastBatch(l, e.Server, e.First) > 0 {
		return f, false
	}
	behind := map[string]bool{}
	var on trace.Time // when it was first seen to continue
	for i := range l.Events {
		o := &l.Events[i]
		if o.Server != e.Server || o == e {
			continue
		}
		step, _, _ := strings.Cut(o.Text, ",")
		switch before := max(o.First, o.Last) <= e.First; {
		case o.Kind == series.Ready && before:
			return f, false
		case before:
			behind[step] = behind[step] || o.Kind == series.Starting
		case on > 0 && o.First < e.Last && (o.Kind == series.Exception || o.Kind == series.OutOfMemory):
			f = failure(l, e, LongStep)
			f.Since, f.Until, f.Severity = e.First-waited, o.First, finding.Info
			f.Text += fmt.Sprintf(", while it started: it went on by %s, and failed at %s", words.TimeOfDay(on), words.TimeOfDay(o.First))
			return f, len(behind) > 0
		case o.Kind == series.Stopping || o.Kind == series.Exception || o.Kind == series.Crash || o.Kind == series.OutOfMemory:
			return f, false
		case max(o.First, o.Last) >= e.Last && (o.Kind == series.Ready || o.Kind == series.Halt || o.Kind == series.Starting && !behind[step]):
			f = failure(l, e, LongStep)
			f.Since, f.Until, f.Severity = e.First-waited, max(o.First, o.Last), finding.Info
			f.Text += fmt.Sprintf(", while it started: it went on by %s, and did not hang", words.TimeOfDay(f.Until))
			for k := range l.Events {
				if h := &l.Events[k]; h.Kind == series.Halt && h.Server == e.Server && h.First >= f.Since && h.First <= f.Until {
					f.Evidence = append(f.Evidence, finding.Sentence("meanwhile: %s", l.Sentence(h)))
				}
			}
			return f, len(behind) > 0
		case on == 0 && o.Kind == series.Starting && !behind[step]:
			on = o.First
		}
	}
	return f, false
}

// hang makes the finding of a server that does not respond, according to a watchdog or a health check: since its last
// batch, with related events.
func hang(l *telemetry.Logged, e *telemetry.Event) finding.Finding {
	f := failure(l, e, Hang)
	last := lastBatch(l, e.Server, e.First)
	if last > 0 {
		f.Since = last
		if e.Kind == series.Timeout && e.First-last > together {
			f.Text += fmt.Sprintf(", and logged no batch since %s", words.TimeOfDay(last))
		}
	} else if s := gaveUpAfter(e); s > 0 && e.First != 0 {
		f.Since -= s
		f.Text += ", so it has stood still since " + words.TimeOfDay(f.Since) + " or before"
	}
	f = down(l, e, f)
	if n := batchesBetween(l, e); n > 0 {
		f.Evidence = append(f.Evidence, finding.Sentence("it logged %s between the first and the last of these: it was busy, and did not hang", words.Counted(n, "batch")))
		f.Cost = 0 // it served
		f.Brief = "its health checks failed while it was busy"
	}
	if last > 0 && !strings.Contains(f.Text, "no batch since") {
		f.Evidence = append(f.Evidence, finding.Sentence("its last batch was logged at %s", words.TimeOfDay(last)))
	}
	for k := range l.Events {
		if o := &l.Events[k]; o.Kind == series.Halt && o.Server == e.Server && o.First <= e.First && max(o.First, o.Last) >= f.Since-together {
			f.Evidence = slices.Insert(f.Evidence, 0, finding.Sentence("before that: %s", l.Sentence(o)))
		}
		if o := &l.Events[k]; e.Kind == series.Timeout && (byWatchdog(o) || o.Kind == series.Exception && isVictim(o.Text)) && endsSoon(e, o) {
			f.Evidence = append(f.Evidence, finding.Sentence("then: %s", l.Sentence(o)))
		}
		if o := &l.Events[k]; isTold(o, e) {
			f.Evidence = append(f.Evidence, finding.Sentence("along with it: %s", l.Sentence(o)))
		}
	}
	for k := range l.Events {
		if o := &l.Events[k]; isLostTransfer(o) && o.Server == e.Server && max(o.First-e.First, e.First-o.First) <= together {
			f.Evidence = append(f.Evidence, finding.Sentence("along with it: %s", l.Sentence(o)))
		}
	}
	return f
}

// TimedOut reports whether a finding is that a collective timed out, in the words of a watchdog.
func TimedOut(f *finding.Finding) bool {
	return f.Subkind == Hang && strings.Contains(f.Text, "a collective ")
}

// isTold reports whether an exception is how a program learns that a collective timed out: it is raised at that time.
func isTold(e, timeout *telemetry.Event) bool {
	return e.Kind == series.Traceback && timeout.Kind == series.Timeout && e.Server == timeout.Server && strings.HasPrefix(timeout.Text, "a collective ") && max(e.First-timeout.First, timeout.First-e.First) <= exact
}

// leaves reports whether a process of a server ended for a reason of its own after the last batch, before the
// watchdog of another process, which waited for it, gave up.
func leaves(l *telemetry.Logged, end, hang *telemetry.Event) bool {
	if end.Server != hang.Server || end.Kind != series.Exception && end.Kind != series.OutOfMemory || follows(end.Text) || byWatchdog(end) || end.First == 0 || hang.First-end.First <= exact || hang.First-end.First > telemetry.Apart+together {
		return false
	}
	if waited := gaveUpAfter(hang); waited > 0 && hang.First-waited+exact < end.First { // it did not respond before, either
		return false
	}
	return lastBatch(l, end.Server, hang.First) <= end.First+exact && !slices.ContainsFunc(l.Events, func(o telemetry.Event) bool {
		return (o.Kind == series.Ready || o.Kind == series.Starting) && o.Server == end.Server && o.Last > end.First
	})
}

// left returns the watchdogs that gave up because they waited for a process that had ended.
func left(l *telemetry.Logged, end *telemetry.Event) (list []finding.Evidence) {
	for i := range l.Events {
		if o := &l.Events[i]; o.Kind == series.Timeout && leaves(l, end, o) {
			list = append(list, finding.Sentence("then: %s", l.Sentence(o)))
		}
	}
	return list
}

// gaveUpAfter returns the least time without a response before an event, according to its text; 0 if unknown.
func gaveUpAfter(e *telemetry.Event) trace.Time {
	key := " for "
	switch {
	case isLostTransfer(e):
		key = " timed out after "
	case e.Kind != series.Timeout:
		return 0 // a health check reports the last response
	}
	_, rest, _ := strings.Cut(e.Text, key)
	number, _, _ := strings.Cut(rest, " ")
	s, err := strconv.ParseFloat(number, 64)
	if err != nil || !(s > 0 && s < 1e6) {
		return 0
	}
	return trace.Time(s * 1e9)
}

// batchesBetween returns the number of batches that a server logged between the first and the last occurrence of an
// event.
func batchesBetween(l *telemetry.Logged, e *telemetry.Event) (n int) {
	for i := range l.Set.List {
		s := &l.Set.List[i]
		if l.Set.Places[s.Place].Server != e.Server || s.Metric != series.Generation && s.Metric != series.NewTokens {
			continue
		}
		for x := range l.Set.Each(i) {
			if x.Time > e.First && x.Time < e.Last && x.Value > 0 {
				n++
			}
		}
	}
	return n
}

// lastBatch returns when a server logged its last batch before a time.
func lastBatch(l *telemetry.Logged, server int32, before trace.Time) (last trace.Time) {
	for i := range l.Set.List {
		s := &l.Set.List[i]
		if l.Set.Places[s.Place].Server != server || !slices.Contains(series.Batches, s.Metric) {
			continue
		}
		told := l.Set.Servers[server].Engine == "vLLM" // every 10 s, even if it is idle
		for x := range l.Set.Each(i) {
			if x.Time <= before && !(told && (s.Metric == series.Running || x.Value == 0)) {
				last = max(last, x.Time)
			}
		}
	}
	return last
}
