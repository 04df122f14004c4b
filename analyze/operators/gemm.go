package operators

import (
	"encoding/json"
	"slices"
	"strings"
)

// A gemmRule says which inputs of an operator are the two matrices that it multiplies.
type gemmRule struct {
	left, right int
	added       bool    // its first input, a matrix or a vector, is added to the product
	four        bool    // both matrices hold two numbers of 4 bits in each byte, whatever their type
	out         float64 // bytes of a number of the product; 0 is the size of an input's number, but at least 2
}

// gemms are the operators that launch multiplications of matrices. aten::linear and aten::matmul are
// not among them: they call these.
var gemms = map[string]gemmRule{
	"aten::mm": {right: 1}, "aten::bmm": {right: 1}, "aten::_scaled_mm": {right: 1}, "aten::_int_mm": {right: 1, out: 4},
	"aten::addmm": {left: 1, right: 2, added: true}, "aten::baddbmm": {left: 1, right: 2, added: true}, "aten::_addmm_activation": {left: 1, right: 2, added: true},

	"sgl_kernel::fp8_scaled_mm": {right: 1}, "sgl_kernel::int8_scaled_mm": {right: 1}, "sgl_kernel::fp8_blockwise_scaled_mm": {right: 1},
	"sgl_kernel::cutlass_scaled_fp4_mm": {left: 1, right: 2, four: true}, // the product is its first input
	"sglang::deep_gemm_fp8_fp8_bf16_nt": {right: 2},
	"_C::cutlass_scaled_mm":             {left: 1, right: 2}, "_C::cutlass_scaled_fp4_mm": {left: 1, right: 2, four: true},
	"vllm::w8a8_triton_block_scaled_mm_func": {right: 1}, "vllm::gemm_with_dynamic_quant": {right: 1},
	"trtllm::cublas_scaled_mm": {right: 1},
	"aiter::gemm_a8w8":         {right: 1}, "aiter::gemm_a8w8_blockscale": {right: 1}, "aiter::gemm_a8w8_bpreshuffle": {right: 1},
	"aiter::gemm_a4w4": {right: 1, four: true}, "aiter::_gemm_a4w4_asm": {right: 1, four: true},
}

// A gemmWork is a product of matrices: M x K by K x N, for each of a batch.
type gemmWork struct {
	Work
	B, M, N, K int64
}

// gemmOfInputs returns the product that an operator computes; ok is false if it computes none, or its
// shapes do not fit. Inputs that are neither matrices nor have the shape of the product are scales, or
// are added: each is read once.
func gemmOfInputs(name string, in inputs) (g gemmWork, ok bool) {
	rule, known := gemms[name]
	if !known {
		return g, false
	}
	left, right := in.Dims(rule.left), in.Dims(rule.right)
	n := len(left)
	if n < 2 || n > 3 || len(right) != n || n == 3 && left[0] != right[0] {
		return g, false
	}
	columns, packed, ok := columnsOf(left[n-1], right, in.isPacked(rule.right))
	if !ok {
		return g, false
	}
	g = gemmWork{B: 1, M: left[n-2], K: left[n-1], N: columns}
	if n == 3 {
		g.B = left[0]
	}
	g.Type = in.Type(rule.left)
	if rule.four || g.Type == fourBits && !packed {
		g.K, g.Type = 2*g.K, fourBits
	}
	results := float64(g.B) * float64(g.M) * float64(g.N)
	g.FLOPs = 2 * results * float64(g.K)
	out := max(2, sizeOf(g.Type)) // scaled products have 16 bits
	if rule.out > 0 {
		out = rule.out
	}
	g.Bytes = in.bytes(rule.left) + in.bytes(rule.right) + results*out
	if rule.added {
		g.FLOPs += results
		g.Bytes += in.bytes(0)
	}
	product := append(slices.Clone(left[:n-1]), columns)
	for i := range in.dims {
		if i == rule.left || i == rule.right || rule.added && i == 0 || in.Dims(i) == nil || slices.Equal(in.dims[i], product) {
			continue
		}
		g.Bytes += in.bytes(i)
	}
	return g, true
}

// columnsOf returns how many columns the product with a matrix has, which is stored as K x N or as N x
// K. packed reports that it has two numbers in each byte where the other matrix has one.
func columnsOf(k int64, right []int64, mayPack bool) (n int64, packed, ok bool) {
	rows, columns := right[len(right)-2], right[len(right)-1]
	switch {
	case rows == k:
		return columns, false, true
	case columns == k:
		return rows, false, true
	case mayPack && 2*rows == k:
		return columns, true, true
	case mayPack && 2*columns == k:
		return rows, true, true
	}
	return 0, false, false
}

// groupedOf returns the work of products of rows with the matrix of their group. Groups without rows
// are not read: if there are fewer rows than groups, at most one group per row is.
func groupedOf(name string, in *inputs) (w Work, ok bool) {
	if name != "aten::_grouped_mm" && name != "aten::_scaled_grouped_mm" && !strings.HasPrefix(name, "primus_turbo::grouped_gemm") {
		return w, false
	}
	left, right := in.Dims(0), in.Dims(1)
	if len(left) != 2 || len(right) != 3 {
		return w, false
	}
	columns, packed, ok := columnsOf(left[1], right, in.isPacked(1))
	if !ok {
		return w, false
	}
	rows, k := float64(left[0]), float64(left[1])
	w.Type = in.Type(0)
	if w.Type == fourBits && !packed {
		k *= 2
	}
	w.FLOPs = 2 * rows * k * float64(columns)
	w.Bytes = in.bytes(0) + in.bytes(1)*min(1, rows/float64(right[0])) + rows*float64(columns)*max(2, sizeOf(w.Type))
	return w, true
}

// layerOf returns the work of operators that depends on the values of other inputs, too, in the form of
// [profile.Frame.Values]; ok is false for other operators, or if the values are unknown.
func layerOf(name string, in *inputs, values string) (w Work, ok bool) {
	convolves, normalizes := name == "aten::convolution", strings.HasSuffix(name, "_batch_norm")
	if !convolves && !normalizes {
		return w, false
	}
	var v []string
	if json.Unmarshal([]byte(values), &v) != nil {
		return w, false
	}
	if convolves {
		return convolution(in, v)
	}
	return batchNorm(in, v)
}

// batchNorm returns the work of shifting and scaling channels. In training, it also computes their mean
// and variance, and writes these.
func batchNorm(in *inputs, values []string) (w Work, ok bool) {
	const training = 5 // index of the input that says so
	d := in.Dims(0)
	if len(d) < 2 || len(values) <= training {
		return w, false
	}
	n, channels := in.count(0), float64(d[1])
	w = Work{FLOPs: 2*n + 6*channels, Bytes: 2*in.bytes(0) + 4*channels*sizeOf(in.Type(0))}
	if values[training] == "True" {
		w.FLOPs += 3 * n
		w.Bytes += 2 * channels * sizeOf(in.Type(0))
	}
	return w, true
}

// convolution returns the work of multiplying a window around each place of the input with each filter.
// A transposed convolution spreads each place over a window.
func convolution(in *inputs, values []string) (w Work, ok bool) {
	const stride, padding, dilation, transposed, added, numValues = 3, 4, 5, 6, 7, 9
	x, filter := in.Dims(0), in.Dims(1)
	if len(values) < numValues || len(x) < 3 || len(filter) != len(x) {
		return w, false
	}
	spread := values[transposed] == "True"
	places := float64(x[0])
	for i := range len(x) - 2 {
		s, p, d := sizeAt(values[stride], i), sizeAt(values[padding], i), sizeAt(values[dilation], i)
		if s < 1 || p < 0 || d < 1 {
			return w, false
		}
		reach := d*(filter[i+2]-1) + 1
		if spread {
			places *= float64((x[i+2]-1)*s - 2*p + reach + max(0, sizeAt(values[added], i)))
		} else {
			places *= float64((x[i+2]+2*p-reach)/s + 1)
		}
	}
	each := product(filter[1:]) // multiplications per result, or per number that is spread
	w.Type = in.Type(0)
	results, multiplied := places*float64(filter[0]), 0.0
	if spread {
		var groups int64
		if groups = sizeAt("["+values[numValues-1]+"]", 0); groups < 1 {
			return w, false
		}
		results = places * float64(filter[1]*groups)
		multiplied = in.count(0)
	} else {
		multiplied = results
	}
	w.FLOPs = 2 * each * multiplied
	w.Bytes = in.bytes(0) + in.bytes(1) + results*sizeOf(w.Type)
	if in.Dims(2) != nil {
		w.FLOPs += results
		w.Bytes += in.bytes(2)
	}
	return w, true
}

// sizeAt returns a number of a list such as "[16, 16]". A list of one number is for all. -1 is unknown.
func sizeAt(list string, i int) int64 {
	var sizes []int64
	if json.Unmarshal([]byte(list), &sizes) != nil || len(sizes) == 0 || i >= len(sizes) && len(sizes) > 1 {
		return -1
	}
	return sizes[min(i, len(sizes)-1)]
}
