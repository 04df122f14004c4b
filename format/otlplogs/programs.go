package otlplogs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/internal/memory"
	"github.com/sgtrace/sgtrace/internal/order"
)

// programs are all that logged, in one file. Their logs are written in large pieces, so that records of one are
// together.
type programs struct {
	spool memory.Spool
	of    map[string]*program
	held  int // bytes not written yet
}

// A program is a program that logged, or Kubernetes.
type program struct {
	pieces []piece
	held   []byte
}

// A piece is the place of a part of a log.
type piece struct{ at, size int64 }

const (
	pieceBytes = 256 << 10 // a log is written when it has this much, so that reading it takes few pieces
	heldBytes  = 64 << 20  // all logs are written when they have this much together
)

func newPrograms() *programs { return &programs{of: map[string]*program{}} }

// events is the name of the log of Kubernetes events, which no program has.
const events = "Kubernetes events"

// scope adds the records of a scope.
func (p *programs) scope(of map[string]string, s *scopeLogs) {
	for _, list := range [...][]record{s.LogRecords, s.Snake, s.Logs} {
		for i := range list {
			r := &list[i]
			with := attributes(r.Attributes)
			if event := eventOf(r, of, with); event != nil {
				p.add(events, event)
				continue
			}
			name := nameOf(of, with)
			p.add(name, lineOf(r, name, s.Scope.Name, with))
		}
	}
}

// add adds a record, as JSON, to the log of a program.
func (p *programs) add(name string, x any) {
	b, err := json.Marshal(x)
	if err != nil {
		return // an invalid number, which no line has
	}
	to := order.Memo(p.of, name, func() *program { return &program{} })
	before := len(to.held)
	to.held = append(append(to.held, b...), '\n')
	p.held += len(to.held) - before
	if len(to.held) >= pieceBytes {
		p.write(to)
	}
	if p.held >= heldBytes {
		for _, name := range slices.Sorted(maps.Keys(p.of)) {
			p.write(p.of[name])
		}
	}
}

func (p *programs) write(of *program) {
	if len(of.held) == 0 {
		return
	}
	of.pieces = append(of.pieces, piece{p.spool.Size(), int64(len(of.held))})
	p.spool.Write(of.held) // End reports an error
	p.held -= len(of.held)
	of.held = of.held[:0]
}

// parts returns the logs, by name.
func (p *programs) parts(name string) (parts []format.Part, err error) {
	for _, key := range slices.Sorted(maps.Keys(p.of)) {
		of := p.of[key]
		p.write(of)
		of.held = nil
		called := name
		if key != "" {
			called = name + " (" + key + ")"
		}
		parts = append(parts, format.Part{Name: called, Open: func() (io.ReadCloser, error) { return p.open(of) }})
	}
	return parts, p.spool.End()
}

// open reads a log.
func (p *programs) open(of *program) (io.ReadCloser, error) {
	all, err := p.spool.Open()
	if err != nil {
		return nil, err
	}
	at := all.(io.ReaderAt) // the spool has no error at its end
	list := order.Each(of.pieces, func(x piece) io.Reader { return io.NewSectionReader(at, x.at, x.size) })
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(list...), all}, nil
}

// whose are attributes that identify the source of a log, best first.
var whose = []string{"k8s.pod.name", "service.instance.id", "container.name", "container.id", "host.name", "service.name"}

// inPods is in the path of a container's log: /var/log/pods/<namespace>_<pod>_<uid>/<container>/0.log.
const inPods = "/pods/"

// nameOf returns the source of a record, with the container in a pod: "decode-0/sglang"; "" is unknown.
func nameOf(of, with map[string]string) (name string) {
	for _, key := range whose {
		if name = cmp.Or(of[key], with[key]); name != "" {
			if container := cmp.Or(of["k8s.container.name"], with["k8s.container.name"]); container != "" && key == "k8s.pod.name" {
				name += "/" + container
			}
			break
		}
	}
	file := cmp.Or(with["log.file.path"], of["log.file.path"])
	if _, rest, ok := strings.Cut(file, inPods); ok && of["k8s.pod.name"] == "" && with["k8s.pod.name"] == "" {
		dir, rest, _ := strings.Cut(rest, "/")
		if pod := strings.Split(dir, "_"); len(pod) == 3 {
			container, _, _ := strings.Cut(rest, "/")
			return pod[1] + "/" + container
		}
	}
	if base := strings.TrimSuffix(path.Base(cmp.Or(file, with["log.file.name"])), ".log"); base != "." && of["k8s.pod.name"] == "" && with["k8s.pod.name"] == "" {
		name = strings.TrimPrefix(name+"/"+base, "/") // a host may have several programs
	}
	return name
}

// A line is a record in the form that log stores export.
type line struct {
	At  string `json:"@timestamp"`
	Pod string `json:"pod,omitempty"`
	Log string `json:"log"`
}

// lineOf converts a record of a log. A journal record has journald's fields; an SDK's becomes a line with its
// level.
func lineOf(r *record, name, scope string, with map[string]string) any {
	at, said := r.at(), r.Body.text()
	level := cmp.Or(r.Level, r.SnakeLevel)
	if d := r.Body.Dict; d != nil {
		members := attributes(d.Values)
		if _, ok := members["__REALTIME_TIMESTAMP"]; ok {
			return dict(d.Values)
		}
		said, level = cmp.Or(first(members, logline.MessageKeys), said), cmp.Or(level, first(members, logline.LevelKeys))
	}
	if stack := with["exception.stacktrace"]; stack != "" {
		said += "\n" + stack
	}
	ofSDK := scope != "" && !strings.Contains(scope, "/receiver/") || r.Body.Dict != nil || with["code.filepath"] != "" || with["code.file.path"] != ""
	if ofSDK && level != "" && logline.LevelOf([]byte(said)) == nil {
		said = strings.ToUpper(level) + " " + cmp.Or(strings.ReplaceAll(scope, " ", "_"), "log") + ": " + said
	}
	pod, _, _ := strings.Cut(name, "/")
	return line{At: time.Unix(0, at).UTC().Format(time.RFC3339Nano), Pod: pod, Log: said}
}

func first(members map[string]string, keys []string) string {
	for _, key := range keys {
		if members[key] != "" {
			return members[key]
		}
	}
	return ""
}

// eventOf returns the Kubernetes event in a record; nil if there is none.
func eventOf(r *record, of, with map[string]string) any {
	if d := r.Body.Dict; d != nil {
		object := dict(d.Values)
		if inner, ok := object["object"].(map[string]any); ok { // from a watch
			object = inner
		}
		if object["kind"] == "Event" || object["involvedObject"] != nil || object["regarding"] != nil {
			return object
		}
		return nil
	}
	reason := with["k8s.event.reason"]
	if reason == "" {
		return nil
	}
	at := time.Unix(0, r.at()).UTC().Format(time.RFC3339)
	kind := "Normal"
	if slices.Contains([]string{"WARN", "WARNING", "ERROR"}, strings.ToUpper(cmp.Or(r.Level, r.SnakeLevel))) {
		kind = "Warning"
	}
	event := map[string]any{"apiVersion": "v1", "kind": "Event", "reason": reason, "message": r.Body.text(), "type": kind, "lastTimestamp": at, "firstTimestamp": cmp.Or(with["k8s.event.start_time"], at),
		"involvedObject": map[string]string{"kind": of["k8s.object.kind"], "name": of["k8s.object.name"]}, "source": map[string]string{"host": of["k8s.node.name"]}}
	if n := bytes.TrimSpace([]byte(with["k8s.event.count"])); len(n) > 0 {
		event["count"] = json.Number(n)
	}
	return event
}
