package otlpjson

import (
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

// text reads the string at b[i]; the result is valid until the next call. null
// is the empty string.
func (r *recorder) text(b []byte, i int) (text []byte, next int, err error) {
	if i < len(b) && b[i] == 'n' {
		_, next, err = jsonscan.Literal(b, i)
		return nil, next, err
	}
	raw, escaped, next, err := jsonscan.String(b, i)
	if escaped && err == nil {
		r.text0 = jsonscan.Unescape(r.text0[:0], raw)
		raw = r.text0
	}
	return raw, next, err
}

// scalar reads a number or word, bare or quoted: OTLP prints 64-bit integers as
// strings, other producers as numbers.
func scalar(b []byte, i int) (text []byte, next int, err error) {
	if i < len(b) && b[i] == '"' {
		text, _, next, err = jsonscan.String(b, i)
		return text, next, err
	}
	return jsonscan.Literal(b, i)
}

func integer(b []byte, i int) (v int64, next int, err error) {
	text, next, err := scalar(b, i)
	if err != nil {
		return 0, next, err
	}
	v, ok := jsonscan.Int(text)
	if !ok {
		return 0, next, errNumber
	}
	return v, next, nil
}

func timestamp(b []byte, i int) (trace.Time, int, error) {
	v, next, err := integer(b, i)
	return trace.Time(v), next, err
}

// Enum names by number, from opentelemetry/proto/trace/v1/trace.proto.
var (
	spanKinds = []string{"SPAN_KIND_UNSPECIFIED", "SPAN_KIND_INTERNAL", "SPAN_KIND_SERVER",
		"SPAN_KIND_CLIENT", "SPAN_KIND_PRODUCER", "SPAN_KIND_CONSUMER"}
	statusCodes = []string{"STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"}
)

// enum reads an enum as number or name; an unknown one is 0.
func enum(b []byte, i int, names []string) (v uint8, next int, err error) {
	text, next, err := scalar(b, i)
	if err != nil {
		return 0, next, err
	}
	if n, ok := jsonscan.Int(text); ok && n >= 0 && int(n) < len(names) {
		return uint8(n), next, nil
	}
	for n, name := range names {
		if string(text) == name {
			return uint8(n), next, nil
		}
	}
	return 0, next, nil
}

// id reads a trace id (16 bytes) or span id (8 bytes, in lo) in hex of any case
// or in base64, which is what generic protobuf-to-JSON converters write. The
// empty string is 0.
func (r *recorder) id(b []byte, i int) (hi, lo uint64, next int, err error) {
	raw, next, err := r.text(b, i)
	if err != nil {
		return 0, 0, next, err
	}
	switch len(raw) {
	case 0:
		return 0, 0, next, nil
	case 32:
		hi, ok1 := jsonscan.Hex(raw[:16])
		lo, ok2 := jsonscan.Hex(raw[16:])
		if ok1 && ok2 {
			return hi, lo, next, nil
		}
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
	return 0, 0, next, errID
}

func trimPadding(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == '=' {
		b = b[:len(b)-1]
	}
	return b
}

// attributes reads the list of KeyValue at b[i] and appends it to list.
func (r *recorder) attributes(b []byte, i int, list *trace.ArgList) (next int, err error) {
	return elements(b, i, func(at int) (int, error) { return r.keyValue(b, at, list, 0) })
}

func (r *recorder) keyValue(b []byte, i int, list *trace.ArgList, depth int) (next int, err error) {
	var key trace.Sym
	value := -1
	next, err = fields(b, i, func(name []byte, at int) (next int, err error) {
		switch string(name) {
		case "key":
			var text []byte
			if text, next, err = r.text(b, at); err == nil {
				key = r.cache.Intern(text)
			}
		case "value":
			value = at
			if key != 0 { // the usual order: read it in passing
				value = -1
				return r.anyValue(b, at, key, list, depth)
			}
			next, err = jsonscan.Value(b, at)
		default:
			next, err = jsonscan.Value(b, at)
		}
		return next, err
	})
	if err == nil && value >= 0 {
		_, err = r.anyValue(b, value, key, list, depth)
	}
	return next, err
}

// maxValueDepth bounds the nesting of attribute values that are kept.
const maxValueDepth = 32

// anyValue reads the AnyValue at b[i] and appends it to list under key. An
// empty value is left out, as a missing one.
func (r *recorder) anyValue(b []byte, i int, key trace.Sym, list *trace.ArgList, depth int) (next int, err error) {
	if depth > maxValueDepth {
		return i, jsonscan.ErrSyntax
	}
	return fields(b, i, func(kind []byte, at int) (next int, err error) {
		var text []byte
		switch string(kind) {
		case "stringValue", "string_value", "bytesValue", "bytes_value":
			if text, next, err = r.text(b, at); err == nil {
				*list = list.Bytes(key, text)
			}
		case "intValue", "int_value":
			var v int64
			if v, next, err = integer(b, at); err == nil {
				*list = list.Int(key, v)
			}
		case "doubleValue", "double_value":
			if text, next, err = scalar(b, at); err == nil {
				v, perr := strconv.ParseFloat(string(text), 64)
				if perr != nil && v == 0 {
					return next, errNumber
				}
				*list = list.Float(key, v)
			}
		case "boolValue", "bool_value":
			if text, next, err = scalar(b, at); err == nil {
				*list = list.Bool(key, string(text) == "true")
			}
		case "arrayValue", "array_value":
			var elems trace.ArgList
			next, err = r.values(b, at, func(at int) (int, error) { return r.anyValue(b, at, 0, &elems, depth+1) })
			if err == nil {
				*list = list.Array(key, elems)
			}
		case "kvlistValue", "kvlist_value":
			var entries trace.ArgList
			next, err = r.values(b, at, func(at int) (int, error) { return r.keyValue(b, at, &entries, depth+1) })
			if err == nil {
				*list = list.Dict(key, entries)
			}
		default:
			next, err = jsonscan.Value(b, at)
		}
		return next, err
	})
}

// values scans {"values":[...]}.
func (r *recorder) values(b []byte, i int, f func(at int) (int, error)) (next int, err error) {
	return fields(b, i, func(key []byte, at int) (int, error) {
		if string(key) == "values" {
			return elements(b, at, f)
		}
		return jsonscan.Value(b, at)
	})
}
