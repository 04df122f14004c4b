package operators

import (
	"encoding/json"
	"slices"
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
	Computed   // 2BMNK in a call, and BMN where something is added
	B, M, N, K int64
}

// gemmOf returns what a row multiplies; false if it is none, launched nothing, or its shapes
// do not fit.
func gemmOf(r *Row, gpu string) (GEMM, bool) {
	rule, known := gemms[r.Row.Name]
	if !known || r.Working == 0 || r.GPU == 0 {
		return GEMM{}, false
	}
	left, right := dims(r.Shapes, rule.left), dims(r.Shapes, rule.left+1)
	n := len(left)
	if n < 2 || n > 3 || len(right) != n || left[n-1] != right[n-2] || n == 3 && left[0] != right[0] {
		return GEMM{}, false
	}
	g := GEMM{Computed: Computed{Row: *r, Type: typeOf(r.Types, rule.left), GPUName: gpu}, B: 1, M: left[n-2], K: left[n-1], N: right[n-1]}
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
