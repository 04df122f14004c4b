package platform

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// A kubeState is what kube-state-metrics says about one container, or about a pod or node as a whole.
type kubeState struct {
	of                         event
	container                  string
	ended, waits, exit, reason string
	restarts                   int64      // -1 is unknown
	finished, since            trace.Time // when the container ended; since when the reason holds
	again                      trace.Time // first scrape with more restarts than the one before it
}

// A kubeSeries is a series of kube-state-metrics.
type kubeSeries struct {
	state *kubeState
	name  string // without "kube_"
	value string // of the label that tells
}

// kubeNames are metrics of kube-state-metrics about states, without "kube_", with the label that tells.
var kubeNames = map[string]string{
	"pod_container_status_last_terminated_reason": "reason", "pod_container_status_terminated_reason": "reason", "pod_container_status_waiting_reason": "reason",
	"pod_container_status_restarts_total": "", "pod_container_status_last_terminated_exitcode": "", "pod_container_status_last_terminated_timestamp": "",
	"pod_status_reason": "reason", "pod_status_unschedulable": "", "node_status_condition": "status",
}

// watchKube watches a series of kube-state-metrics. If Prometheus also labels its own target, the pod in question is exported_pod.
func (d *reader) watchKube(id int32, name string, labels map[string]string) {
	name, of := strings.CutPrefix(name, "kube_")
	label, known := kubeNames[name]
	if !of || !known || name == "node_status_condition" && (labels["condition"] != "Ready" || labels["status"] == "true") {
		return
	}
	pod, container := labels["exported_pod"], labels["exported_container"]
	if pod == "" {
		pod, container = labels["pod"], labels["container"]
	}
	e := event{kind: "pod", name: pod}
	if strings.HasPrefix(name, "node_") {
		e, container = event{kind: "node", name: labels["node"]}, ""
	} else if strings.HasPrefix(name, "pod_status_") {
		container = ""
	}
	if d.kube == nil {
		d.kube, d.kubes = map[string]*kubeState{}, map[int32]kubeSeries{}
	}
	key := e.kind + "\x00" + e.name + "\x00" + container
	s := order.Memo(d.kube, key, func() *kubeState {
		d.kubeKeys = append(d.kubeKeys, key)
		return &kubeState{of: e, container: container, restarts: -1}
	})
	d.kubes[id] = kubeSeries{state: s, name: name, value: cmp.Or(labels[label], "FailedScheduling")}
}

// sawKube takes the last values: states last until another scrape has another.
func (d *reader) sawKube(id int32, at trace.Time, value float64) {
	x, ok := d.kubes[id]
	if !ok {
		return
	}
	s := x.state
	set := func(to *string) {
		switch is := value == 1; {
		case is && *to != x.value:
			*to, s.since = x.value, at
		case !is && *to == x.value:
			*to = ""
		}
	}
	switch x.name {
	case "pod_container_status_restarts_total":
		if n := int64(value); s.restarts >= 0 && n > s.restarts && s.again == 0 {
			s.again = at
		}
		s.restarts = int64(value)
	case "pod_container_status_last_terminated_exitcode":
		s.exit = fmt.Sprintf("exit code %.0f", value)
	case "pod_container_status_last_terminated_timestamp":
		s.finished = trace.Time(value) * 1e9
	case "pod_container_status_waiting_reason":
		set(&s.waits)
	case "pod_status_reason", "pod_status_unschedulable", "node_status_condition":
		set(&s.reason)
	default:
		set(&s.ended)
	}
}

// tellKube adds the bad states as events.
func (d *reader) tellKube() {
	r := &eventReader{f: d.Filler}
	for _, key := range d.kubeKeys {
		s := d.kube[key]
		r.state(s.of, s.container, s.ended, s.exit, cmp.Or(s.finished, s.again), s.restarts)
		r.state(s.of, s.container, s.waits, "", 0, s.restarts)
		if e := s.of; s.reason != "" {
			e.reason, e.warning, e.first, e.count = s.reason, true, s.since, 1
			if e.kind == "node" {
				e.reason, e.message = "NodeNotReady", "whether it is ready is "+s.reason
			}
			r.add(&e)
		}
	}
}
