package otlpjson

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

// pass moves past the value of an unknown key. A key that only a record has means that a record begins here.
func (r *recorder) pass(key, b []byte, i int) (next int, err error) {
	if err := r.foreign(key); err != nil {
		return i, err
	}
	return skip(b, i, anyRecord)
}

// foreign checks a key that the caller does not read. It returns errBegins for a key that only records have: a record
// seems to begin here. It notes a key that OTLP does not have.
func (r *recorder) foreign(key []byte) error {
	switch string(key) {
	case "flags", "traceState", "trace_state", "schemaUrl", "schema_url", "version", "attributes",
		"entityRefs", "entity_refs", "droppedAttributesCount", "dropped_attributes_count",
		"droppedEventsCount", "dropped_events_count", "droppedLinksCount", "dropped_links_count":
		return nil
	case "traceId", "trace_id", "spanId", "span_id", "parentSpanId", "parent_span_id",
		"startTimeUnixNano", "start_time_unix_nano", "endTimeUnixNano", "end_time_unix_nano":
		return errBegins
	}
	if _, ok := recordKeys[string(key)]; ok {
		return errBegins
	}
	r.noteUnknown(string(key))
	return nil
}

// text reads the string at b[i]; the result is valid until the next call. null yields nil, and the empty string
// does not.
func (r *recorder) text(b []byte, i int) (text []byte, next int, err error) {
	if i < len(b) && b[i] != '"' {
		next, err = r.mistyped(b, i)
		return nil, next, err
	}
	if end := jsonscan.EndOfRun(b, i+1); end < len(b) && b[end] == '"' {
		return b[i+1 : end], end + 1, nil
	}
	raw, escaped, next, err := jsonscan.String(b, i)
	if escaped && err == nil {
		r.text0 = jsonscan.Unescape(r.text0[:0], raw)
		raw = r.text0
	}
	return raw, next, err
}

// mistyped moves past a value that does not match the type of its field. Unless it is null, the record is lost.
func (r *recorder) mistyped(b []byte, i int) (next int, err error) {
	next, err = skip(b, i, anyRecord)
	if err == nil && string(b[i:next]) != "null" {
		r.fail(errType)
	}
	return next, err
}

func (r *recorder) symbol(b []byte, i int) (sym trace.Sym, next int, err error) {
	text, next, err := r.text(b, i)
	if err != nil {
		return 0, next, err
	}
	return r.cache.Intern(text), next, nil
}

// scalar reads a number or word, bare or quoted: OTLP prints 64-bit integers as strings, other producers as
// numbers. null yields nil.
func (r *recorder) scalar(b []byte, i int) (text []byte, next int, err error) {
	if i < len(b) && (b[i] == '"' || b[i] == '{' || b[i] == '[') {
		return r.text(b, i)
	}
	text, next, err = jsonscan.Literal(b, i)
	if string(text) == "null" {
		text = nil
	}
	return text, next, err
}

// integer reads an integer; null yields 0.
func (r *recorder) integer(b []byte, i int) (v int64, next int, err error) {
	text, next, err := r.scalar(b, i)
	if err != nil || text == nil {
		return 0, next, err
	}
	v, ok := jsonscan.Int(text)
	if !ok {
		r.fail(errNumber)
	}
	return v, next, nil
}

func (r *recorder) timestamp(b []byte, i int) (trace.Time, int, error) {
	v, next, err := r.integer(b, i)
	return trace.Time(v), next, err
}

// Enum names by number, from opentelemetry/proto/trace/v1/trace.proto.
var (
	spanKinds = []string{"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER",
		"SPAN_KIND_CLIENT", "SPAN_KIND_PRODUCER", "SPAN_KIND_CONSUMER"}
	statusCodes = []string{"STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"}
)

// enum reads an enum by number or name; an unknown one yields 0.
func (r *recorder) enum(b []byte, i int, names []string) (v uint8, next int, err error) {
	text, next, err := r.scalar(b, i)
	if err != nil {
		return 0, next, err
	}
	if n, ok := jsonscan.Int(text); ok && n >= 0 && n < int64(len(names)) {
		return uint8(n), next, nil
	}
	for n, name := range names {
		if string(text) == name {
			return uint8(n), next, nil
		}
	}
	return 0, next, nil
}

// spanID reads an id of 8 bytes.
func (r *recorder) spanID(b []byte, i int) (id uint64, next int, err error) {
	if raw := quoted(b, i, spanDigits); raw != nil {
		if id, ok := jsonscan.Hex(raw); ok {
			return id, i + spanDigits + 2, nil
		}
	}
	hi, lo, next, err := r.id(b, i)
	if hi != 0 {
		r.fail(errID)
	}
	return lo, next, err
}

// id reads a trace id (16 bytes) or span id (8 bytes, in lo) in hex of any case
// or in base64, which is what generic protobuf-to-JSON converters write. The
// empty string is 0.
func (r *recorder) id(b []byte, i int) (hi, lo uint64, next int, err error) {
	if raw := quoted(b, i, traceDigits); raw != nil {
		if id, ok := traceID(raw); ok {
			return id[0], id[1], i + traceDigits + 2, nil
		}
	}
	raw, next, err := r.text(b, i)
	if err != nil {
		return 0, 0, next, err
	}
	switch len(raw) {
	case 0:
		return 0, 0, next, nil
	case 16:
		if lo, ok := jsonscan.Hex(raw); ok {
			return 0, lo, next, nil
		}
	case 22, 24, 11, 12:
		var id [18]byte
		n, err := base64.RawStdEncoding.Decode(id[:], trimPadding(raw))
		if err == nil && n == 8 {
			return 0, binary.BigEndian.Uint64(id[:]), next, nil
		}
		if err == nil && n == 16 {
			return binary.BigEndian.Uint64(id[:]), binary.BigEndian.Uint64(id[8:]), next, nil
		}
	}
	r.fail(errID)
	return 0, 0, next, nil
}

// quoted returns the content of the string at b[i] if it has n bytes, without checking them; nil otherwise.
func quoted(b []byte, i, n int) []byte {
	if end := i + n + 1; end < len(b) && b[i] == '"' && b[end] == '"' {
		return b[i+1 : end]
	}
	return nil
}

func trimPadding(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == '=' {
		b = b[:len(b)-1]
	}
	return b
}

// maxValueDepth bounds the nesting of attribute values; deeper ones are lost.
const maxValueDepth = 32

// attributes reads the list of KeyValue at b[i] and appends it to list.
func (r *recorder) attributes(b []byte, i int, list *trace.ArgList) (next int, err error) {
	return r.keyValues(b, i, list, 0)
}

func (r *recorder) keyValues(b []byte, i int, list *trace.ArgList, depth int) (next int, err error) {
	return inList(b, i, func(i int) (int, error) {
		if depth == 0 {
			return r.attribute(b, i, list)
		}
		return r.keyValue(b, i, list, depth)
	})
}

// keyValue reads the KeyValue at b[i] and appends it to list. Usually the key comes first, and the value can be
// read in the same pass.
func (r *recorder) keyValue(b []byte, i int, list *trace.ArgList, depth int) (next int, err error) {
	var key trace.Sym
	start, value, done := len(*list), -1, false
	next, _, err = inObject(b, i, func(name []byte, i int) (next int, err error) {
		switch string(name) {
		case "key":
			key, i, err = r.symbol(b, i)
			done = false
		case "value":
			value, done = i, key != 0
			*list = (*list)[:start]
			if done {
				i, err = r.anyValue(b, i, key, list, depth)
			} else {
				i, err = skip(b, i, anyRecord)
			}
		default:
			i, err = r.pass(name, b, i)
		}
		return i, err
	})
	if err == nil && value >= 0 && !done {
		*list = (*list)[:start]
		var end int
		if end, err = r.anyValue(b, value, key, list, depth); err != nil {
			next = end
		}
	}
	if err == nil && depth == 0 {
		*list = r.hidden(*list, start, key)
	}
	return next, err
}

// anyValue reads the AnyValue at b[i] and appends it to list under key. It omits empty values, like missing
// ones.
func (r *recorder) anyValue(b []byte, i int, key trace.Sym, list *trace.ArgList, depth int) (next int, err error) {
	if depth > maxValueDepth {
		r.notes.lost++
		return skip(b, i, anyRecord)
	}
	next, _, err = inObject(b, i, func(kind []byte, i int) (next int, err error) {
		var text []byte
		switch string(kind) {
		case "stringValue", "string_value", "bytesValue", "bytes_value":
			if text, i, err = r.text(b, i); err == nil && text != nil {
				*list = list.Bytes(key, text)
			}
		case "intValue", "int_value":
			if text, i, err = r.scalar(b, i); err == nil && text != nil {
				if v, ok := jsonscan.Int(text); ok {
					*list = list.Int(key, v)
				} else {
					*list = r.odd(*list, key, text)
				}
			}
		case "doubleValue", "double_value":
			if text, i, err = r.scalar(b, i); err == nil && text != nil {
				if v, err := strconv.ParseFloat(string(text), 64); err == nil || v != 0 { // a value out of range becomes infinite
					*list = list.Float(key, v)
				} else {
					*list = r.odd(*list, key, text)
				}
			}
		case "boolValue", "bool_value":
			if text, i, err = r.scalar(b, i); err == nil && text != nil {
				if word := string(text); word == "true" || word == "false" {
					*list = list.Bool(key, word == "true")
				} else {
					*list = r.odd(*list, key, text)
				}
			}
		case "arrayValue", "array_value":
			var elems trace.ArgList
			if i, err = r.values(b, i, &elems, depth+1, false); err == nil {
				*list = list.Array(key, elems)
			}
		case "kvlistValue", "kvlist_value":
			var entries trace.ArgList
			if i, err = r.values(b, i, &entries, depth+1, true); err == nil {
				*list = list.Dict(key, entries)
			}
		default:
			i, err = r.pass(kind, b, i)
		}
		return i, err
	})
	return next, err
}

// odd keeps a value that does not match its declared type as text.
func (r *recorder) odd(list trace.ArgList, key trace.Sym, text []byte) trace.ArgList {
	r.notes.odd++
	return list.Bytes(key, text)
}

// values reads {"values":[...]}, the elements of an array or the entries of a dictionary, and appends them to
// list.
func (r *recorder) values(b []byte, i int, list *trace.ArgList, depth int, dict bool) (next int, err error) {
	next, _, err = inObject(b, i, func(key []byte, i int) (int, error) {
		switch {
		case string(key) != "values":
			return r.pass(key, b, i)
		case dict:
			return r.keyValues(b, i, list, depth)
		}
		return inList(b, i, func(i int) (int, error) { return r.anyValue(b, i, 0, list, depth) })
	})
	return next, err
}
