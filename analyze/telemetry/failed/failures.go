package failed

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Subkinds of findings about failures.
const (
	Died      = "died"
	Raised    = "raised"
	Transfers = "transfers"
	HTTP      = "http"
	Aborted   = "aborted"
	// Communication is for errors that a library of collectives reports.
	Communication = "communication"
	// Complaint is for errors in words that sgtrace does not know.
	Complaint = "complaint"
)

// ServerErrors is the metric of findings about answers with an HTTP status of 500 or more.
const ServerErrors = "server errors"

// Failures finds what failed: processes that ended with an exception or ran out of memory, transfers that failed, and
// answers that are server errors.
func Failures(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := l.JudgedLogs("logged failures" + l.UnknownWords())
	out := slices.Concat(exceptions(l), tracebacks(l), transfers(l), serverErrors(l), abortions(l))
	out = append(out, complaints(l)...)
	if runs := failedRuns(l); len(runs) > 0 {
		out = append(out, runs...)
		if check.Reason != "" {
			check = finding.Check{What: check.What, Of: "run", N: len(l.Set.Runs), Needed: 1}
		}
	}
	found, counted := countedTransfers(l)
	if counted && check.Reason != "" {
		check = finding.Check{What: check.What, Of: "server", N: 1, Needed: 1}
	}
	return append(out, found...), check
}

// transfers finds KV transfers that failed. Failures of a server at one time are one finding, led by the lowest layer
// that failed.
func transfers(l *telemetry.Logged) (out []finding.Finding) {
	var failed []*telemetry.Event
	for i := range l.Events {
		if e := &l.Events[i]; isLostTransfer(e) || ofTransfer(e) && !ended(l, e) {
			failed = append(failed, e)
		}
	}
	for _, group := range atOnce(failed, func(e *telemetry.Event) int32 { return e.Server }) {
		if !slices.ContainsFunc(group, func(e *telemetry.Event) bool { return !ofTransfer(e) }) {
			continue // covered with other tracebacks
		}
		if !slices.ContainsFunc(group, func(e *telemetry.Event) bool { return !ruined(l, e) }) {
			continue // covered with the process that it ended
		}
		lead := lowest(group)
		f := failure(l, lead, Transfers)
		n, within := 0.0, 0.0
		for _, e := range group {
			n, within = max(n, float64(e.N)), max(within, lasted(l, e)) // the lines of a group are about the same requests
		}
		if lead.First != 0 {
			loses(&f, lost(l, lead.Server, n, takenIn(l), within))
		}
		if s := gaveUpAfter(lead); s > 0 && lead.First != 0 {
			f.Since -= s
			f.Text += ", so its request had waited since " + words.TimeOfDay(f.Since)
		}
		f.Evidence = append(others(l, lead, group), f.Evidence...)
		if slices.ContainsFunc(group, stalls) {
			f = stalled(l, lead, f)
		}
		out = append(out, f)
	}
	return out
}

// stalls reports whether an event is a scheduler's failed query to a prefill server. Until 2026, SGLang's decode
// server blocks while it waits for the answer.
func stalls(e *telemetry.Event) bool {
	return e.Kind == series.PeerLost && strings.HasPrefix(e.Text, series.Untold)
}

// stalled adds to a finding the health checks that failed at about that time, because a blocked server answers none.
func stalled(l *telemetry.Logged, e *telemetry.Event, f finding.Finding) finding.Finding {
	for i := range l.Events {
		o := &l.Events[i]
		if o.Kind != series.Unhealthy || o.Server != e.Server || max(o.First-e.First, e.First-o.First) > together {
			continue
		}
		f.Since, f.Confidence = min(f.Since, o.First), finding.Likely
		f = down(l, o, f)
		f.Evidence = append([]finding.Evidence{finding.Sentence("%s: until 2026, SGLang does nothing else while it waits for that answer", l.Sentence(o))}, f.Evidence...)
	}
	return f
}

// unended ends the text of an exception whose type is missing from the log.
const unended = "without an end"

// others returns the events of a group besides its lead.
func others(l *telemetry.Logged, lead *telemetry.Event, group []*telemetry.Event) (list []finding.Evidence) {
	for _, e := range group {
		if e != lead && e.Kind != series.Complaint && !strings.HasSuffix(e.Text, unended) {
			list = append(list, finding.Sentence("along with it: %s", l.Sentence(e)))
		}
	}
	return list
}

// isLostTransfer reports whether an event is a KV transfer that failed.
func isLostTransfer(e *telemetry.Event) bool {
	return e.Kind == series.TransferFailed || e.Kind == series.PeerLost
}

// ofTransfer reports whether an event is an exception in a thread that sends KV caches, which the server survives.
func ofTransfer(e *telemetry.Event) bool {
	return e.Kind == series.Traceback && (strings.Contains(e.Stack, "transfer_") || strings.Contains(e.Stack, "_connector.py"))
}

// lowest returns the event of a group in the lowest layer: a device that fails makes a session fail, which makes
// requests fail. Of several, it returns the first.
func lowest(group []*telemetry.Event) *telemetry.Event {
	rank := func(e *telemetry.Event) int {
		switch {
		case strings.Contains(e.Text, "RDMA"), strings.Contains(e.Text, "over TCP"), strings.HasPrefix(e.Text, "cannot connect to"), strings.HasPrefix(e.Text, "no memory of"):
			return 0
		case ofTransfer(e), strings.Contains(e.Text, "NIXL failed"):
			return 1
		}
		return 2
	}
	best := group[0]
	for _, e := range group[1:] {
		if rank(e) < rank(best) && e.First <= best.First+exact {
			best = e
		}
	}
	return best
}

// exact is how precisely stamps in whole seconds show the order of events, in ns.
const exact = trace.Time(2e9)

// atOnce divides events, sorted by time, into groups of one server, given by of, that begin within a minute.
func atOnce(events []*telemetry.Event, of func(*telemetry.Event) int32) (groups [][]*telemetry.Event) {
	used := make([]bool, len(events))
	for i, e := range events {
		if used[i] {
			continue
		}
		var group []*telemetry.Event
		for k := i; k < len(events); k++ {
			if o := events[k]; !used[k] && of(o) == of(e) && o.First-e.First <= together {
				used[k], group = true, append(group, o)
			}
		}
		groups = append(groups, group)
	}
	return groups
}

// failure makes a finding of an event.
func failure(l *telemetry.Logged, e *telemetry.Event, subkind string) finding.Finding {
	f := finding.Finding{Subkind: subkind, At: l.At(e), Since: e.First, Text: l.Sentence(e), Metric: finding.Metric{Name: e.Kind.String(), Before: math.NaN(), After: float64(e.N)}}
	if e.Last > e.First {
		f.Until = e.Last
	}
	if e.Line > 0 {
		f.Evidence = append(f.Evidence, finding.Sentence("%s:%d", e.File, e.Line))
	} else {
		f.Evidence = append(f.Evidence, finding.Sentence("%s", e.File))
	}
	if e.Stack != "" {
		frames := strings.Split(e.Stack, "\n")
		f.Evidence = append(f.Evidence, finding.Sentence("in %s", strings.Join(frames[:min(4, len(frames))], " < ")))
	}
	if e.Kind != series.Cluster {
		f.Evidence = append(f.Evidence, beside(l, e)...)
	}
	return f
}

// sinceThen is the basis of costs that include all of the remaining time.
const sinceThen = "server time since then"

// down adds the cost of a server that ended or stalled: its share of the time of all servers until it is ready again,
// or until the logs of others end. If no log goes on after that, the cost is all, on the basis of sinceThen. It is unknown
// if no server logs what it did, or the time of the end is unknown: then there is no whole that it is a part of.
func down(l *telemetry.Logged, e *telemetry.Event, f finding.Finding) finding.Finding {
	if l.To <= l.From || e.First == 0 {
		f.Severity = cmp.Or(f.Severity, finding.Critical)
		return f
	}
	part := func(to trace.Time) float64 { // share of the whole time, which may begin before the first batch
		return share(to-f.Since, max(l.To, to)-min(l.From, f.Since), serversWith(l, e.Server))
	}
	if o := ready(l, e.Server, e.First, math.MaxInt64); o != nil {
		f.Cost = part(o.First)
		return f
	}
	switch {
	case batchAfter(l, e):
		f.Cost = least
	case l.To-e.First <= together:
		f.Cost, f.BasisText = 1, sinceThen
	default:
		f.Cost = part(l.To)
	}
	return f
}

// lasted returns the time between the first and the last occurrence of an event as a share of the time of all inputs.
func lasted(l *telemetry.Logged, e *telemetry.Event) float64 {
	from, to, _ := l.Set.Bounds()
	return share(e.Last-e.First, to-from, 1)
}

// batchAfter reports whether a server logs batches after an event.
func batchAfter(l *telemetry.Logged, e *telemetry.Event) bool {
	for i := range l.Ranks {
		within := trace.Time(l.Within)
		if l.Set.Servers[e.Server].Engine == "vLLM" {
			within = ofStats
		}
		if r := &l.Ranks[i]; r.Server == e.Server && r.To > max(e.First, e.Last)+within {
			return true
		}
	}
	return false
}

// ofStats is the time that a line of vLLM's statistics covers, in ns, up to the line.
const ofStats = trace.Time(10e9)

// together is the longest time between failures of a server, in ns, that have one cause.
const together = trace.Time(60e9)

// exceptions finds why processes ended, one finding for each time at which some did. An exception on only one rank
// says more than one on all ranks: the others lost a peer.
func exceptions(l *telemetry.Logged) (out []finding.Finding) {
	var failed []*telemetry.Event
	for i := range l.Events {
		switch e := &l.Events[i]; e.Kind {
		case series.Exception, series.OutOfMemory, series.Crash, series.Communication:
			failed = append(failed, e)
		case series.Traceback, series.Complaint:
			if ended(l, e) {
				failed = append(failed, e)
			}
		}
	}
	killed := victims(l)
	var told repeated
	for _, group := range atOnce(failed, func(e *telemetry.Event) int32 {
		if v, ok := killed[e]; ok {
			return v.server
		}
		return e.Server
	}) {
		lead := leading(group)
		if lead.Kind == series.Communication && !slices.ContainsFunc(group, ends) {
			out = append(out, warned(l, lead, group))
			continue
		}
		if (byWatchdog(lead) || follows(lead.Text)) && watched(l, lead) || toldToEnd(l, lead) {
			continue // covered there
		}
		more := others(l, lead, group)
		if byKernel(lead) {
			f := killing(l, lead, killed)
			f.Evidence = append(more, f.Evidence...)
			out = append(out, f)
			continue
		}
		f := down(l, lead, failure(l, lead, Died))
		if lead.Kind == series.Complaint {
			f.Confidence = finding.Likely
		}
		if lead.Kind == series.OutOfMemory || ofPool(lead.Text) {
			more = append(besidePool(l, lead), more...)
		}
		if needsTransfer(lead) || strings.HasSuffix(lead.Text, unended) {
			if k := slices.IndexFunc(l.Events, func(o telemetry.Event) bool { return o.Server == lead.Server && ruined(l, &o) }); k >= 0 {
				f.Text += ", after " + l.Events[k].Text
			}
		}
		f.Evidence = slices.Concat(waited(l, lead), more, f.Evidence, complained(l, lead, group), lostBefore(l, lead), left(l, lead))
		f.Evidence = append(f.Evidence, unexplained(l, lead, group)...)
		if told.again(l, out, lead, &f) {
			continue
		}
		n := len(out)
		if out = withPeers(l, out, lead, f); len(out) > n {
			told = append(told, sameEnd{k: n, text: unnumbered(lead.Text), first: lead, last: lead})
		}
	}
	return told.counted(out)
}

// withPeers adds a finding to others. If it is about a process that waited for one in another finding, it becomes
// evidence there.
func withPeers(l *telemetry.Logged, out []finding.Finding, lead *telemetry.Event, f finding.Finding) []finding.Finding {
	if isVictim(lead.Text) {
		if last := lastBatch(l, lead.Server, lead.First); last > 0 && lead.First-last > together {
			f.Since = last // it has waited since then
		}
		if k := slices.IndexFunc(out, func(o finding.Finding) bool { return ofOneJob(&o, &f, lead) }); k >= 0 {
			out[k].Evidence = append(out[k].Evidence, finding.Sentence("likewise %s", f.Text))
			return out
		}
	}
	return append(out, f)
}

// ofOneJob reports whether a process ended for the same reason, and at about the same time, as one of another server,
// because others did not answer: the processes of both servers communicate with each other.
func ofOneJob(o, f *finding.Finding, e *telemetry.Event) bool {
	return !strings.HasSuffix(e.Text, unended) && strings.Contains(o.Text, e.Text) && max(o.Since-f.Since, f.Since-o.Since) <= together
}

// Waited reports whether a finding is about processes that ended because others did not answer them.
func Waited(f *finding.Finding) bool { return f.Subkind == Died && isVictim(f.Text) }

// LostPeer reports whether a finding is that a server lost the one that it exchanges KV caches with.
func LostPeer(f *finding.Finding) bool {
	return f.Subkind == Transfers && (f.Metric.Name == series.PeerLost.String() || strings.Contains(f.Text, " server may be dead"))
}

// waited says whom a process that ended blames, and how long it had been idle.
func waited(l *telemetry.Logged, lead *telemetry.Event) (list []finding.Evidence) {
	if isVictim(lead.Text) && !strings.HasSuffix(lead.Text, unended) {
		list = append(list, finding.Sentence("that is how a process learns that another one failed or is stuck: the log of that one says why"))
	}
	if last := lastBatch(l, lead.Server, lead.First); last > 0 && lead.First-last > together {
		list = append(list, finding.Sentence("its last batch was logged at %s, %s before", words.TimeOfDay(last), words.Nearly(int64(lead.First-last))))
	}
	return list
}

// needsTransfer reports whether a process ended in code that moves KV caches between servers or storage.
func needsTransfer(e *telemetry.Event) bool {
	return e.Kind == series.Exception && slices.ContainsFunc([]string{"transfer", "mooncake", "nixl", "hicache", "_connector.py", "storage"}, func(of string) bool { return strings.Contains(e.Stack, of) })
}

// ruined reports whether an event is a failed transfer right before code that needs it ended its process. If the log
// has only the beginning of an exception, that code is unknown.
func ruined(l *telemetry.Logged, e *telemetry.Event) bool {
	return isLostTransfer(e) && slices.ContainsFunc(l.Events, func(o telemetry.Event) bool {
		before := exact
		if needsTransfer(&o) {
			before = together
		} else if o.Kind != series.Exception || !strings.HasSuffix(o.Text, unended) {
			return false
		}
		return o.Server == e.Server && e.First >= o.First-before && max(e.First, e.Last) <= o.First+exact
	})
}

// lostBefore returns the transfers that failed right before a process ended, as code that needs them may not survive
// that.
func lostBefore(l *telemetry.Logged, lead *telemetry.Event) (list []finding.Evidence) {
	for i := range l.Events {
		if o := &l.Events[i]; isLostTransfer(o) && o.Server == lead.Server && o.First >= lead.First-together && o.First <= lead.First+exact {
			list = append(list, finding.Sentence("before it, %s", l.Sentence(o)))
		}
	}
	return list
}

// ofPool reports whether the KV cache, or the pool of requests, is full, and no device ran out of memory.
func ofPool(text string) bool {
	return strings.Contains(text, "KV cache has no room") || strings.Contains(text, "ecode out of memory") || strings.Contains(text, "refill out of memory") || strings.Contains(text, "alloc_req_slots")
}

// ends reports whether an event is the end of a process.
func ends(e *telemetry.Event) bool {
	return e.Kind == series.Exception || e.Kind == series.OutOfMemory || e.Kind == series.Crash
}

// warned makes the finding of communication that failed, in a log that does not show the consequences.
func warned(l *telemetry.Logged, lead *telemetry.Event, group []*telemetry.Event) finding.Finding {
	f := failure(l, lead, Communication)
	f.Evidence = append(others(l, lead, group), f.Evidence...)
	for i := range l.Events {
		if e := &l.Events[i]; ofNCCL(e) && e.Server == lead.Server && max(e.First-lead.First, lead.First-e.First) <= together {
			f.Evidence = append(f.Evidence, finding.Sentence("along with it: %s", l.Sentence(e)))
		}
	}
	return f
}

// ofNCCL reports whether an event is a failed NCCL call: NCCL itself logs the reason.
func ofNCCL(e *telemetry.Event) bool {
	return e.Kind == series.Traceback && strings.Contains(e.Text, "NCCL error")
}

// near reports whether something happened to the server of an event at about the same time.
func near(l *telemetry.Logged, e *telemetry.Event, is func(o *telemetry.Event) bool) bool {
	return slices.ContainsFunc(l.Events, func(o telemetry.Event) bool {
		return is(&o) && o.Server == e.Server && max(o.First-e.First, e.First-o.First) <= together
	})
}

// ended reports whether a process of the server of an event ended at about the same time. Other exceptions are then
// evidence of that.
func ended(l *telemetry.Logged, e *telemetry.Event) bool { return near(l, e, ends) }

// watched reports whether a watchdog of a server ended it. Its end is then part of the finding about the hang.
func watched(l *telemetry.Logged, crash *telemetry.Event) bool {
	return slices.ContainsFunc(l.Events, func(o telemetry.Event) bool { return o.Kind == series.Timeout && endsSoon(&o, crash) })
}

// toldToEnd reports whether an event is only the end of processes of a server that was told to end, which SGLang logs
// as a crash.
func toldToEnd(l *telemetry.Logged, e *telemetry.Event) bool {
	return strings.HasSuffix(e.Text, " exit code -15 (SIGTERM)") && near(l, e, func(o *telemetry.Event) bool {
		return o.Kind == series.Stopping && o.First <= e.First && !strings.HasSuffix(o.Text, "has ended")
	})
}

// byWatchdog reports whether a process may have ended because its watchdog gave up: there is no other reason, or it
// aborted itself.
func byWatchdog(e *telemetry.Event) bool {
	return e.Kind == series.Crash || e.Kind == series.Exception && strings.HasSuffix(e.Text, " died with exit code -6 (aborted)")
}

// endsSoon reports whether a crash follows a hang of its server. vLLM's engine waits for 5 minutes before it gives up
// on its workers.
func endsSoon(hang, crash *telemetry.Event) bool {
	return hang.Server == crash.Server && crash.First >= hang.First && crash.First-max(hang.First, hang.Last) <= telemetry.Apart
}

// forPool maps engines to the setting that sizes their KV cache.
var forPool = map[string]string{"SGLang": "--mem-fraction-static", "vLLM": "--gpu-memory-utilization", "TensorRT-LLM": "free_gpu_memory_fraction"}

// asleep returns since when a server was sleeping at the time of an event, with its memory released; 0 if it was
// awake.
func asleep(l *telemetry.Logged, e *telemetry.Event) trace.Time {
	last := map[string]trace.Time{}
	for i := range l.Events {
		if o := &l.Events[i]; o.Server == e.Server && o.First <= e.First {
			at := o.First
			if o.Last <= e.First {
				at = max(at, o.Last)
			}
			last[o.Text] = max(last[o.Text], at)
		}
	}
	if since := last[series.Sleeps]; since > last[series.Wakes] {
		return since
	}
	return 0
}

// besidePool says whether the KV cache was full when memory ran out.
func besidePool(l *telemetry.Logged, e *telemetry.Event) []finding.Evidence {
	usage, most := math.NaN(), 0.0
	for i := range l.Set.List {
		s := &l.Set.List[i]
		if s.Metric != series.KVUsage || l.Set.Places[s.Place].Server != e.Server {
			continue
		}
		last := math.NaN()
		for x := range l.Set.Each(i) {
			if x.Time <= e.First {
				last, most = x.Value, max(most, x.Value)
			}
		}
		if !math.IsNaN(last) && !(usage >= last) { // the fullest rank
			usage = last
		}
	}
	switch {
	case math.IsNaN(usage):
		return nil
	case asleep(l, e) > 0:
		return []finding.Evidence{finding.Sentence("it was asleep since %s: others may have taken the memory that it gave back", words.TimeOfDay(asleep(l, e)))}
	case usage < telemetry.Full && !ofPool(e.Text):
		return []finding.Evidence{finding.Sentence("its KV cache was %s %% full then, %s %% at most: the memory that ran out is what %s leaves outside the KV cache", words.InPercent(usage/100), words.InPercent(most/100), cmp.Or(forPool[l.Set.Servers[e.Server].Engine], "its KV cache"))}
	}
	return []finding.Evidence{finding.Sentence("its KV cache was %s %% full then", words.InPercent(usage/100))}
}
