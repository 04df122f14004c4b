package platform

import (
	"fmt"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/trace"
)

// A containerStatus is the status of one container in the status of its pod: kubectl get pod -o json.
type containerStatus struct {
	Name         string
	RestartCount int64
	State        containerState
	LastState    containerState
}

type containerState struct {
	Waiting    *struct{ Reason, Message string }
	Terminated *struct {
		Reason     string
		ExitCode   int
		FinishedAt stamp
	}
}

// podStates maps bad states of containers to the reasons that events use for them.
var podStates = map[string]string{"CrashLoopBackOff": "BackOff", "ImagePullBackOff": "ImagePullBackOff", "ErrImagePull": "ErrImagePull", "OOMKilled": "OOMKilled", "Error": "Terminated", "ContainerCannotRun": "Terminated",
	"CreateContainerError": "Failed", "CreateContainerConfigError": "Failed", "Evicted": "Evicted", "ContainerStatusUnknown": "Terminated"}

// container adds the status of a container: how it last ended, and why it is waiting.
func (r *eventReader) container(of event, c *containerStatus) {
	for _, s := range [...]*containerState{&c.State, &c.LastState} {
		switch {
		case s.Terminated != nil:
			r.state(of, c.Name, s.Terminated.Reason, fmt.Sprintf("exit code %d", s.Terminated.ExitCode), trace.Time(s.Terminated.FinishedAt), c.RestartCount)
		case s.Waiting != nil:
			r.state(of, c.Name, s.Waiting.Reason, s.Waiting.Message, 0, c.RestartCount)
		}
	}
}

// state adds an event for a container's state, with the number of restarts.
func (r *eventReader) state(of event, container, state, more string, at trace.Time, restarts int64) {
	reason := podStates[state]
	if reason == "" {
		return
	}
	message := state
	if reason == state {
		message = ""
	}
	switch {
	case state == "CrashLoopBackOff":
		message = "restarting failed container"
	case more != "":
		message = strings.TrimPrefix(message+", "+more, ", ")
	}
	if container != "" {
		message = strings.TrimSuffix("container "+container+": "+message, ": ")
	}
	if restarts > 0 {
		message = strings.TrimPrefix(fmt.Sprintf("%s, started again %d times", message, restarts), ", ")
	}
	of.kind, of.reason, of.message, of.warning, of.first, of.last, of.count = "pod", reason, message, true, at, at, 1
	r.add(&of)
}

// A describedPod is the state of a container in kubectl describe, which is read line by line.
type describedPod struct {
	inside                  bool   // in the section of its containers
	told                    bool   // the container has been reported
	section                 string // "Last State Terminated"
	container, state, more  string // how it last ended
	finished                trace.Time
	waiting, waitingMessage string
}

var (
	describedContainer = lazyregexp.New(`^  ([a-z0-9][a-z0-9.-]*):$`)
	describedField     = lazyregexp.New(`^ *(State|Last State|Reason|Message|Exit Code|Finished|Restart Count): +(\S.*)$`)
)

// describedLine reads a line of kubectl describe about a container.
func (r *eventReader) describedLine(line string, n int64) {
	d := &r.pod
	m := describedField.FindStringSubmatch(line)
	if m != nil && r.of.name == "" && !d.inside { // a fragment without the name of the pod
		*d = describedPod{inside: true}
	}
	if line == "Containers:" || line == "Init Containers:" {
		*d = describedPod{inside: true}
		return
	}
	if line != "" && line[0] != ' ' && m == nil {
		d.inside = false
	}
	if !d.inside {
		return
	}
	if m := describedContainer.FindStringSubmatch(line); m != nil {
		*d = describedPod{inside: true, container: m[1]}
		return
	}
	if m == nil {
		return
	}
	d.told = m[1] == "Restart Count"
	switch m[1] {
	case "State", "Last State":
		d.section = m[1] + " " + m[2]
	case "Reason":
		switch {
		case strings.HasSuffix(d.section, "Terminated"):
			d.state = m[2]
		case strings.HasSuffix(d.section, "Waiting"):
			d.waiting = m[2]
		}
	case "Message":
		if strings.HasSuffix(d.section, "Waiting") {
			d.waitingMessage = m[2]
		}
	case "Exit Code":
		d.more = "exit code " + m[2]
	case "Finished":
		if t, err := time.Parse(time.RFC1123Z, m[2]); err == nil {
			d.finished = trace.Time(t.UnixNano())
		}
	case "Restart Count":
		var restarts int64
		_, _ = fmt.Sscan(m[2], &restarts)
		r.describedEnds(n, restarts)
	}
}

// describedEnds reports how a container last ended, and what it is waiting for.
func (r *eventReader) describedEnds(line, restarts int64) {
	of, d := r.of, &r.pod
	of.line = line
	if of.name == "" {
		of.name = r.file
	}
	r.state(of, d.container, d.state, d.more, d.finished, restarts)
	r.state(of, d.container, d.waiting, d.waitingMessage, 0, restarts)
}
