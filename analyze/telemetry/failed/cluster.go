package failed

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Taken is the subkind of findings about what an orchestrator took away.
const Taken = "cluster"

// Gone are the subkinds of findings about servers that do not answer, are started again, or get no more requests from
// a router, which happens when the process has ended.
var Gone = []string{Unrouted, Taken + " Unhealthy", Taken + " BackOff", Taken + " Crash loop", Taken + " Killed"}

// removals are reasons of Kubernetes events after which a pod is gone, or its node is lost.
var removals = []string{"Evicted", "OOMKilling", "OOMKilled", "SystemOOM", "NodeNotReady", "Preempted", "Preempting", "Rebooted", "TaintManagerEviction", "NodeShutdown", "DeletingAllPods"}

// startFailures are reasons of Kubernetes events after which a pod does not start unless something changes, or is
// started again.
var startFailures = []string{"FailedScheduling", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "BackOff", "Failed", "ErrImagePull", "ImagePullBackOff", "Terminated"}

// reason returns the reason of a Kubernetes event from a text like "pod: Evicted: .."; "" for other events.
func reason(e *telemetry.Event) string {
	if e.Kind != series.Cluster {
		return ""
	}
	parts := strings.SplitN(e.Text, ": ", 3)
	if len(parts) > 1 && parts[0] == strings.ToLower(parts[0]) {
		parts = parts[1:]
	}
	switch {
	case parts[0] == "Killing" && strings.Contains(e.Text, "failed liveness probe"):
		return "Killed"
	case parts[0] == "BackOff" && strings.Contains(e.Text, "restarting failed"):
		return "Crash loop"
	}
	return parts[0]
}

// severity returns the severity of a Kubernetes event. A pod whose probes fail gets no requests, but a starting pod's
// fail, too, so it is certain trouble only if the pod served before.
func severity(l *telemetry.Logged, e *telemetry.Event, reason string) (s finding.Severity, ok bool) {
	switch {
	case slices.Contains(removals, reason), reason == "Killed", reason == "Crash loop":
		return finding.Critical, true
	case slices.Contains(startFailures, reason):
		return finding.Info, true
	case reason == "Unhealthy" && e.Requests > 1:
		if served(l, e) {
			return finding.Warning, true
		}
		return finding.Info, true
	}
	return finding.Info, false
}

// served reports whether the server of an event ran requests before it.
func served(l *telemetry.Logged, e *telemetry.Event) bool {
	s := &l.Set.Servers[e.Server]
	return slices.ContainsFunc(l.Ranks, func(r telemetry.Rank) bool {
		of := &l.Set.Servers[r.Server]
		return r.From < e.First && (r.Server == e.Server || s.Name != "" && strings.Contains(of.Name, s.Name))
	})
}

// Cluster finds what Kubernetes took away: pods that it evicted, killed, or restarted, pods whose probes fail or that
// do not start, and nodes that it lost. There is one finding for each reason.
func Cluster(l *telemetry.Logged) ([]finding.Finding, finding.Check) {
	check := finding.Check{What: "what Kubernetes did", Of: "event", Needed: 1, Reason: "the input has no events of Kubernetes"}
	const few = 4
	by := map[string]int{}
	timed := len(l.Ranks) > 0 || slices.ContainsFunc(l.Set.Sources, func(s series.Source) bool { return s.IsLog() })
	var out []told
	for i := range l.Events {
		e := &l.Events[i]
		reason := reason(e)
		if reason == "" {
			continue
		}
		check.N, check.Reason = check.N+1, ""
		severity, tells := severity(l, e, reason)
		if !tells {
			continue
		}
		k, ok := by[reason]
		if !ok {
			by[reason] = len(out)
			f := failure(l, e, Taken+" "+reason)
			// A status does not say how long the pod was gone, and metrics without servers have no time of which it is a part.
			if f.Severity = severity; severity != finding.Info && !strings.Contains(e.Text, "started again ") && timed {
				f = down(l, e, f)
			}
			out = append(out, told{Finding: f, reason: reason, of: []*telemetry.Event{e}})
			continue
		}
		if f := &out[k]; len(f.Evidence) < few {
			f.Evidence = append(f.Evidence, finding.Sentence("likewise %s", l.Sentence(e)))
		}
		out[k].Metric.After += float64(e.N)
		out[k].of = append(out[k].of, e)
	}
	return whyFirst(out), check
}

// A told is a finding about what Kubernetes did for a reason, with its events.
type told struct {
	finding.Finding
	reason string
	of     []*telemetry.Event
}

// about reports whether o is about all servers that t is about.
func (t *told) about(o *told) bool {
	return !slices.ContainsFunc(t.of, func(e *telemetry.Event) bool {
		return !slices.ContainsFunc(o.of, func(x *telemetry.Event) bool { return x.Server == e.Server })
	})
}

// whyFirst turns consequences of how containers ended into evidence of that finding: that they are restarted
// repeatedly, and that probes fail. Findings about what took away their memory, or killed them, come before how they
// ended.
func whyFirst(list []told) (out []finding.Finding) {
	rank := func(reason string) int {
		switch {
		case slices.Contains(removals, reason):
			return 0
		case reason == "Killed":
			return 1
		case reason == "Terminated":
			return 2
		}
		return 3
	}
	follows := []string{"Terminated", "Unhealthy", "Crash loop", "BackOff"}
	taken := make([]bool, len(list))
	for i := range list {
		x := &list[i]
		lead := -1
		for k := range list {
			if o := &list[k]; k != i && rank(o.reason) < rank(x.reason) && x.about(o) && (lead < 0 || rank(o.reason) < rank(list[lead].reason)) {
				lead = k
			}
		}
		if lead < 0 || !slices.Contains(follows, x.reason) {
			continue
		}
		o := &list[lead]
		taken[i] = true
		with := len(o.Evidence)
		if x.reason == "Unhealthy" && o.reason == "Terminated" && killedByProbe(x, o) {
			o.Text += ", after its probes failed, for which Kubernetes kills it"
			o.Confidence, with = finding.Likely, 0
		}
		if o.Evidence = slices.Insert(o.Evidence, with, finding.Sentence("along with it: %s", x.Text)); x.Cost > o.Cost {
			o.Cost, o.BasisText = x.Cost, x.BasisText
		}
		if x.Severity == finding.Critical {
			o.Severity = finding.Critical
		}
	}
	for i := range list {
		if !taken[i] {
			out = append(out, list[i].Finding)
		}
	}
	return out
}

// killedByProbe reports whether containers ended by a signal that the kubelet sends, and failed a kind of probe for
// which it does so.
func killedByProbe(probes, ended *told) bool {
	return slices.ContainsFunc(probes.of, func(e *telemetry.Event) bool {
		return strings.Contains(e.Text, "Liveness probe failed") || strings.Contains(e.Text, "Startup probe failed")
	}) && slices.ContainsFunc(ended.of, func(e *telemetry.Event) bool {
		return strings.Contains(e.Text, "exit code 137") || strings.Contains(e.Text, "exit code 143")
	})
}

// beside returns what Kubernetes, or a driver of the host, reported about the server of an event within a few minutes
// of it.
func beside(l *telemetry.Logged, e *telemetry.Event) (list []finding.Evidence) {
	const near, most = trace.Time(300e9), 3
	s := &l.Set.Servers[e.Server]
	for i := range l.Events {
		o := &l.Events[i]
		if o == e || o.Kind != series.Cluster && o.Kind != series.Hardware || o.First == 0 || e.First == 0 || o.First > e.First+near || max(o.First, o.Last) < e.First-near {
			continue
		}
		of := &l.Set.Servers[o.Server]
		switch {
		case of.Host != "" && of.Host == s.Host, of.Name != "" && s.Name != "" && (strings.Contains(s.Name, of.Name) || strings.Contains(of.Name, s.Name)):
			if len(list) < most {
				list = append(list, finding.Sentence("along with it: %s", l.Sentence(o)))
			}
		}
	}
	return list
}
