package otlpjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The reference reader decodes whole documents with encoding/json, strictly and slowly. It shares
// no code with the package, and refuses what the package would report, so that both must agree on
// any input it accepts.

// An object is a JSON object as encoding/json sees it. Unlike a map, it keeps the order and
// repetition of keys. Other values are []any, string, json.Number, bool, or nil.
type object []member

type member struct {
	key   string
	value any
}

// last returns the last value of a key.
func (o object) last(key string) any {
	for _, m := range slices.Backward(o) {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// parseTrees parses all JSON values in an input.
func parseTrees(data []byte) (values []any, err error) {
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	dec.UseNumber()
	for {
		v, err := parseTree(dec, 0)
		if err == io.EOF {
			return values, nil
		}
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
}

func parseTree(dec *json.Decoder, depth int) (any, error) {
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > 500 {
		return nil, errors.New("too deep")
	}
	switch t {
	case json.Delim('{'):
		o := object{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, inside(err)
			}
			value, err := parseTree(dec, depth+1)
			if err != nil {
				return nil, inside(err)
			}
			o = append(o, member{key.(string), value})
		}
		_, err := dec.Token()
		return o, inside(err)
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			value, err := parseTree(dec, depth+1)
			if err != nil {
				return nil, inside(err)
			}
			list = append(list, value)
		}
		_, err := dec.Token()
		return list, inside(err)
	}
	return t, nil
}

// inside turns the end of the input inside a value into io.ErrUnexpectedEOF.
func inside(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A referenceReader collects spans. The first violation of OTLP ends it.
type referenceReader struct {
	spans            []*plainSpan
	documents, other int
}

// refusal is the value with which the reference reader panics.
type refusal string

func refuse(format string, args ...any) { panic(refusal(fmt.Sprintf(format, args...))) }

// reference reads an input, or returns an error that says why it is not OTLP.
func reference(data []byte) (r *referenceReader, err error) {
	r = &referenceReader{}
	defer func() {
		if why, ok := recover().(refusal); ok {
			err = errors.New(string(why))
		}
	}()
	values, err := parseTrees(data)
	for _, v := range values {
		r.top(v)
	}
	return r, err
}

func (r *referenceReader) inOrder() (out []string) {
	out = []string{}
	for _, s := range r.spans {
		out = append(out, s.String())
	}
	return out
}

var (
	listKeys = map[string]string{
		"resourceSpans": "document", "resource_spans": "document", "batches": "document",
		"scopeSpans": "resource", "scope_spans": "resource", "instrumentationLibrarySpans": "resource",
		"spans": "scope",
	}
	otherKeys = []string{"resourceLogs", "resourceMetrics", "resourceProfiles", "resource_logs", "resource_metrics", "resource_profiles"}
	spanKeys  = []string{"traceId", "spanId", "parentSpanId", "startTimeUnixNano", "endTimeUnixNano",
		"trace_id", "span_id", "parent_span_id", "start_time_unix_nano", "end_time_unix_nano"}
)

// foreign refuses misplaced keys, at any depth of a value.
func foreign(m member) {
	if listKeys[m.key] != "" || slices.Contains(otherKeys, m.key) || slices.Contains(spanKeys, m.key) ||
		slices.Contains([]string{"resource", "scope", "instrumentationLibrary"}, m.key) {
		refuse("%q is misplaced", m.key)
	}
	within(m.value, foreign)
}

// foreignSignal is foreign for logs, metrics, and profiles, which have their own ids and resources.
func foreignSignal(m member) {
	if listKeys[m.key] == "document" || slices.Contains(otherKeys, m.key) {
		refuse("%q is misplaced", m.key)
	}
	within(m.value, foreignSignal)
}

func within(v any, check func(member)) {
	switch v := v.(type) {
	case object:
		for _, m := range v {
			check(m)
		}
	case []any:
		for _, e := range v {
			within(e, check)
		}
	}
}

func (r *referenceReader) top(v any) {
	if list, ok := v.([]any); ok {
		for _, e := range list {
			r.top(e)
		}
		return
	}
	isOther := false
	for _, m := range message(v, false) {
		switch {
		case listKeys[m.key] == "document":
			for _, e := range elements(m.value) {
				r.resourceSpans(message(e, false))
			}
		case slices.Contains(otherKeys, m.key):
			isOther = true
			within(m.value, foreignSignal)
		default:
			foreign(m)
		}
	}
	if isOther {
		r.other++
	} else {
		r.documents++
	}
}

func (r *referenceReader) resourceSpans(o object) {
	first, resource := len(r.spans), "{}"
	for _, m := range o {
		switch {
		case listKeys[m.key] == "resource":
			for _, e := range elements(m.value) {
				r.scopeSpans(message(e, false))
			}
		case m.key == "resource":
			var attrs []string
			for _, m := range message(m.value, true) {
				if m.key == "attributes" {
					attrs = append(attrs, keyValues(m.value, 0)...)
				} else {
					foreign(m)
				}
			}
			resource = plainDict(attrs)
		default:
			foreign(m)
		}
	}
	for _, s := range r.spans[first:] {
		s.resource = resource
	}
}

func (r *referenceReader) scopeSpans(o object) {
	first, scope := len(r.spans), ""
	for _, m := range o {
		switch m.key {
		case "spans":
			for _, e := range elements(m.value) {
				r.spans = append(r.spans, referenceSpan(message(e, false)))
			}
		case "scope", "instrumentationLibrary":
			for _, m := range message(m.value, true) {
				if m.key == "name" {
					scope = text(m.value)
				} else {
					foreign(m)
				}
			}
		default:
			foreign(m)
		}
	}
	for _, s := range r.spans[first:] {
		s.scope = scope
	}
}

func referenceSpan(o object) *plainSpan {
	var (
		s          plainSpan
		attrs      []string
		dropped    [3]int64
		state      string
		statusText string
		linked     []string // attributes of links
		once       = map[string]bool{}
	)
	s.parent = plainSpanID(0)
	for _, m := range o {
		key := camel(m.key)
		switch key {
		case "traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano", "endTimeUnixNano":
			if once[key] {
				refuse("%q is there twice", key)
			}
			once[key] = true
		}
		switch key {
		case "traceId":
			s.trace = id(m.value, 32)
		case "spanId":
			s.id = id(m.value, 16)
		case "parentSpanId":
			s.parent = id(m.value, 16)
		case "name":
			s.name = text(m.value)
		case "startTimeUnixNano":
			s.start = integer(m.value)
		case "endTimeUnixNano":
			s.end = integer(m.value)
		case "kind":
			s.kind = enum(m.value, "SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER",
				"SPAN_KIND_CLIENT", "SPAN_KIND_PRODUCER", "SPAN_KIND_CONSUMER")
		case "attributes":
			attrs = append(attrs, keyValues(m.value, 0)...)
		case "droppedAttributesCount":
			dropped[0] = integer(m.value)
		case "droppedEventsCount":
			dropped[1] = integer(m.value)
		case "droppedLinksCount":
			dropped[2] = integer(m.value)
		case "traceState":
			state = text(m.value)
		case "events":
			s.events = append(s.events, referenceEvents(m.value)...)
		case "links":
			links, told := referenceLinks(m.value)
			s.links, linked = append(s.links, links...), append(linked, told...)
		case "status":
			for _, m := range message(m.value, true) {
				switch m.key {
				case "code":
					s.status = enum(m.value, "STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR")
				case "message":
					statusText = text(m.value)
				default:
					foreign(m)
				}
			}
		default:
			foreign(m)
		}
	}
	if strings.Trim(s.trace, "0") == "" || strings.Trim(s.id, "0") == "" || s.start <= 0 || s.end <= 0 {
		refuse("a span without identity or time")
	}
	if words := []string{"", "", "server", "client", "producer", "consumer"}; words[s.kind] != "" {
		attrs = append(attrs, `"span.kind"=`+quote(words[s.kind]))
	}
	if state != "" {
		attrs = append(attrs, `"w3c.tracestate"=`+quote(state))
	}
	for i, of := range []string{"attributes", "events", "links"} {
		if dropped[i] != 0 {
			attrs = append(attrs, fmt.Sprintf(`"dropped_%s_count"=%d`, of, dropped[i]))
		}
	}
	if len(linked) > 0 {
		attrs = append(attrs, `"link_attributes"=`+plainList(linked))
	}
	if statusText != "" {
		attrs = append(attrs, `"status.message"=`+quote(statusText))
	}
	s.attrs = plainDict(attrs)
	return &s
}

// camel returns the lowerCamelCase spelling of a protobuf field name.
func camel(key string) string {
	for _, snake := range []string{"trace_id", "span_id", "parent_span_id", "start_time_unix_nano", "end_time_unix_nano",
		"time_unix_nano", "dropped_attributes_count", "dropped_events_count", "dropped_links_count", "trace_state", "string_value", "int_value", "double_value", "bool_value",
		"bytes_value", "array_value", "kvlist_value"} {
		if key != snake {
			continue
		}
		words := strings.Split(key, "_")
		for i, w := range words[1:] {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
		return strings.Join(words, "")
	}
	return key
}

func referenceEvents(v any) (out []string) {
	for _, e := range elements(v) {
		if e == nil {
			continue
		}
		var name string
		var time int64
		var attrs []string
		for _, m := range message(e, false) {
			switch camel(m.key) {
			case "timeUnixNano":
				time = integer(m.value)
			case "name":
				name = text(m.value)
			case "attributes":
				attrs = append(attrs, keyValues(m.value, 0)...)
			default:
				foreign(m)
			}
		}
		if time <= 0 {
			refuse("an event without a time")
		}
		out = append(out, plainEvent(name, time, plainDict(attrs)))
	}
	return out
}

// referenceLinks returns the links, and the attributes of those that have any.
func referenceLinks(v any) (out, told []string) {
	for _, e := range elements(v) {
		if e == nil {
			continue
		}
		trace, span := plainID(0, 0), plainSpanID(0)
		var attrs []string
		for _, m := range message(e, false) {
			switch camel(m.key) {
			case "traceId":
				trace = id(m.value, 32)
			case "spanId":
				span = id(m.value, 16)
			case "attributes":
				attrs = append(attrs, keyValues(m.value, 0)...)
			default:
				foreign(m)
			}
		}
		out = append(out, plainLink(trace, span))
		if len(attrs) > 0 {
			told = append(told, plainDict(append([]string{`"span_id"=` + quote(span)}, attrs...)))
		}
	}
	return out, told
}
