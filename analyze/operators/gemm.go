package operators

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/profile"
)

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

// A GEMM is a row of operators that multiply matrices of one shape: M x K by K x N, for each
// of a batch.
type GEMM struct {
	Row
	B, M, N, K int64
	Type       string  // of the matrices: "c10::BFloat16"
	FLOPs      float64 // of all calls that launched work: 2BMNK, and BMN where something is added
	GPUName    string  // "" is unknown, or several
}

// Achieved returns the FLOPs in a second of GPU time, in tera.
func (g *GEMM) Achieved() float64 { return g.FLOPs / float64(g.GPU) / 1e3 }

// Peak returns what the GPU is made for, in TFLOP/s; NaN is unknown.
func (g *GEMM) Peak() float64 { return peakOf(g.GPUName, g.Type) }

// findGEMMs finds the rows that multiply matrices.
func (o *Operators) findGEMMs(set *profile.Set) {
	all := set.GPU(walk.NoRank)
	for i := range o.Shapes {
		r := &o.Shapes[i]
		gpu := all
		if o.ByRank {
			gpu = set.GPU(r.RankIndex)
		}
		if g, ok := gemmOf(r, gpu); ok {
			o.GEMMs = append(o.GEMMs, g)
		}
	}
	slices.SortStableFunc(o.GEMMs, func(a, b GEMM) int { return cmp.Compare(b.GPU, a.GPU) })
}

// gemmOf returns what a row multiplies; false if it is none, launched nothing, or its shapes
// do not fit.
func gemmOf(r *Row, gpu string) (GEMM, bool) {
	rule, known := gemms[r.Name]
	if !known || r.Working == 0 || r.GPU == 0 {
		return GEMM{}, false
	}
	left, right := dims(r.Shapes, rule.left), dims(r.Shapes, rule.left+1)
	n := len(left)
	if n < 2 || n > 3 || len(right) != n || left[n-1] != right[n-2] || n == 3 && left[0] != right[0] {
		return GEMM{}, false
	}
	g := GEMM{Row: *r, B: 1, M: left[n-2], K: left[n-1], N: right[n-1], Type: typeOf(r.Types, rule.left), GPUName: gpu}
	if n == 3 {
		g.B = left[0]
	}
	product := float64(g.B) * float64(g.M) * float64(g.N)
	each := 2 * product * float64(g.K)
	if rule.added {
		each += product
	}
	g.FLOPs = each * float64(r.Working)
	return g, true
}

// dims returns the shape of an input; nil if there is no such input, or it is no tensor.
func dims(shapes string, input int) []int64 {
	var all []json.RawMessage
	if json.Unmarshal([]byte(shapes), &all) != nil || input >= len(all) {
		return nil
	}
	var d []int64
	if json.Unmarshal(all[input], &d) != nil || slices.ContainsFunc(d, func(n int64) bool { return n < 0 }) {
		return nil
	}
	return d
}

// typeOf returns the type of an input, "" if it is unknown.
func typeOf(types string, input int) string {
	var all []string
	if json.Unmarshal([]byte(types), &all) != nil || input >= len(all) {
		return ""
	}
	return all[input]
}

// A peak is how many TFLOP/s a GPU is made for with dense matrices, by the size of their
// numbers.
type peak struct {
	name        string // in that of the GPU
	half, eight float64
}

// peaks are of the data sheets of the GPUs, at boost clock and without sparsity, for which
// most sheets of NVIDIA give twice as much. The first one whose name fits counts. 0 is not
// possible.
var peaks = []peak{
	{"B200", 2250, 4500},        // NVIDIA DGX B200: 36 and 72 PFLOPS for 8, with sparsity
	{"H200 NVL", 835.5, 1670.5}, // NVIDIA H200 Tensor Core GPU
	{"H200", 989.5, 1979},       // the same
	{"H100 NVL", 835.5, 1670.5}, // NVIDIA H100 Tensor Core GPU
	{"H100 PCIe", 756.5, 1513},  // the same, first edition
	{"H100", 989.5, 1979},       // the same: SXM
	{"H20", 148, 296},           // NVIDIA H20
	{"A100", 312, 0},            // NVIDIA A100 Tensor Core GPU
	{"L40S", 362, 733},          // NVIDIA L40S
	{"L4", 121, 242.5},          // NVIDIA L4
	{"MI355X", 2516.6, 5033.2},  // AMD Instinct MI355X
	{"MI325X", 1307.4, 2614.9},  // AMD Instinct MI325X
	{"MI300X", 1307.4, 2614.9},  // AMD Instinct MI300X
}

// peakOf returns the peak of a GPU for a type of numbers; NaN is unknown. Of 32-bit numbers
// it is: whether TF32 is used is not recorded.
func peakOf(gpu, typ string) float64 {
	i := slices.IndexFunc(peaks, func(p peak) bool { return hasWords(gpu, p.name) })
	if i < 0 {
		return math.NaN()
	}
	of := 0.0
	switch {
	case typ == "c10::BFloat16" || typ == "c10::Half":
		of = peaks[i].half
	case strings.HasPrefix(typ, "c10::Float8_"):
		of = peaks[i].eight
	}
	if of == 0 {
		return math.NaN()
	}
	return of
}

// hasWords reports whether a name has some words as whole ones: "NVIDIA L4" is no L40S, and
// "NVIDIA A100-SXM4-80GB" is an A100.
func hasWords(name, words string) bool {
	split := func(s string) string {
		return " " + strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '-' || r == '_' }), " ") + " "
	}
	return strings.Contains(split(name), split(words))
}
