package platform

import (
	"cmp"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

// An object is an event of either API, or another object; few fields are read.
type object struct {
	Reason        string
	Message, Note string
	Type          string
	First         stamp `json:"firstTimestamp"`
	Last          stamp `json:"lastTimestamp"`
	OldFirst      stamp `json:"deprecatedFirstTimestamp"`
	OldLast       stamp `json:"deprecatedLastTimestamp"`
	At            stamp `json:"eventTime"`
	N             int64 `json:"count"`
	OldN          int64 `json:"deprecatedCount"`
	Series        *struct {
		Count int64
		Last  stamp `json:"lastObservedTime"`
	}
	About     about `json:"involvedObject"`
	OfNew     about `json:"regarding"`
	Source    source
	OldSource source `json:"deprecatedSource"`
	Metadata  struct {
		Name    string
		Created stamp `json:"creationTimestamp"`
	}
	// Fields of a pod.
	Kind   string
	Spec   struct{ NodeName string }
	Status struct {
		Reason, Message   string
		ContainerStatuses []containerStatus
	}
}

type about struct{ Kind, Name string }

type source struct{ Host string }

// A stamp is a time in RFC 3339, or null.
type stamp trace.Time

func (s *stamp) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		return nil // no time
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil && t.Year() > 1970 {
		*s = stamp(t.UnixNano())
	}
	return nil
}

// json reads a list of events, or consecutive events from a watch.
func (r *eventReader) json(content io.Reader) error {
	j := json.NewDecoder(content)
	for {
		one := object{}
		seen := false
		_, _, err := jsonscan.Each(j, func(key string) error {
			if key == "items" {
				_, _, err := jsonscan.Each(j, nil, func() error {
					var o object
					if err := j.Decode(&o); err != nil {
						return err
					}
					r.object(&o)
					return nil
				})
				return err
			}
			var raw json.RawMessage
			if err := j.Decode(&raw); err != nil {
				return err
			}
			if key == "object" { // from a watch: {"type":"ADDED","object":{..}}
				seen = true
				return json.Unmarshal(raw, &one)
			}
			seen = seen || key == "reason" || key == "status"
			return json.Unmarshal(append(append([]byte("{"+strconv.Quote(key)+":"), raw...), '}'), &one)
		}, nil)
		if seen {
			r.object(&one)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// object adds an event.
func (r *eventReader) object(o *object) {
	if len(o.Status.ContainerStatuses) > 0 || o.Kind == "Pod" {
		of := event{name: o.Metadata.Name, host: o.Spec.NodeName}
		r.state(of, "", o.Status.Reason, o.Status.Message, 0, 0)
		for i := range o.Status.ContainerStatuses {
			r.container(of, &o.Status.ContainerStatuses[i])
		}
		return
	}
	first := firstOf(o.First, o.OldFirst, o.At, o.Metadata.Created)
	last := firstOf(o.Last, o.OldLast, o.At)
	e := event{kind: o.About.Kind + o.OfNew.Kind, name: o.About.Name + o.OfNew.Name, reason: o.Reason, message: o.Message + o.Note, warning: o.Type == "Warning",
		count: max(o.N, o.OldN, 1), first: first, last: max(last, first), host: o.Source.Host}
	e.host = cmp.Or(e.host, o.OldSource.Host)
	if s := o.Series; s != nil {
		e.count, e.last = max(e.count, s.Count), max(e.last, trace.Time(s.Last))
	}
	r.add(&e)
}

// firstOf returns the first time that is set; 0 if none is.
func firstOf(of ...stamp) trace.Time {
	for _, s := range of {
		if s != 0 {
			return trace.Time(s)
		}
	}
	return 0
}
