package operators

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
)

// Work is the least that some kernels have to do.
type Work struct {
	FLOPs, Bytes float64
	Sent         float64 // bytes that each GPU has to send to others
	Type         string  // of the numbers that are multiplied: "c10::BFloat16"
}

// add adds the work of o.
func (w *Work) add(o Work) {
	w.FLOPs, w.Bytes, w.Sent, w.Type = w.FLOPs+o.FLOPs, w.Bytes+o.Bytes, w.Sent+o.Sent, o.Type
}

// Types of 32-bit numbers by the units that multiply them.
const (
	roundedType = "float on TF32 units"
	singleType  = "float on FP32 units"
)

// unitWords are words in the names, in lower case, of kernels of cuBLAS, CUTLASS, and Tensile that multiply 32-bit
// numbers: those with the first ones round them to TF32. "s1688gemm" is the instruction of tensor cores for these.
var unitWords = []struct{ word, typ string }{
	{"tf32", roundedType}, {"xf32", roundedType}, {"s1688gemm", roundedType},
	{"sgemm", singleType}, {"simt", singleType}, {"ffma", singleType}, {"gemv", singleType}, {"f32f32_f32f32", singleType},
}

// on returns the work as done by a kernel whose name shows on which units: operators do not show
// whether 32-bit numbers are rounded.
func (w Work) on(kernel string) Work {
	if typ := unitsOf(kernel); w.Type == "float" && typ != "" {
		w.Type = typ
	}
	return w
}

// unitsOf returns the type of numbers that a kernel multiplies, by its name; "" is unknown.
func unitsOf(kernel string) string {
	kernel = strings.ToLower(kernel)
	for _, u := range unitWords {
		if strings.Contains(kernel, u.word) {
			return u.typ
		}
	}
	return ""
}

// Bound is the limit that some work meets first.
type Bound string

const (
	ByMemory  Bound = "memory"
	ByCompute Bound = "compute"
	ByLink    Bound = "link"
)

// roof returns the shortest time in which a GPU can do the work, in ns, and what bounds it; NaN is unknown.
// Work without products of matrices is bound by memory, or by the link to other GPUs.
func (w *Work) roof(g *GPU) (ns float64, by Bound) {
	ns, by = w.Bytes/g.Bandwidth/1e3, ByMemory
	if sending := w.Sent / g.Link; w.Sent > 0 && !(sending <= ns) {
		ns, by = sending, ByLink
	}
	if w.Type == "" {
		return ns, by
	}
	if computing := w.FLOPs / g.peak(w.Type) / 1e3; !(computing <= ns) {
		return computing, ByCompute
	}
	return ns, by
}

// A setting is what the work of an operator depends on besides its name and the shapes of its inputs.
type setting struct {
	Lengths *profile.Lengths // of the sequences of their step; nil is unknown
	Mask    profile.Mask     // of attention
	Values  string           // of inputs that are not tensors, in the form of [profile.Frame.Values]; "" is unknown
	// Routed is how tokens were spread over experts, if that was recorded; nil is unknown.
	Routed *RoutedTokens
}

// workOf returns what an operator must do; ok is false if there is no formula, or shapes and types do
// not say enough.
func workOf(name string, in inputs, s setting) (w Work, ok bool) {
	if g, ok := gemmOfInputs(name, in); ok {
		return g.Work, g.known()
	}
	if g, ok := groupedOf(name, &in); ok {
		return g, g.known()
	}
	if experts, ok := expertsOf(name, &in, s.Routed); ok {
		return experts, experts.known()
	}
	if part, ok := expertProduct(name, &in, s.Routed); ok {
		return part, part.known()
	}
	if a, ok := attentionWork(name, &in, s); ok {
		return a, a.known()
	}
	if w, ok := communicationOf(name, s.Values); ok {
		return w, w.known()
	}
	if w, ok := layerOf(name, &in, s.Values); ok {
		return w, w.known()
	}
	i := slices.IndexFunc(rules, func(r rule) bool { return r.fits(name) })
	if i < 0 {
		return Work{}, false
	}
	w = rules[i].work(name, &in)
	return w, w.known()
}

func (w *Work) known() bool { return w.Bytes > 0 && !math.IsInf(w.Bytes, 0) && !(w.FLOPs < 0) }

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

// inputs are the shapes and types of an operator's inputs.
type inputs struct {
	dims  [][]int64 // nil if it is not a tensor
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

// Dims returns the shape of an input; nil if there is no such input, or it is not a tensor.
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
