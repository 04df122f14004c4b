package logged

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Taken is the topic of findings of what an orchestrator took away.
const Taken = "cluster"

// takes are reasons of events of Kubernetes after which a pod is gone or its node is lost.
var takes = []string{"Evicted", "OOMKilling", "OOMKilled", "SystemOOM", "NodeNotReady", "Preempted", "Preempting", "Rebooted", "TaintManagerEviction", "NodeShutdown", "DeletingAllPods"}

// reason is what Kubernetes calls an event, "pod: Evicted: .."; "" is none.
func (e *Event) reason() string {
	if e.Kind != series.Cluster {
		return ""
	}
	parts := strings.SplitN(e.Text, ": ", 3)
	if len(parts) > 1 && parts[0] == strings.ToLower(parts[0]) {
		parts = parts[1:]
	}
	if parts[0] == "Killing" && strings.Contains(e.Text, "failed liveness probe") {
		return "Killed"
	}
	return parts[0]
}

// Cluster finds what Kubernetes took away: pods that it evicted, killed, or started again, and nodes that it lost. One
// finding is about all of one reason.
func (l *Logged) Cluster() ([]finding.Finding, finding.Judged) {
	judged := finding.Judged{What: "what Kubernetes did", Of: "event", Needed: 1, Reason: "the input has no events of Kubernetes"}
	const few = 4
	by := map[string]int{}
	var out []finding.Finding
	for i := range l.Events {
		e := &l.Events[i]
		reason := e.reason()
		if reason == "" {
			continue
		}
		judged.N, judged.Reason = judged.N+1, ""
		if !slices.Contains(takes, reason) && reason != "Killed" {
			continue
		}
		k, ok := by[reason]
		if !ok {
			by[reason] = len(out)
			out = append(out, l.failure(e, Taken+" "+reason))
			continue
		}
		if f := &out[k]; len(f.Evidence) < few {
			f.Evidence = append(f.Evidence, finding.Sentence("likewise %s", l.Sentence(e)))
		}
		out[k].Metric.After += float64(e.N)
	}
	return out, judged
}

// beside says what Kubernetes, or a driver of the host, said about the server of an event within a few minutes of it.
func (l *Logged) beside(e *Event) (list []finding.Evidence) {
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
				list = append(list, finding.Sentence("beside it, %s", l.Sentence(o)))
			}
		}
	}
	return list
}
