package operators

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// fourBits is the type of two numbers of 4 bits in a byte, for which shapes count bytes.
const fourBits = "c10::Float4_e2m1fn_x2"

// typeBytes are how large numbers are, by the names that PyTorch's profiler writes.
var typeBytes = map[string]float64{"c10::BFloat16": 2, "c10::Half": 2, "float": 4, "double": 8, "int": 4, "long int": 8, "long": 8, "short int": 2,
	"signed char": 1, "unsigned char": 1, "bool": 1, fourBits: 1}

// sizeOf returns how many bytes a number takes; NaN is unknown.
func sizeOf(typ string) float64 {
	if strings.HasPrefix(typ, "c10::Float8_") {
		return 1
	}
	if n, ok := typeBytes[typ]; ok {
		return n
	}
	return math.NaN()
}

// inputs are those of an operator.
type inputs struct {
	dims  [][]int64 // nil is no tensor
	types []string
}

// parseInputs parses shapes and types as PyTorch's profiler writes them.
func parseInputs(shapes, types string) (in inputs) {
	var list []json.RawMessage
	if json.Unmarshal([]byte(shapes), &list) != nil {
		return in
	}
	for _, raw := range list {
		var d []int64
		if json.Unmarshal(raw, &d) != nil || slices.ContainsFunc(d, func(n int64) bool { return n < 0 }) {
			d = nil
		}
		in.dims = append(in.dims, d)
	}
	if json.Unmarshal([]byte(types), &in.types) != nil {
		in.types = nil
	}
	return in
}

// Dims returns the shape of an input; nil if there is no such input, or it is no tensor.
func (in *inputs) Dims(i int) []int64 {
	if i < 0 || i >= len(in.dims) || len(in.dims[i]) == 0 {
		return nil
	}
	return in.dims[i]
}

// Type returns the type of an input, "" if it is unknown.
func (in *inputs) Type(i int) string {
	if i < 0 || i >= len(in.types) {
		return ""
	}
	return in.types[i]
}

// count returns how many numbers an input has.
func (in *inputs) count(i int) float64 {
	d := in.Dims(i)
	if d == nil {
		return math.NaN()
	}
	return product(d)
}

func product(dims []int64) float64 {
	n := 1.0
	for _, x := range dims {
		n *= float64(x)
	}
	return n
}

// bytes returns the size of an input.
func (in *inputs) bytes(i int) float64 { return in.count(i) * sizeOf(in.Type(i)) }

// width returns how many numbers a row of an input has.
func (in *inputs) width(i int) float64 {
	d := in.Dims(i)
	if d == nil {
		return math.NaN()
	}
	return float64(d[len(d)-1])
}

// isPacked reports whether an input may hold two numbers of 4 bits in each byte.
func (in *inputs) isPacked(i int) bool {
	typ := in.Type(i)
	return typ == fourBits || typ == "unsigned char"
}
