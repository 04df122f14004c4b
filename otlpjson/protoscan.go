package otlpjson

import (
	"encoding/binary"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sgtrace/sgtrace/otlpjson/beside"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// A protoScan is a [scan] of a protobuf message: it reads the identities, names, and times of spans, and skips
// all else. It gives up at anything unusual.
type protoScan struct {
	prescanned *spantable.PrescannedPiece
	keys       map[string]int // indexes of Prescan.Keys
}

// all records all spans, and reports whether it is sure to have found all of them.
func (s *protoScan) all(msg []byte) bool {
	s.prescanned.Documents++
	return eachMessage(msg, 1, func(resourceSpans []byte) bool {
		return eachMessage(resourceSpans, 2, func(scopeSpans []byte) bool {
			return eachMessage(scopeSpans, 2, s.span)
		})
	})
}

// eachMessage calls f for the messages in a field of a message; 2 also includes scope_spans before OTLP 0.15.
func eachMessage(b []byte, field protowire.Number, f func(message []byte) bool) bool {
	return beside.EachField(b, func(number protowire.Number, typ protowire.Type, value []byte) bool {
		if number != field && (number != scopeSpansBefore015 || field != 2) {
			return true
		}
		if typ != protowire.BytesType {
			return false
		}
		message, _ := protowire.ConsumeBytes(value)
		return f(message)
	})
}

// span records a span.
func (s *protoScan) span(message []byte) bool {
	var id spantable.TraceID
	var name []byte
	var start, end trace.Time
	hasID, attributes := false, false
	whole := beside.EachField(message, func(number protowire.Number, typ protowire.Type, value []byte) bool {
		if int(number) >= len(spanFields) || int(typ) >= len(wireTypes) || spanFields[number] != wireTypes[typ] {
			return false
		}
		switch number {
		case 1: // trace_id
			b, _ := protowire.ConsumeBytes(value)
			if len(b) != 16 {
				return false
			}
			id = spantable.TraceID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
		case 2: // span_id
			b, _ := protowire.ConsumeBytes(value)
			hasID = len(b) == 8 && binary.BigEndian.Uint64(b) != 0
		case 5: // name
			name, _ = protowire.ConsumeBytes(value)
		case 7: // start_time_unix_nano
			start = trace.Time(binary.LittleEndian.Uint64(value))
		case 8: // end_time_unix_nano
			end = trace.Time(binary.LittleEndian.Uint64(value))
		case 9: // attributes
			attributes = true
		}
		return true
	})
	if !whole || !hasID || id == (spantable.TraceID{}) || start <= 0 || end <= 0 {
		return false
	}
	if number := s.prescanned.Span(id, start, end); s.prescanned.Name(number, name) && attributes {
		return eachMessage(message, 9, func(attribute []byte) bool { return s.attribute(number, attribute) })
	}
	return true
}

// attribute records an attribute of a span.
func (s *protoScan) attribute(span uint32, message []byte) bool {
	key, known := 0, false
	return beside.EachField(message, func(number protowire.Number, typ protowire.Type, value []byte) bool {
		if typ != protowire.BytesType || number > 2 {
			return false
		}
		b, _ := protowire.ConsumeBytes(value)
		if number == 1 {
			key, known = s.keys[string(b)]
			return true
		}
		return !known || beside.EachField(b, func(number protowire.Number, typ protowire.Type, value []byte) bool {
			return s.value(span, key, number, typ, value)
		})
	})
}

// value records the value of a key, if it can be a text.
func (s *protoScan) value(span uint32, key int, number protowire.Number, typ protowire.Type, value []byte) bool {
	switch {
	case number == 1 && typ == protowire.BytesType: // string_value
		b, _ := protowire.ConsumeBytes(value)
		s.prescanned.Value(span, key, b)
	case number == 3 && typ == protowire.VarintType: // int_value
		v, _ := protowire.ConsumeVarint(value)
		s.prescanned.Value(span, key, strconv.AppendInt(nil, int64(v), 10))
	case number == 4 && typ == protowire.Fixed64Type: // double_value
		v := math.Float64frombits(binary.LittleEndian.Uint64(value))
		s.prescanned.Value(span, key, strconv.AppendFloat(nil, v, 'g', -1, 64))
	default:
		return false
	}
	return true
}
