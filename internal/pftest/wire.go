package pftest

import (
	"fmt"
	"math"

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
func parse(message string, b []byte, allowed map[protowire.Number]rule) ([]field, error) {
	var fields []field
	seen := map[protowire.Number]bool{}
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
		if seen[number] && !r.repeated {
			return nil, fmt.Errorf("%s: field %d repeats", message, number)
		}
		seen[number] = true
		fields = append(fields, f)
	}
	return fields, nil
}

// rule says what a field must look like.
type rule struct {
	wire     protowire.Type
	repeated bool
}

var (
	varint   = rule{wire: protowire.VarintType}
	fixed    = rule{wire: protowire.Fixed64Type}
	fixeds   = rule{wire: protowire.Fixed64Type, repeated: true}
	bytes    = rule{wire: protowire.BytesType}
	messages = rule{wire: protowire.BytesType, repeated: true}
)
