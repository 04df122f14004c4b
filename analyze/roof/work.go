package roof

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile"
)

// Work is what some kernels have to do at least.
type Work struct {
	FLOPs, Bytes float64
	Type         string // of the numbers that are multiplied: "c10::BFloat16"
}

// Add adds the work of another.
func (w *Work) Add(o Work) {
	w.FLOPs, w.Bytes, w.Type = w.FLOPs+o.FLOPs, w.Bytes+o.Bytes, o.Type
}

// Bound is which roof some work meets first.
type Bound string

const (
	ByMemory  Bound = "memory"
	ByCompute Bound = "compute"
)

// Roof returns the shortest time in which a GPU can do the work, in ns, and what bounds it; NaN is unknown.
// Work without products of matrices is bound by memory.
func (w *Work) Roof(g *GPU) (ns float64, by Bound) {
	moving := w.Bytes / g.Bandwidth / 1e3
	if w.Type == "" {
		return moving, ByMemory
	}
	computing := w.FLOPs / g.Peak(w.Type) / 1e3
	if computing > moving || math.IsNaN(computing) {
		return computing, ByCompute
	}
	return moving, ByMemory
}

// typeBytes are how large numbers are, by the names that PyTorch's profiler writes.
var typeBytes = map[string]float64{"c10::BFloat16": 2, "c10::Half": 2, "float": 4, "double": 8, "int": 4, "long int": 8, "long": 8, "short int": 2,
	"signed char": 1, "unsigned char": 1, "bool": 1, "c10::Float4_e2m1fn_x2": 1}

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

// Inputs are those of an operator.
type Inputs struct {
	dims  [][]int64 // nil is no tensor
	types []string
}

// ParseInputs parses shapes and types as PyTorch's profiler writes them.
func ParseInputs(shapes, types string) (in Inputs) {
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
func (in *Inputs) Dims(i int) []int64 {
	if i < 0 || i >= len(in.dims) || len(in.dims[i]) == 0 {
		return nil
	}
	return in.dims[i]
}

// Type returns the type of an input, "" if it is unknown.
func (in *Inputs) Type(i int) string {
	if i < 0 || i >= len(in.types) {
		return ""
	}
	return in.types[i]
}

// count returns how many numbers an input has.
func (in *Inputs) count(i int) float64 {
	d := in.Dims(i)
	if d == nil {
		return math.NaN()
	}
	n := 1.0
	for _, x := range d {
		n *= float64(x)
	}
	return n
}

// bytes returns the size of an input.
func (in *Inputs) bytes(i int) float64 { return in.count(i) * sizeOf(in.Type(i)) }

// A gemmRule says which inputs of an operator are the two matrices that it multiplies.
type gemmRule struct {
	left  int  // the other one is behind it
	added bool // a third one, or a vector, is added to the product
}

// gemms are the operators that launch multiplications of matrices. aten::linear and
// aten::matmul are not among them: they call those that are.
var gemms = map[string]gemmRule{
	"aten::mm": {}, "aten::bmm": {}, "aten::_scaled_mm": {}, "aten::_int_mm": {},
	"aten::addmm": {1, true}, "aten::baddbmm": {1, true}, "aten::_addmm_activation": {1, true},
	"sgl_kernel::fp8_scaled_mm": {}, "sgl_kernel::int8_scaled_mm": {},
	"_C::cutlass_scaled_mm": {left: 1}, // the product is its first input
}

// A GEMM is a product of matrices: M x K by K x N, for each of a batch.
type GEMM struct {
	Work
	B, M, N, K int64
}

// GEMMOf returns what an operator multiplies; ok is false if it multiplies nothing, or its shapes do not fit.
func GEMMOf(name string, in Inputs) (g GEMM, ok bool) {
	rule, known := gemms[name]
	if !known {
		return g, false
	}
	left, right := in.Dims(rule.left), in.Dims(rule.left+1)
	n := len(left)
	if n < 2 || n > 3 || len(right) != n || left[n-1] != right[n-2] || n == 3 && left[0] != right[0] {
		return g, false
	}
	g = GEMM{B: 1, M: left[n-2], K: left[n-1], N: right[n-1]}
	if n == 3 {
		g.B = left[0]
	}
	product := float64(g.B) * float64(g.M) * float64(g.N)
	g.Type = in.Type(rule.left)
	g.FLOPs = 2 * product * float64(g.K)
	out := max(2, sizeOf(g.Type)) // what scales its product gives 16 bits
	g.Bytes = in.bytes(rule.left) + in.bytes(rule.left+1) + product*out
	if rule.added {
		g.FLOPs += product
		g.Bytes += in.bytes(0)
	}
	return g, true
}

// A rule says what an operator does whose name has some text.
type rule struct {
	text string
	work func(in *Inputs) Work
}

// rules are those of operators that multiply no matrices. The first one whose text is in the name counts.
var rules = []rule{
	{"fused_add_rms", addNorm}, {"fused_add_rmsnorm", addNorm}, {"rmsnorm2d_fwd_with_add", addNormApart},
	{"rms_norm", norm}, {"rmsnorm", norm},
	{"silu_and_mul", gate}, {"gelu_and_mul", gate}, {"gelu_tanh_and_mul", gate},
	{"rotary_embedding", rope},
	{"reshape_and_cache", writeKV},
	{"aten::copy_", func(in *Inputs) Work { return Work{Bytes: in.bytes(0) + in.count(0)*sizeOf(in.Type(1))} }},
	{"aten::add_", binary}, {"aten::mul_", binary},
}

// norm divides the rows of its first input with two dimensions by their length. Some write the result
// to an input, and some return it: it is as large.
func norm(in *Inputs) Work {
	n, c := in.count(0), width(in, 0)
	return Work{FLOPs: n/c*(2*c+2) + 2*n, Bytes: 2*in.bytes(0) + c*sizeOf(in.Type(0))}
}

// addNorm adds the residual before, in place.
func addNorm(in *Inputs) Work {
	w := norm(in)
	w.FLOPs += in.count(0)
	w.Bytes += 2 * in.bytes(0)
	return w
}

// addNormApart does the same to outputs of its own: reads two, writes two.
func addNormApart(in *Inputs) Work { return addNorm(in) }

func width(in *Inputs, i int) float64 {
	d := in.Dims(i)
	if d == nil {
		return math.NaN()
	}
	return float64(d[len(d)-1])
}

// gate computes the activation of one half of its input, and multiplies it by the other one.
func gate(in *Inputs) Work {
	n := in.count(0)
	if b := in.count(1); b > n {
		n = b
	}
	return Work{FLOPs: 5 * n / 2, Bytes: 1.5 * n * sizeOf(in.Type(0))}
}

// rope turns queries and keys in place, which follow the positions.
func rope(in *Inputs) Work {
	n := in.count(1) + in.count(2)
	return Work{FLOPs: 3 * n, Bytes: 2 * n * sizeOf(in.Type(1))}
}

// writeKV reads keys and values, and writes them to the cache.
func writeKV(in *Inputs) Work {
	return Work{Bytes: 2 * (in.bytes(0) + in.bytes(1))}
}

// binary computes a number of two, in place.
func binary(in *Inputs) Work {
	second := in.bytes(1)
	if math.IsNaN(second) {
		second = 0 // a number for all
	}
	return Work{FLOPs: in.count(0), Bytes: 2*in.bytes(0) + second}
}

// WorkOf returns what an operator must do; ok is false if no formula is known, or shapes and types do
// not say enough.
func WorkOf(name string, in Inputs) (w Work, ok bool) {
	if g, ok := GEMMOf(name, in); ok {
		return g.Work, !math.IsNaN(g.Bytes)
	}
	if experts, ok := expertsOf(name, &in); ok {
		return experts, !math.IsNaN(experts.Bytes)
	}
	i := slices.IndexFunc(rules, func(r rule) bool { return strings.Contains(name, r.text) })
	if i < 0 {
		return Work{}, false
	}
	w = rules[i].work(&in)
	return w, !math.IsNaN(w.Bytes) && !math.IsNaN(w.FLOPs)
}

// expertsOf returns the work of fused experts: hidden states, both weights of all experts, and then the
// weights and numbers of those that each token goes to. Which experts these are is not recorded: as many
// weights are read as random routing hits.
func expertsOf(name string, in *Inputs) (w Work, ok bool) {
	if !strings.HasSuffix(name, "place_fused_experts") && !strings.HasSuffix(name, "::fused_experts") {
		return w, false
	}
	x, up, down, routed := in.Dims(0), in.Dims(1), in.Dims(2), in.Dims(4)
	if len(x) != 2 || len(up) != 3 || len(down) != 3 || len(routed) != 2 || up[2] != x[1] || down[1] != x[1] || up[0] != down[0] || in.Type(0) != in.Type(1) {
		return w, false
	}
	t, k, e := float64(x[0]), float64(routed[1]), float64(up[0])
	hit := e * (1 - math.Pow((e-k)/e, t))
	w.Type = in.Type(1)
	w.FLOPs = 2*t*k*float64(up[1])*float64(up[2]) + 2*t*k*float64(down[1])*float64(down[2])
	w.Bytes = 2*in.bytes(0) + hit*(float64(up[1]*up[2])+float64(down[1]*down[2]))*sizeOf(w.Type)
	return w, true
}

// AttentionOf returns the work of attention over a cache in one layer, from the heads in the shapes and
// the lengths of the sequences of the step. Attention to a window needs less: names and shapes do not
// tell of it, and it then seems to be faster than memory can be.
func AttentionOf(name string, in Inputs, l profile.Lengths) (w Work, ok bool) {
	rule, known := profile.AttentionOf(name)
	if !known || !rule.Paged {
		return w, false
	}
	query, key, value := in.Dims(rule.Query), in.Dims(rule.Query+1), in.Dims(rule.Query+2)
	if len(query) != 3 || len(key) != 3 || len(value) != 3 {
		return w, false // the cache itself, or one that is compressed
	}
	heads, kv := float64(query[1]), float64(key[1])
	dims := float64(query[2] + value[2])
	b := sizeOf(in.Type(rule.Query))
	w.Type = in.Type(rule.Query)
	w.FLOPs = 2*heads*dims*float64(l.GenerationPairs) + 2*heads*dims*(float64(l.ContextPairs)-float64(l.ContextSquares)/2)
	tokens := float64(l.ContextTokens + l.GenerationTokens)
	keys := float64(l.ContextKeys + l.GenerationKeys)
	w.Bytes = (tokens*heads*dims + keys*kv*dims) * b
	return w, !math.IsNaN(w.Bytes)
}
