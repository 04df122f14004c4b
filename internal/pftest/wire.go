package pftest

import (
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a message: num holds scalars, data the rest.
type field struct {
	number protowire.Number
	wire   protowire.Type
	num    uint64
	data   []byte
}

func (f field) double() float64 { return math.Float64frombits(f.num) }

// parse splits a message into its fields. Fields whose number or wire type is
// not among those allowed are errors; so are singular fields that repeat.
func parse(message string, b []byte, allowed rules) ([]field, error) {
	var fields []field
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, fmt.Errorf("%s: %w", message, protowire.ParseError(n))
		}
		b = b[n:]
		f := field{number: number, wire: wire}
		switch wire {
		case protowire.VarintType:
			f.num, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.num, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			f.data, n = protowire.ConsumeBytes(b)
		default:
			return nil, fmt.Errorf("%s: field %d has wire type %d", message, number, wire)
		}
		if n < 0 {
			return nil, fmt.Errorf("%s: field %d: %w", message, number, protowire.ParseError(n))
		}
		b = b[n:]
		r, ok := allowed[number]
		if !ok || r.wire != wire {
			return nil, fmt.Errorf("%s: field %d of wire type %d is not expected", message, number, wire)
		}
		if !r.repeated && has(fields, number) {
			return nil, fmt.Errorf("%s: field %d repeats", message, number)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

// has reports whether there is a field of a number.
func has(fields []field, number protowire.Number) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.number == number })
}

// rules are the fields that a message may have.
type rules map[protowire.Number]rule

// rule says what a field must look like.
type rule struct {
	wire     protowire.Type
	repeated bool
}

var (
	varint   = rule{wire: protowire.VarintType}
	fixed    = rule{wire: protowire.Fixed64Type}
	varints  = rule{wire: protowire.VarintType, repeated: true}
	bytes    = rule{wire: protowire.BytesType}
	messages = rule{wire: protowire.BytesType, repeated: true}
)

// The messages of which a file has many.
var (
	packetRules     = rules{6: bytes, 8: varint, 10: varint, 11: bytes, 12: bytes, 13: varint, 59: bytes, 60: bytes, 72: bytes, 126: bytes}
	eventRules      = rules{3: varint, 4: messages, 9: varint, 10: varint, 11: varint, 30: varint, 36: varints, 42: varints, 44: fixed, 54: varint, eventArgs: bytes}
	annotationRules = rules{1: varint, 2: varint, 3: varint, 4: varint, 5: fixed, 6: bytes, 11: messages, 12: messages, 17: varint}
	internedRules   = rules{1: varint, 2: bytes}
	descriptorRules = rules{1: varint, 2: bytes, 5: varint, 8: bytes, 11: varint, 12: varint, 14: bytes, 15: varint}
)
