package requestjson

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// Jaeger reads traces from Jaeger's query API and its UI ("Download JSON"):
// {"data":[{"traceID":..,"spans":[..],"processes":{..}}]}, or the traces alone.
//
// # What is odd
//
//   - Times are whole microseconds: OTLP's nanoseconds are lost.
//   - Jaeger turns fields of OTLP into tags: span.kind, otel.status_code,
//     otel.status_description, otel.scope.name (otel.library.name before 2023) and
//     w3c.tracestate. The name of an event is a field "event" of a log. We turn them back.
//   - The parent is a reference CHILD_OF in the same trace; all other references are links.
//   - IDs may lack their leading zeros.
//   - Processes come after the spans of their trace, which is held until then.
var Jaeger = &format.Format{
	Name:     "Jaeger",
	Noun:     "Jaeger trace file",
	Doc:      "traces that Jaeger's UI or query API wrote as JSON",
	For:      "'sgtrace merge' or 'sgtrace report'",
	Sniff:    isJaeger,
	Index:    format.Spans("Jaeger JSON", readJaeger),
	Outline:  format.Prescan(readJaeger),
	Requests: true,
	Text:     true,
}

// isJaeger looks for two keys that only occur together here.
func isJaeger(head []byte) bool {
	return bytes.Contains(head, []byte(`"traceID"`)) && bytes.Contains(head, []byte(`"operationName"`))
}

// A jaegerSpan is a span in the model of Jaeger's UI. Times are in microseconds.
type jaegerSpan struct {
	TraceID, SpanID, OperationName, ProcessID string
	ParentSpanID                              string // before references existed
	References                                []struct{ RefType, TraceID, SpanID string }
	StartTime, Duration                       int64
	Tags                                      []jaegerTag
	Logs                                      []struct {
		Timestamp int64
		Fields    []jaegerTag
	}
}

// A jaegerTag is an attribute. Its type is string, bool, int64, float64 or binary.
type jaegerTag struct {
	Key, Type string
	Value     json.RawMessage
}

type jaegerProcess struct {
	ServiceName string
	Tags        []jaegerTag
}

// A jaegerReader reads one file.
type jaegerReader struct {
	Filler *spantable.Filler
	d      *json.Decoder
	// The spans of the current trace, with their positions, and its processes.
	spans     []jaegerSpan
	offsets   []int64
	processes map[string]jaegerProcess
}

// readJaeger adds the spans of a file. It reports damage; everything before it is used.
func readJaeger(to *spantable.Filler, in io.Reader) {
	r := &jaegerReader{Filler: to, d: json.NewDecoder(in)}
	r.Filler.Documents(r.d, r.value)
}

// value reads a trace, a list of traces, or the API response around one.
func (r *jaegerReader) value() error {
	_, _, err := jsonscan.Each(r.d, r.member, r.value)
	r.flush()
	return err
}

func (r *jaegerReader) member(key string) error {
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

func (r *jaegerReader) readProcesses() error {
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
func (r *jaegerReader) span() error {
	raw, at, err := jsonscan.Next(r.d)
	if err != nil {
		return err
	}
	if hi, lo, ok := traceOf(raw); ok && r.Filler.Leaves(hi, lo) {
		return nil
	}
	var s jaegerSpan
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

// flush adds the spans of the current trace.
func (r *jaegerReader) flush() {
	resources := map[string]trace.ArgList{}
	for id, p := range r.processes {
		resources[id] = r.Filler.Attribute(r.attributes(p.Tags, 0), "service.name", p.ServiceName, 0)
	}
	for i := range r.spans {
		r.add(&r.spans[i], resources[r.spans[i].ProcessID], r.offsets[i])
	}
	r.spans, r.offsets, r.processes = r.spans[:0], r.offsets[:0], nil
}

// add adds a span.
func (r *jaegerReader) add(s *jaegerSpan, resource trace.ArgList, at int64) {
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
	rest := order.Only(s.Tags, func(t jaegerTag) bool { return !jaegerField(&to, t) })
	to.Attrs = r.attributes(rest, at)
	for _, l := range s.Logs {
		if r.Filler.Prescans() {
			break
		}
		to.Events = append(to.Events, r.event(spantable.Micros(l.Timestamp), l.Fields, at))
	}
	r.Filler.Add(&to, at)
}

// jaegerField sets the field for a tag for which OTLP has one, and reports whether it has.
func jaegerField(to *spantable.Record, t jaegerTag) bool {
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
	case "error": // the status has the same information
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

func (r *jaegerReader) event(at trace.Time, fields []jaegerTag, offset int64) spantable.Event {
	e := spantable.Event{Time: at}
	var rest []jaegerTag
	for _, f := range fields {
		if f.Key == "event" {
			e.Name = r.Filler.Table.Syms.Intern(text(f.Value))
		} else {
			rest = append(rest, f)
		}
	}
	e.Args = r.Filler.Table.Args.Put(r.attributes(rest, offset))
	return e
}

// attributes returns tags as attributes. Numbers keep their digits instead of going through a float.
func (r *jaegerReader) attributes(tags []jaegerTag, at int64) (list trace.ArgList) {
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
