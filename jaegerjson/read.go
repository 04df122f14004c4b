package jaegerjson

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// A span is one as Jaeger's UI model has it. Times are in microseconds.
type span struct {
	TraceID, SpanID, OperationName, ProcessID string
	ParentSpanID                              string // before references existed
	References                                []struct{ RefType, TraceID, SpanID string }
	StartTime, Duration                       int64
	Tags                                      []tag
	Logs                                      []struct {
		Timestamp int64
		Fields    []tag
	}
}

// A tag is an attribute. Its type is string, bool, int64, float64 or binary.
type tag struct {
	Key, Type string
	Value     json.RawMessage
}

type process struct {
	ServiceName string
	Tags        []tag
}

// A reader reads one file.
type reader struct {
	Filler *spantable.Filler
	d      *json.Decoder
	// The spans of the trace that is being read, with their places, and its processes.
	spans     []span
	offsets   []int64
	processes map[string]process
}

// read adds the spans of a file. What is damaged is reported; everything before is used.
func read(to *spantable.Filler, in io.Reader) {
	r := &reader{Filler: to, d: json.NewDecoder(in)}
	r.Filler.Documents(r.d, r.value)
}

// value reads a trace, a list of them, or the answer of the API around one.
func (r *reader) value() error {
	_, _, err := jsonscan.Each(r.d, r.member, r.value)
	r.flush()
	return err
}

func (r *reader) member(key string) error {
	switch key {
	case "data":
		return r.value()
	case "spans":
		_, _, err := jsonscan.Each(r.d, nil, r.span)
		return err
	case "processes":
		return r.readProcesses()
	}
	_, _, err := jsonscan.Next(r.d)
	return err
}

func (r *reader) readProcesses() error {
	raw, at, err := jsonscan.Next(r.d)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &r.processes); err != nil {
		r.Filler.Tell(trace.OTLPLostValue, at)
	}
	return nil
}

// span keeps a span until the processes of its trace are known.
func (r *reader) span() error {
	raw, at, err := jsonscan.Next(r.d)
	if err != nil {
		return err
	}
	if hi, lo, ok := traceOf(raw); ok && r.Filler.Leaves(hi, lo) {
		return nil
	}
	var s span
	if err := json.Unmarshal(raw, &s); err != nil {
		r.Filler.Tell(trace.OTLPInvalidSpan, at, err)
		return nil
	}
	r.spans, r.offsets = append(r.spans, s), append(r.offsets, at)
	return nil
}

// traceOf returns the trace of a span that begins with it, as Jaeger writes them.
func traceOf(raw []byte) (hi, lo uint64, ok bool) {
	const key = `"traceID"`
	i := jsonscan.Space(raw, 1)
	if !bytes.HasPrefix(raw[i:], []byte(key)) {
		return 0, 0, false
	}
	if i = jsonscan.Space(raw, i+len(key)); raw[i] != ':' {
		return 0, 0, false
	}
	text, escaped, _, err := jsonscan.String(raw, jsonscan.Space(raw, i+1))
	if err != nil || escaped {
		return 0, 0, false
	}
	hi, lo = spantable.ParseID(string(text))
	return hi, lo, hi|lo != 0
}

// flush adds the spans of the trace that was read.
func (r *reader) flush() {
	resources := map[string]trace.ArgList{}
	for id, p := range r.processes {
		resources[id] = r.Filler.Attribute(r.attributes(nil, p.Tags, 0), "service.name", p.ServiceName, 0)
	}
	for i := range r.spans {
		r.add(&r.spans[i], resources[r.spans[i].ProcessID], r.offsets[i])
	}
	r.spans, r.offsets, r.processes = r.spans[:0], r.offsets[:0], nil
}

// add adds a span.
func (r *reader) add(s *span, resource trace.ArgList, at int64) {
	var to spantable.Record
	to.TraceHi, to.TraceLo = spantable.ParseID(s.TraceID)
	to.ID, to.Parent = spantable.ParseSpanID(s.SpanID), spantable.ParseSpanID(s.ParentSpanID)
	to.Start = spantable.Micros(s.StartTime)
	to.End = to.Start + spantable.Micros(s.Duration)
	to.Name, to.Resource = r.Filler.Table.Syms.Intern(s.OperationName), resource
	if r.Filler.Leaves(to.TraceHi, to.TraceLo) {
		return
	}
	for _, ref := range s.References {
		hi, lo := spantable.ParseID(ref.TraceID)
		id := spantable.ParseSpanID(ref.SpanID)
		if ref.RefType == "CHILD_OF" && to.Parent == 0 && hi == to.TraceHi && lo == to.TraceLo {
			to.Parent = id
			continue
		}
		to.Links = append(to.Links, spantable.Link{TraceHi: hi, TraceLo: lo, ID: id})
	}
	var rest []tag
	for _, t := range s.Tags {
		if !told(&to, t) {
			rest = append(rest, t)
		}
	}
	to.Attrs = r.attributes(nil, rest, at)
	for _, l := range s.Logs {
		if r.Filler.Prescans() {
			break
		}
		to.Events = append(to.Events, r.event(spantable.Micros(l.Timestamp), l.Fields, at))
	}
	r.Filler.Add(&to, at)
}

// told reports whether a tag is what OTLP has a field for, which it sets.
func told(to *spantable.Record, t tag) bool {
	word := text(t.Value)
	switch t.Key {
	case "span.kind":
		to.Kind = spantable.KindOf(word)
	case "otel.status_code":
		to.Status = spantable.StatusOf(word)
	case "otel.status_description":
		to.Message = word
	case "otel.scope.name", "otel.library.name":
		to.Scope = word
	case "error": // goes with the status
		if word != "true" {
			return false
		}
		to.Status = spantable.StatusError
	case "internal.span.format":
	default:
		return false
	}
	return true
}

func (r *reader) event(at trace.Time, fields []tag, offset int64) spantable.Event {
	e := spantable.Event{Time: at}
	var rest []tag
	for _, f := range fields {
		if f.Key == "event" {
			e.Name = r.Filler.Table.Syms.Intern(text(f.Value))
		} else {
			rest = append(rest, f)
		}
	}
	e.Args = r.Filler.Table.Args.Put(r.attributes(nil, rest, offset))
	return e
}

// attributes appends tags to a list. Numbers keep their digits, so that none goes through a
// float that is none.
func (r *reader) attributes(list trace.ArgList, tags []tag, at int64) trace.ArgList {
	for _, t := range tags {
		var value any
		word := text(t.Value)
		value = word
		switch t.Type {
		case "bool":
			value = word == "true"
		case "int64":
			if n, err := strconv.ParseInt(word, 10, 64); err == nil {
				value = n
			}
		case "float64":
			if n, err := strconv.ParseFloat(word, 64); err == nil {
				value = n
			}
		}
		list = r.Filler.Attribute(list, t.Key, value, at)
	}
	return list
}

// text returns a value without its quotes.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
