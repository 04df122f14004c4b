package platform

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Kubernetes reads events of Kubernetes about pods and nodes, as printed by kubectl as JSON
// (kubectl get events -o json, also from a watch) or YAML, and as a table (kubectl get events, kubectl describe). Events about
// a problem or an end become instants of a host or of a pod; all others are ignored.
//
// # What is odd
//
//   - A table has ages, "2m37s" or "2m37s (x22 over 6m45s)", and no times: they count back from when the file was written, or from the stamp
//     that a CI system puts before its lines.
//   - An event that repeats is one, with a count and its first and last time. Events of events.k8s.io have a series instead.
//   - OOMKilling, Evicted and NodeNotReady may be of type Normal. No event reports that a pod is healthy again.
//   - The same event is listed for the pod and, by another controller, for its set.
//   - How a container last ended, and that it waits to be restarted, is not an event, but part of the status of its pod: kubectl get pods, and
//     describe pod.
var Kubernetes = &format.Format{
	Name:   "Kubernetes events",
	Noun:   "Kubernetes event list",
	Doc:    "what Kubernetes says of pods and nodes: kubectl get events and get pods, as JSON, as YAML, or as a table; kubectl describe",
	For:    "'sgtrace report'",
	Sniff:  isEvents,
	Index:  indexEvents,
	Series: true,
	Text:   true,
}

var (
	header = lazyregexp.New(`(?m)^(?:NAMESPACE +)?(?:LAST SEEN +)?(?:FIRST SEEN +)?(?:COUNT +)?(?:NAME +)?(?:KIND +)?(?:SUBOBJECT +)?TYPE +REASON +OBJECT\b|^ *Type +Reason +Age +From +Message|^(?:NAMESPACE +)?NAME +READY +STATUS +RESTARTS +AGE\b|^ *Last State: +Terminated`)
	// bare matches a row of kubectl describe without its header: type, reason, age, from, message.
	bare = lazyregexp.New(`(?m)^ *(Warning|Normal)  +([A-Z][A-Za-z]+)  +(\d\S*(?: \(x\d+ over \S+\))?)  +(\S+(?:, \S+)?)  +(\S.*)$`)
	// logs matches a log line after a table: somebody saved the output of several commands, and the log has more information.
	logs   = lazyregexp.New(`(?m)^.{0,60}?(?:20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*Z?(?:\x1b\[\d+m)? +(?:\x1b\[\d+m ?)?(?:INFO|WARN|WARNING|ERROR)\b|(?:INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d |\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d[^\]\n]{0,40}\] )`)
	yamls  = lazyregexp.New(`(?m)^(?:- )?apiVersion: `)
	events = lazyregexp.New(`(?m)^[ -]*(?:involvedObject|regarding|containerStatuses):\s*$`)
	kinds  = lazyregexp.New(`"kind": ?"(?:Event(?:List)?|Pod)"|"involvedObject": ?\{|"regarding": ?\{`)
)

// stamped matches the time that a CI system, such as GitHub's, GitLab's, or Jenkins, or kubectl logs --timestamps puts before each line.
var stamped = lazyregexp.New(`(?m)^\[?(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)\]?(?: \d\d[OE][+ ]?)? `)

func isEvents(head []byte) bool {
	if text := bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n"); len(text) > 0 && text[0] == '{' {
		return bytes.Contains(head, []byte(`"apiVersion"`)) && (bytes.Contains(head, []byte(`"reason"`)) || bytes.Contains(head, []byte(`"Pod"`))) && kinds.Match(head)
	}
	if bytes.Contains(head, []byte("apiVersion: ")) && yamls.Match(head) && events.Match(head) {
		return true
	}
	if (bytes.Contains(head, []byte("Warning  ")) || bytes.Contains(head, []byte("Normal  "))) && bare.Match(head) {
		return !logs.Match(head)
	}
	if !slices.ContainsFunc([]string{"REASON", "Reason", "RESTARTS"}, func(word string) bool { return bytes.Contains(head, []byte(word)) }) {
		return false // as of most files, for which expressions take long
	}
	if stamped.Match(head) {
		head = []byte(stamped.ReplaceAllString(string(head), ""))
	}
	return header.Match(head) && !logs.Match(head)
}

// An event is an event in any of the forms.
type event struct {
	kind, name, host string // the object, and the node
	reason, message  string
	warning          bool
	count            int64
	first, last      trace.Time // 0 is unknown
	line             int64
}

// An eventReader reads one file.
type eventReader struct {
	f       *series.Filler
	written time.Time // when the file was written, or the table was printed; ages count from then
	printed bool      // a stamp says when it was printed
	n, kept int
	of      event  // for rows of a table that do not name their object
	file    string // of the file: the name for events without one
	pod     describedPod
}

// indexEvents reads a file.
func indexEvents(in *format.Input, opt *format.Options) (*format.Source, error) {
	content, err := in.Open()
	if err != nil {
		return nil, err
	}
	r := &eventReader{f: opt.Series.Fill(in.Name, "Kubernetes events"), written: time.Now()}
	r.file, _, _ = strings.Cut(filepath.Base(in.Name), ".")
	if info, err := os.Stat(in.Path); err == nil {
		r.written = info.ModTime()
	}
	all := bufio.NewReaderSize(content, 64<<10)
	head, err := all.Peek(64 << 10)
	if len(head) == 0 {
		return nil, cmp.Or(err, io.ErrUnexpectedEOF)
	}
	switch {
	case head[0] == '{':
		err = r.json(all)
	case yamls.Match(head):
		err = r.yaml(all)
	default:
		if err = r.table(all); r.kept > 0 && !r.printed {
			opt.Diags.Add(trace.EventAges.Of(in.Name, r.written.UTC().Format("2006-01-02 15:04:05")))
		}
	}
	if err != nil {
		opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	src := r.f.Source()
	src.Lines, src.Read = max(src.Lines, r.n), r.kept
	return &format.Source{}, content.Close()
}

// tellingReasons are reasons of events of type Normal that report an end or a problem.
var tellingReasons = []string{"Killing", "Evicted", "OOMKilling", "NodeNotReady", "NodeNotSchedulable", "Preempted", "Preempting", "Rebooted", "TaintManagerEviction", "Shutdown", "NodeHasDiskPressure",
	"NodeHasInsufficientMemory", "DeletingAllPods", "Drain", "SystemOOM", "NodeShutdown", "ScalingReplicaSet", "SuccessfulRescale"}

// add adds an event if it reports a problem or an end.
func (r *eventReader) add(e *event) {
	r.n++
	r.f.Saw(e.first)
	r.f.Saw(e.last)
	if !e.warning && !slices.Contains(tellingReasons, e.reason) || e.reason == "" {
		return
	}
	r.kept++
	server := series.Server{Host: e.host, Name: e.name}
	if strings.EqualFold(e.kind, "node") {
		server = series.Server{Host: e.name}
	}
	at := cmp.Or(e.first, e.last)
	text := e.reason
	if e.kind != "" {
		text = strings.ToLower(e.kind) + ": " + text
	}
	if e.message != "" {
		text += ": " + strings.TrimRight(logline.Message([]byte(strings.Join(strings.Fields(e.message), " "))), ".")
	}
	if e.count > 1 && e.last > at && at != 0 {
		text += fmt.Sprintf(" (until %s)", time.Unix(0, int64(e.last)).UTC().Format("15:04:05"))
	}
	r.f.Within(1e9)
	place := r.f.Place(series.Place{Server: r.f.Server(server), Rank: trace.NoRank, GPU: series.NoGPU})
	r.f.Instant(series.Instant{Time: at, Place: place, Kind: series.Cluster, Line: uint32(e.line), Count: int32(max(1, min(e.count, 1<<30)))}, text)
}
