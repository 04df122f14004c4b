// Package otlplogs splits the logs in OTLP dumps: each program's records become a log in the form that log
// stores export, which the formats of logs read.
package otlplogs

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/trace"
)

// Format is the logs of a dump, which are parts of it: a document for each resource.
//
// # What is odd
//
//   - The source of a line is in the resource, as k8s.pod.name, service.instance.id, container.name, host.name, or service.name, or it is the path of
//     the file that a Collector read. The logs of all programs are in one file.
//   - A Collector has whole lines, with the time at which it read them in observedTimeUnixNano, and in timeUnixNano if it parsed the stamp
//     of the line. An SDK has only the message, and the rest of the line, such as its level and an exception, in fields.
//   - Events of Kubernetes are objects (k8sobjects receiver), or messages with attributes k8s.event.* (k8s_events receiver). Entries of journals are
//     objects with journald's fields.
var Format = &format.Format{
	Name:   "OTLP logs",
	Noun:   "OTLP dump",
	Doc:    "logs in dumps of OpenTelemetry",
	For:    "'sgtrace report'",
	Sniff:  func([]byte) bool { return false }, // only used for parts of dumps
	Index:  index,
	Series: true,
}

// A document is the logs of one resource in a dump.
type document struct {
	ResourceLogs []struct {
		Resource  struct{ Attributes []attribute }
		ScopeLogs []scopeLogs `json:"scopeLogs"`
		Snake     []scopeLogs `json:"scope_logs"`
		Old       []scopeLogs `json:"instrumentationLibraryLogs"`
	} `json:"resourceLogs"`
}

type scopeLogs struct {
	Scope      struct{ Name string }
	LogRecords []record `json:"logRecords"`
	Snake      []record `json:"log_records"`
	Logs       []record `json:"logs"` // before OTLP 0.15
}

// A record is a line, or several that were taken for one.
type record struct {
	Time          json.RawMessage `json:"timeUnixNano"`
	SnakeTime     json.RawMessage `json:"time_unix_nano"`
	Observed      json.RawMessage `json:"observedTimeUnixNano"`
	SnakeObserved json.RawMessage `json:"observed_time_unix_nano"`
	Level         string          `json:"severityText"`
	SnakeLevel    string          `json:"severity_text"`
	Body          value
	Attributes    []attribute
}

func (r *record) at() int64 {
	return cmp.Or(whole(r.Time), whole(r.SnakeTime), whole(r.Observed), whole(r.SnakeObserved))
}

// index splits a dump's logs.
func index(in *format.Input, opt *format.Options) (*format.Source, error) {
	content, err := in.Open()
	if err != nil {
		return nil, err
	}
	all := newPrograms()
	d := json.NewDecoder(content)
	for {
		var doc document
		if err = d.Decode(&doc); err != nil {
			var odd *json.UnmarshalTypeError
			if errors.As(err, &odd) { // the rest of the document is read
				opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
			} else {
				break
			}
		}
		for _, r := range doc.ResourceLogs {
			of := attributes(r.Resource.Attributes)
			for _, list := range [...][]scopeLogs{r.ScopeLogs, r.Snake, r.Old} {
				for k := range list {
					all.scope(of, &list[k])
				}
			}
		}
	}
	if err == io.EOF {
		err = nil
	} else {
		opt.Diags.Add(trace.InputDamaged.Of(in.Name, err))
	}
	parts, err := all.parts(in.Name)
	return &format.Source{Parts: parts, Close: all.spool.Close}, errors.Join(err, content.Close())
}
