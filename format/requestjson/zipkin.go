package requestjson

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// Zipkin reads spans in Zipkin's JSON, version 2: a list of spans, a list of
// traces that are lists of spans, or several of these one after another.
//
// # What is odd
//
//   - Times are whole microseconds: OTLP's nanoseconds are lost.
//   - All tags are text, even numbers and booleans. Those with a fraction are read as
//     numbers again; a whole number may be an ID, and stays text.
//   - A span has the tags of its process as well as its own. Tags that OpenTelemetry uses
//     for resources (service., telemetry., host., process., ...) are read as the process's.
//   - Exporters turn fields of OTLP into tags: otel.status_code, error,
//     otel.status_description, otel.scope.name (otel.library.name before 2023), and links into
//     otlp.link.0 and so on. We turn them back.
//   - Events are annotations: the name alone, or NAME|{attributes}|dropped.
//   - Zipkin's server writes names of spans and services in lower case.
var Zipkin = &format.Format{
	Name:     "Zipkin",
	Noun:     "Zipkin trace file",
	Doc:      "spans in Zipkin's JSON, version 2",
	For:      "'sgtrace merge' or 'sgtrace report'",
	Sniff:    isZipkin,
	Index:    format.Spans("Zipkin JSON", readZipkin),
	Outline:  format.Prescan(readZipkin),
	Requests: true,
	Text:     true,
}

// isZipkin looks for keys that only occur together here.
func isZipkin(head []byte) bool {
	has := func(key string) bool { return bytes.Contains(head, []byte(key)) }
	return has(`"traceId"`) && (has(`"localEndpoint"`) || has(`"timestamp"`) && has(`"duration"`) && has(`"id"`))
}

// A zipkinSpan is a span in Zipkin's format. Times are in microseconds.
type zipkinSpan struct {
	traceID, id, parentID, name, kind string
	timestamp, duration               int64
	localEndpoint                     struct{ ServiceName string }
	annotations                       []struct {
		Timestamp int64
		Value     string
	}
	tags map[string]string
}

// A zipkinReader reads one file.
type zipkinReader struct {
	Filler *spantable.Filler
	d      *json.Decoder
}

// readZipkin adds the spans of a file. It reports damage; everything before it is used.
func readZipkin(to *spantable.Filler, in io.Reader) {
	r := &zipkinReader{Filler: to, d: json.NewDecoder(in)}
	r.Filler.Documents(r.d, r.value)
}

// value reads a span, or a list of spans or lists.
func (r *zipkinReader) value() error {
	var s zipkinSpan
	var wrong error
	left := false // traces come first
	bracket, at, err := jsonscan.Each(r.d, func(key string) error {
		raw, _, err := jsonscan.Next(r.d)
		if left {
			return err
		}
		if field := s.field(key); err == nil && field != nil && wrong == nil {
			wrong = json.Unmarshal(raw, field)
		}
		if key == "traceId" && wrong == nil {
			hi, lo := spantable.ParseID(s.traceID)
			left = hi|lo != 0 && r.Filler.Leaves(hi, lo)
		}
		return err
	}, r.value)
	switch {
	case err != nil || bracket != '{' || left:
	case wrong != nil:
		r.Filler.Tell(trace.OTLPInvalidSpan, at, wrong)
	default:
		r.add(&s, at)
	}
	return err
}

// field returns the destination for the value of a key, nil to ignore it.
func (s *zipkinSpan) field(key string) any {
	switch key {
	case "traceId":
		return &s.traceID
	case "id":
		return &s.id
	case "parentId":
		return &s.parentID
	case "name":
		return &s.name
	case "kind":
		return &s.kind
	case "timestamp":
		return &s.timestamp
	case "duration":
		return &s.duration
	case "localEndpoint":
		return &s.localEndpoint
	case "annotations":
		return &s.annotations
	case "tags":
		return &s.tags
	}
	return nil
}

// add adds a span. A span without a kind is internal.
func (r *zipkinReader) add(s *zipkinSpan, at int64) {
	var to spantable.Record
	to.TraceHi, to.TraceLo = spantable.ParseID(s.traceID)
	to.ID, to.Parent = spantable.ParseSpanID(s.id), spantable.ParseSpanID(s.parentID)
	to.Start = spantable.Micros(s.timestamp)
	to.End = to.Start + spantable.Micros(s.duration)
	to.Name, to.Kind = r.Filler.Table.Syms.Intern(s.name), max(1, spantable.KindOf(s.kind))
	for _, key := range slices.Sorted(maps.Keys(s.tags)) {
		switch value := s.tags[key]; {
		case zipkinField(&to, key, value):
		case ofProcess(key):
			to.Resource = r.Filler.Attribute(to.Resource, key, value, at)
		default:
			to.Attrs = r.Filler.Attribute(to.Attrs, key, unquoted(value), at)
		}
	}
	if name := s.localEndpoint.ServiceName; name != "" && s.tags["service.name"] == "" {
		to.Resource = r.Filler.Attribute(to.Resource, "service.name", name, at)
	}
	for _, a := range s.annotations {
		if r.Filler.Prescans() {
			break
		}
		to.Events = append(to.Events, r.event(spantable.Micros(a.Timestamp), a.Value, at))
	}
	r.Filler.Add(&to, at)
}

// ofProcess reports whether OpenTelemetry uses a tag for resources.
func ofProcess(key string) bool {
	return slices.ContainsFunc([]string{"service.", "telemetry.", "host.", "process.", "k8s.", "container.", "os.", "vllm."},
		func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// unquoted returns the number that a tag certainly was: one with a fraction, as written from a float. A whole number may be
// an ID.
func unquoted(value string) any {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !strings.ContainsAny(value, ".e") || strconv.FormatFloat(f, 'g', -1, 64) != value {
		return value
	}
	return f
}

// zipkinField sets the field for a tag for which OTLP has one, and reports whether it has.
func zipkinField(to *spantable.Record, key, value string) bool {
	switch key {
	case "otel.status_code":
		to.Status = spantable.StatusOf(value)
	case "error": // an error message, or true
		to.Status = spantable.StatusError
		if value != "true" && value != "" && to.Message == "" {
			to.Message = value
		}
	case "otel.status_description":
		to.Message = value
	case "otel.scope.name", "otel.library.name":
		to.Scope = value
	default:
		if !strings.HasPrefix(key, "otlp.link.") {
			return false
		}
		parts := strings.SplitN(value, "|", 3)
		if len(parts) < 2 {
			return false
		}
		hi, lo := spantable.ParseID(parts[0])
		to.Links = append(to.Links, spantable.Link{TraceHi: hi, TraceLo: lo, ID: spantable.ParseSpanID(parts[1])})
	}
	return true
}

// event reads an annotation, which may contain attributes.
func (r *zipkinReader) event(at trace.Time, value string, offset int64) spantable.Event {
	name, rest, _ := strings.Cut(value, "|")
	e := spantable.Event{Time: at}
	var attributes map[string]any
	if end := strings.LastIndexByte(rest, '|'); end > 0 {
		d := json.NewDecoder(strings.NewReader(rest[:end]))
		d.UseNumber()
		if d.Decode(&attributes) != nil {
			name, attributes = value, nil
		}
	} else {
		name = value
	}
	e.Name = r.Filler.Table.Syms.Intern(name)
	var list trace.ArgList
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		list = r.Filler.Attribute(list, key, plain(attributes[key]), offset)
	}
	e.Args = r.Filler.Table.Args.Put(list)
	return e
}

// plain converts a value for attributes: whole numbers become integers, and values of other types text.
func plain(v any) any {
	switch v := v.(type) {
	case string, bool:
		return v
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if n, err := v.Float64(); err == nil {
			return n
		}
		return v.String()
	}
	text, _ := json.Marshal(v)
	return string(text)
}
