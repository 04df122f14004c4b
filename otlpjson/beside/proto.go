package beside

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// A kind is the encoding of a field, and its form in JSON.
type kind uint8

const (
	text    kind = iota
	raw          // bytes, base64 in JSON
	message      // see field.of
	whole        // a varint
	flag         // a varint that is a boolean
	long         // a 64-bit varint, which is text in JSON
	zigzag
	fixed  // unsigned 64 bits, text in JSON
	signed // signed 64 bits, text in JSON
	double
)

// A field is a field of a message; list means that it is repeated.
type field struct {
	name string
	kind kind
	of   map[protowire.Number]field
	list bool
}

type fields = map[protowire.Number]field

// The messages of OTLP's logs and metrics, from opentelemetry/proto/{common,resource,logs,metrics}/v1, with the
// fields that readers need.
var (
	anyValue   = fields{1: {name: "stringValue"}, 2: {name: "boolValue", kind: flag}, 3: {name: "intValue", kind: long}, 4: {name: "doubleValue", kind: double}, 7: {name: "bytesValue", kind: raw}}
	keyValue   = fields{1: {name: "key"}, 2: {name: "value", kind: message, of: anyValue}}
	attributes = field{name: "attributes", kind: message, of: keyValue, list: true}
	resource   = field{name: "resource", kind: message, of: fields{1: attributes}}
	scope      = field{name: "scope", kind: message, of: fields{1: {name: "name"}, 2: {name: "version"}}}

	logRecord = fields{1: {name: "timeUnixNano", kind: fixed}, 2: {name: "severityNumber", kind: whole}, 3: {name: "severityText"},
		5: {name: "body", kind: message, of: anyValue}, 6: attributes, 11: {name: "observedTimeUnixNano", kind: fixed}}

	start, at, count, sum = field{name: "startTimeUnixNano", kind: fixed}, field{name: "timeUnixNano", kind: fixed}, field{name: "count", kind: fixed}, field{name: "sum", kind: double}
	flags                 = field{name: "flags", kind: whole}
	temporality           = field{name: "aggregationTemporality", kind: whole}
	number                = points(fields{2: start, 3: at, 4: {name: "asDouble", kind: double}, 6: {name: "asInt", kind: signed}, 7: attributes, 8: flags})
	histogram             = points(fields{2: start, 3: at, 4: count, 5: sum, 6: {name: "bucketCounts", kind: fixed, list: true}, 7: {name: "explicitBounds", kind: double, list: true}, 9: attributes, 10: flags})
	exponential           = points(fields{1: attributes, 2: start, 3: at, 4: count, 5: sum, 6: {name: "scale", kind: zigzag}, 7: {name: "zeroCount", kind: fixed},
		8: {name: "positive", kind: message, of: fields{1: {name: "offset", kind: zigzag}, 2: {name: "bucketCounts", kind: long, list: true}}}, 10: flags})
	summary = points(fields{2: start, 3: at, 4: count, 5: sum, 6: {name: "quantileValues", kind: message, of: fields{1: {name: "quantile", kind: double}, 2: {name: "value", kind: double}}, list: true}, 7: attributes, 8: flags})
	metric  = fields{1: {name: "name"}, 3: {name: "unit"}, 5: {name: "gauge", kind: message, of: fields{1: number}},
		7:  {name: "sum", kind: message, of: fields{1: number, 2: temporality, 3: {name: "isMonotonic", kind: flag}}},
		9:  {name: "histogram", kind: message, of: fields{1: histogram, 2: temporality}},
		10: {name: "exponentialHistogram", kind: message, of: fields{1: exponential, 2: temporality}},
		11: {name: "summary", kind: message, of: fields{1: summary}}}

	requests = [Signals]fields{
		Logs:    {1: resourceOf(keys[Logs][0], "scopeLogs", "logRecords", logRecord)},
		Metrics: {1: resourceOf(keys[Metrics][0], "scopeMetrics", "metrics", metric)},
	}
)

func init() { // values may be nested
	anyValue[5] = field{name: "arrayValue", kind: message, of: fields{1: {name: "values", kind: message, of: anyValue, list: true}}}
	anyValue[6] = field{name: "kvlistValue", kind: message, of: fields{1: {name: "values", kind: message, of: keyValue, list: true}}}
}

func points(of fields) field { return field{name: "dataPoints", kind: message, of: of, list: true} }

func resourceOf(name, scopes, records string, record fields) field {
	in := fields{1: scope, 2: {name: records, kind: message, of: record, list: true}}
	return field{name: name, kind: message, list: true, of: fields{1: resource, 2: {name: scopes, kind: message, of: in, list: true}}}
}

// FromProto converts a Collector's message to a JSON document, if it holds logs or metrics. Damaged fields are left out.
func FromProto(msg []byte) (s Signal, document []byte, ok bool) {
	if s, ok = signalOf(msg); !ok {
		return 0, nil, false
	}
	return s, append(appendJSON(nil, msg, requests[s]), '\n'), true
}

// wireTypes are the types of all fields of a log record and of a metric, including those that are not read.
var wireTypes = [Signals]map[protowire.Number]protowire.Type{
	Logs: {1: protowire.Fixed64Type, 2: protowire.VarintType, 3: protowire.BytesType, 5: protowire.BytesType, 6: protowire.BytesType, 7: protowire.VarintType, 8: protowire.Fixed32Type,
		9: protowire.BytesType, 10: protowire.BytesType, 11: protowire.Fixed64Type, 12: protowire.BytesType},
	Metrics: {1: protowire.BytesType, 2: protowire.BytesType, 3: protowire.BytesType, 5: protowire.BytesType, 7: protowire.BytesType, 9: protowire.BytesType, 10: protowire.BytesType, 11: protowire.BytesType,
		12: protowire.BytesType},
}

// signalOf tells from the first record of a message whether it holds logs or metrics, as the messages around
// records all look alike. Every field of the record must have its type, so that a damaged span is not taken for
// a log: in a span, fields 7 and 8 are 64-bit times.
func signalOf(msg []byte) (s Signal, ok bool) {
	record := msg
	for _, number := range [...]protowire.Number{1, 2, 2} { // its resource, scope, record
		if record = inside(record, number); record == nil {
			return 0, false
		}
	}
	for s = range Signals {
		n := map[protowire.Number]int{}
		whole := EachField(record, func(number protowire.Number, typ protowire.Type, value []byte) bool {
			n[number]++
			is, known := wireTypes[s][number]
			return known && is == typ && (s != Metrics || number != 1 || utf8.Valid(value))
		})
		if whole && (s == Logs && n[1]+n[11] > 0 || s == Metrics && n[1] == 1 && n[5]+n[7]+n[9]+n[10]+n[11] == 1) {
			return s, true
		}
	}
	return 0, false
}

// EachField calls f for each field of a message until f returns false. It returns false in that case, and if
// the message is damaged.
func EachField(b []byte, f func(number protowire.Number, typ protowire.Type, value []byte) bool) bool {
	for len(b) > 0 {
		number, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		m := protowire.ConsumeFieldValue(number, typ, b[n:])
		if m < 0 || !f(number, typ, b[n:n+m]) {
			return false
		}
		b = b[n+m:]
	}
	return true
}

// inside returns the first message in a field of a message; nil if there is none.
func inside(b []byte, number protowire.Number) (message []byte) {
	EachField(b, func(is protowire.Number, typ protowire.Type, value []byte) bool {
		if is == number && typ == protowire.BytesType {
			message, _ = protowire.ConsumeBytes(value)
		}
		return message == nil
	})
	return message
}

// appendJSON writes a message as JSON. It gathers each list first, as its elements need not be adjacent.
func appendJSON(to, b []byte, of fields) []byte {
	lists := map[protowire.Number][]byte{}
	to = append(to, '{')
	first := len(to)
	name := func(f *field) {
		if len(to) > first {
			to = append(to, ',')
		}
		to = append(strconv.AppendQuote(to, f.name), ':')
	}
	EachField(b, func(number protowire.Number, typ protowire.Type, value []byte) bool {
		switch f, known := of[number]; {
		case !known:
		case f.list:
			lists[number] = f.elements(lists[number], typ, value)
		default:
			name(&f)
			to = f.value(to, value)
		}
		return true
	})
	for _, number := range slices.Sorted(maps.Keys(lists)) {
		f, list := of[number], lists[number]
		name(&f)
		to = append(append(append(to, '['), list...), ']')
	}
	return append(to, '}')
}

// elements appends the values of a field to its list. Numbers may be packed into one field.
func (f *field) elements(list []byte, typ protowire.Type, value []byte) []byte {
	if f.kind == message || typ != protowire.BytesType {
		if len(list) > 0 {
			list = append(list, ',')
		}
		return f.value(list, value)
	}
	for packed, _ := protowire.ConsumeBytes(value); len(packed) > 0; {
		n := 8
		if f.kind == long {
			if _, n = protowire.ConsumeVarint(packed); n < 0 {
				break
			}
		}
		if n > len(packed) {
			break
		}
		if len(list) > 0 {
			list = append(list, ',')
		}
		list, packed = f.value(list, packed[:n]), packed[n:]
	}
	return list
}

// value writes a value.
func (f *field) value(to, value []byte) []byte {
	switch f.kind {
	case text, raw, message:
		b, n := protowire.ConsumeBytes(value)
		switch {
		case n < 0:
			return append(to, "null"...)
		case f.kind == message:
			return appendJSON(to, b, f.of)
		case f.kind == raw:
			return strconv.AppendQuote(to, base64.StdEncoding.EncodeToString(b))
		}
		quoted, _ := json.Marshal(string(b)) // a string can always be marshaled
		return append(to, quoted...)
	case whole, flag, long, zigzag:
		x, _ := protowire.ConsumeVarint(value)
		switch f.kind {
		case flag:
			return strconv.AppendBool(to, x != 0)
		case zigzag:
			return strconv.AppendInt(to, protowire.DecodeZigZag(x), 10)
		case long:
			return append(strconv.AppendInt(append(to, '"'), int64(x), 10), '"')
		}
		return strconv.AppendUint(to, x, 10)
	}
	x, n := protowire.ConsumeFixed64(value)
	switch v := math.Float64frombits(x); {
	case n < 0:
		return append(to, "null"...)
	case f.kind == fixed:
		return append(strconv.AppendUint(append(to, '"'), x, 10), '"')
	case f.kind == signed:
		return append(strconv.AppendInt(append(to, '"'), int64(x), 10), '"')
	case math.IsNaN(v) || math.IsInf(v, 0):
		return strconv.AppendQuote(to, strconv.FormatFloat(v, 'g', -1, 64)) // "NaN", "+Inf"
	default:
		return strconv.AppendFloat(to, v, 'g', -1, 64)
	}
}
