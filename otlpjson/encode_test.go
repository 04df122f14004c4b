package otlpjson

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protowire"
)

// Documents for tests. The name of a span, a letter or word, determines its ids and times: span "a"
// is the same in every document.

// span returns a span as a Collector writes it; extra are additional members.
func span(name string, extra ...string) string {
	h := fnv.New64a()
	h.Write([]byte(name))
	id, start := h.Sum64(), 1787000000000000000+int64(h.Sum64()%1000)
	return fmt.Sprintf(`{"traceId":"00000000000000005eed5eed5eed5eed","spanId":"%016x","flags":256,"name":%q,"kind":1,"startTimeUnixNano":"%d","endTimeUnixNano":"%d"%s,"status":{}}`,
		id, name, start, start+256, strings.Join(append([]string{""}, extra...), ","))
}

// doc returns a document of one process and scope with the given spans.
func doc(spans ...string) string {
	return `{"resourceSpans":[` + resourceSpans("p1", spans...) + `]}`
}

func resourceSpans(process string, spans ...string) string {
	return fmt.Sprintf(`{"resource":{"attributes":[{"key":"service.instance.id","value":{"stringValue":%q}}]},"scopeSpans":[%s]}`,
		process, scopeSpans("s1", spans...))
}

func scopeSpans(scope string, spans ...string) string {
	return fmt.Sprintf(`{"scope":{"name":%q},"spans":[%s]}`, scope, strings.Join(spans, ","))
}

// rich is a span with every possible member.
func rich(name string) string {
	return span(name, `"parentSpanId":"00000000000000aa","traceState":"k=v"`,
		`"attributes":[{"key":"word","value":{"stringValue":"a \"b\" \u00e9 \ud83d\ude00\n{\"traceId\":\"no\"}"}},{"key":"int","value":{"intValue":"-5"}},`+
			`{"key":"float","value":{"doubleValue":0.25}},{"key":"bool","value":{"boolValue":true}},`+
			`{"key":"list","value":{"arrayValue":{"values":[{"stringValue":"x"},{"intValue":"7"}]}}},`+
			`{"key":"map","value":{"kvlistValue":{"values":[{"key":"y","value":{"intValue":"8"}}]}}},`+
			`{"key":"raw","value":{"bytesValue":"AP8="}},{"key":"none","value":{}}]`,
		`"events":[{"timeUnixNano":"1787000000000000005","name":"schedule","attributes":[{"key":"bid","value":{"stringValue":"8986823b"}}]},`+
			`{"timeUnixNano":"1787000000000000006","name":"retract"}]`,
		`"links":[{"traceId":"00000000000000005eed5eed5eed5eed","spanId":"00000000000000bb","flags":768,"attributes":[{"key":"a","value":{"boolValue":false}}]}]`,
		`"droppedAttributesCount":3,"droppedEventsCount":1`)
}

// A protoSchema says how a message is encoded, by the JSON names of its fields.
type protoSchema map[string]protoRow

type protoRow struct {
	number protowire.Number
	kind   string      // message, string, hex, base64, varint, fixed64, fixed32, double, bool
	fields protoSchema // of a message; nil means AnyValue, which contains itself
}

var (
	protoAny  protoSchema
	protoPair = protoSchema{"key": {1, "string", nil}, "value": {2, "message", nil}}
	protoLink = protoSchema{"traceId": {1, "hex", nil}, "spanId": {2, "hex", nil}, "traceState": {3, "string", nil},
		"attributes": {4, "message", protoPair}, "flags": {6, "fixed32", nil}}
	protoEvent = protoSchema{"timeUnixNano": {1, "fixed64", nil}, "name": {2, "string", nil}, "attributes": {3, "message", protoPair}}
	protoSpan  = protoSchema{"traceId": {1, "hex", nil}, "spanId": {2, "hex", nil}, "traceState": {3, "string", nil},
		"parentSpanId": {4, "hex", nil}, "name": {5, "string", nil}, "kind": {6, "varint", nil},
		"startTimeUnixNano": {7, "fixed64", nil}, "endTimeUnixNano": {8, "fixed64", nil}, "attributes": {9, "message", protoPair},
		"droppedAttributesCount": {10, "varint", nil}, "events": {11, "message", protoEvent}, "droppedEventsCount": {12, "varint", nil},
		"links": {13, "message", protoLink}, "status": {15, "message", protoSchema{"message": {2, "string", nil}, "code": {3, "varint", nil}}},
		"flags": {16, "fixed32", nil}}
	protoDocument = protoSchema{"resourceSpans": {1, "message", protoSchema{
		"resource": {1, "message", protoSchema{"attributes": {1, "message", protoPair}}},
		"scopeSpans": {2, "message", protoSchema{
			"scope": {1, "message", protoSchema{"name": {1, "string", nil}}},
			"spans": {2, "message", protoSpan},
		}},
	}}}
)

func init() {
	protoAny = protoSchema{"stringValue": {1, "string", nil}, "boolValue": {2, "bool", nil}, "intValue": {3, "varint", nil},
		"doubleValue": {4, "double", nil}, "bytesValue": {7, "base64", nil},
		"arrayValue":  {5, "message", protoSchema{"values": {1, "message", nil}}},
		"kvlistValue": {6, "message", protoSchema{"values": {1, "message", protoPair}}}}
}

// encode returns a JSON tree in protobuf.
func (schema protoSchema) encode(o object) (b []byte) {
	for _, m := range o {
		row, ok := schema[m.key]
		if !ok {
			panic("no field " + m.key)
		}
		values, ok := m.value.([]any)
		if !ok {
			values = []any{m.value}
		}
		for _, v := range values {
			b = row.append(b, v)
		}
	}
	return b
}

func (row protoRow) append(b []byte, v any) []byte {
	number := func() uint64 { n, _ := strconv.ParseInt(fmt.Sprint(v), 10, 64); return uint64(n) }
	put := func(data []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, row.number, protowire.BytesType), data)
	}
	switch row.kind {
	case "message":
		fields := row.fields
		if fields == nil {
			fields = protoAny
		}
		return put(fields.encode(v.(object)))
	case "string":
		return put([]byte(v.(string)))
	case "hex":
		data, _ := hex.DecodeString(v.(string))
		return put(data)
	case "base64":
		data, _ := base64.StdEncoding.DecodeString(v.(string))
		return put(data)
	case "varint":
		return protowire.AppendVarint(protowire.AppendTag(b, row.number, protowire.VarintType), number())
	case "bool":
		return protowire.AppendVarint(protowire.AppendTag(b, row.number, protowire.VarintType), protowire.EncodeBool(v.(bool)))
	case "fixed64":
		return protowire.AppendFixed64(protowire.AppendTag(b, row.number, protowire.Fixed64Type), number())
	case "fixed32":
		return protowire.AppendFixed32(protowire.AppendTag(b, row.number, protowire.Fixed32Type), uint32(number()))
	case "double":
		f, _ := v.(json.Number).Float64()
		return protowire.AppendFixed64(protowire.AppendTag(b, row.number, protowire.Fixed64Type), math.Float64bits(f))
	}
	panic(row.kind)
}

// protoMessages returns each document of a JSON input in protobuf.
func protoMessages(t testing.TB, data string) (out []string) {
	t.Helper()
	values, err := parseTrees([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		out = append(out, string(protoDocument.encode(v.(object))))
	}
	return out
}

// frames prefixes every message with its length.
func frames(messages ...string) string {
	var b []byte
	for _, m := range messages {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(m))), m...)
	}
	return string(b)
}

// packed compresses every message.
func packed(messages ...string) (out []string) {
	w, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	defer w.Close()
	for _, m := range messages {
		out = append(out, string(w.EncodeAll([]byte(m), nil)))
	}
	return out
}
