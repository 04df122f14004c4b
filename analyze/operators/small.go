package operators

import (
	"math"
	"strconv"
	"strings"
)

// A rule has the work of operators whose names contain some text or, for those of PyTorch itself, equal it.
type rule struct {
	text string
	work func(name string, in *inputs) Work
}

// rules are those of operators that multiply no matrices. The first one whose text is in the name counts.
var rules = []rule{
	{"rotary_embedding", rope},
	{"embedding", unknown}, {"gather", unknown}, {"index", unknown}, // their shapes do not show how much of a table is read
	{"all_reduce", allReduce}, {"allreduce_rmsnorm", unknown},
	{"fused_add_rms", addNorm}, {"add_rmsnorm", addNorm}, {"rmsnorm2d_fwd_with_add", addNorm},
	{"rms_norm", norm}, {"rmsnorm", norm}, {"aten::layer_norm", layerNorm}, {"aten::native_layer_norm", layerNorm},
	{"silu_and_mul", gate}, {"gelu_and_mul", gate}, {"gelu_tanh_and_mul", gate},
	{"reshape_and_cache", writeKV}, {"store_cache", writeKV},
	{"per_token_group_quant", quantize}, {"per_token_quant", quantize}, {"scaled_fp8_quant", quantize}, {"per_tensor_quant", quantize},
	{"triton_poi_fused_", compiled}, {"triton_red_fused_", compiled}, {"triton_per_fused_", compiled},
	{"aten::copy_", func(_ string, in *inputs) Work { return Work{Bytes: in.bytes(0) + in.count(0)*sizeOf(in.Type(1))} }},
	{"aten::add_", inPlace}, {"aten::mul_", inPlace}, {"aten::div_", inPlace},
	{"aten::add", binary}, {"aten::mul", binary}, {"aten::div", binary}, {"aten::sub", binary},
	{"groupnorm", groupNorm}, {"aten::native_group_norm", groupNorm}, {"aten::linalg_vector_norm", reduce}, {"aten::threshold_backward", binary},
	{"aten::clamp_min_", unary}, {"aten::relu", unary}, {"aten::relu_", unary}, {"aten::exp", unary}, {"aten::sqrt", unary}, {"aten::cos", unary}, {"aten::sin", unary},
	{"aten::abs", unary}, {"aten::reciprocal", unary}, {"aten::cumsum", unary}, {"aten::clamp", unary},
	{"aten::silu", unary}, {"aten::gelu", unary}, {"aten::sigmoid", unary}, {"aten::rsqrt", unary}, {"aten::neg", unary}, {"aten::pow", unary}, {"aten::tanh", unary},
	{"aten::_softmax", unary}, {"aten::clamp_min", unary}, {"aten::clamp_max", unary},
	{"aten::mean", reduce}, {"aten::sum", reduce}, {"aten::amax", reduce}, {"aten::max", reduce}, {"aten::min", reduce}, {"aten::argmax", reduce},
}

// fits reports whether the rule is for an operator.
func (r *rule) fits(name string) bool {
	if strings.HasPrefix(r.text, "aten::") {
		return name == r.text
	}
	return strings.Contains(name, r.text)
}

// unknown returns the work of operators whose shapes do not say what they do.
func unknown(string, *inputs) Work { return Work{Bytes: math.NaN()} }

// norm divides the rows of its first input by their length. Some operators write the result to an
// input, and some return it: it is as large.
func norm(_ string, in *inputs) Work {
	n, c := in.count(0), in.width(0)
	return Work{FLOPs: n/c*(2*c+2) + 2*n, Bytes: 2*in.bytes(0) + c*sizeOf(in.Type(0))}
}

// addNorm adds the residual first: it reads two inputs, and writes two results.
func addNorm(name string, in *inputs) Work {
	w := norm(name, in)
	w.FLOPs += in.count(0)
	w.Bytes += 2 * in.bytes(0)
	return w
}

// layerNorm also subtracts the mean of rows, and reads a weight and a bias.
func layerNorm(_ string, in *inputs) Work {
	n, c := in.count(0), in.width(0)
	return Work{FLOPs: 5*n + 6*n/c, Bytes: 2*in.bytes(0) + 2*c*sizeOf(in.Type(0))}
}

// groupNorm normalizes groups of channels, and reads a weight and a bias of each channel.
func groupNorm(_ string, in *inputs) Work {
	n, channels := in.count(0), 0.0
	if d := in.Dims(0); len(d) > 1 {
		channels = float64(d[1])
	}
	return Work{FLOPs: 5 * n, Bytes: 2*in.bytes(0) + 2*channels*sizeOf(in.Type(0))}
}

// gate computes the activation of one half of its input, and multiplies it by the other one.
func gate(_ string, in *inputs) Work {
	n := in.count(0)
	if b := in.count(1); b > n {
		n = b
	}
	return Work{FLOPs: 5 * n / 2, Bytes: 1.5 * n * sizeOf(in.Type(0))}
}

// rope rotates queries and keys, which follow the positions, in place.
func rope(_ string, in *inputs) Work {
	n := in.count(1) + in.count(2)
	return Work{FLOPs: 3 * n, Bytes: 2 * n * sizeOf(in.Type(1))}
}

// writeKV reads keys and values, and writes them to the cache.
func writeKV(_ string, in *inputs) Work { return Work{Bytes: 2 * (in.bytes(0) + in.bytes(1))} }

// quantize reads numbers of 16 bits, or more, and writes as many of 8, with their scales. Both are among its inputs.
func quantize(_ string, in *inputs) Work {
	w, most := Work{}, 0.0
	for i := range in.dims {
		if in.Dims(i) == nil {
			continue
		}
		w.Bytes += in.bytes(i)
		if size := sizeOf(in.Type(i)); size > 1 {
			most = max(most, in.count(i))
		}
	}
	w.FLOPs = 2 * most
	return w
}

// compiled reads or writes each of its inputs once: kernels that torch.compile made have their results among them. One that is more than
// twice as large as any other is read and written in place, unless the kernel reduces or only fills it. The name does not show what is
// computed, as it lists each function once. If inputs are numbers of rows, they select some rows of a table, and the work is unknown.
func compiled(name string, in *inputs) Work {
	w := Work{FLOPs: math.NaN()}
	var largest, second, size float64
	for i, d := range in.dims {
		if in.Dims(i) == nil {
			continue
		}
		if typ := in.Type(i); len(d) == 1 && d[0] > 1 && (typ == "int" || typ == "long int") {
			return unknown(name, in)
		}
		w.Bytes += in.bytes(i)
		if n := in.count(i); n > largest {
			largest, second, size = n, largest, in.bytes(i)
		} else {
			second = max(second, n)
		}
	}
	if strings.HasPrefix(name, "triton_poi_") && 2*second < largest && !strings.Contains(name, "zeros") && !strings.Contains(name, "full") {
		w.Bytes += size
	}
	return w
}

// reduce reads all numbers of its input. Shapes do not show how many results there are.
func reduce(_ string, in *inputs) Work { return Work{FLOPs: in.count(0), Bytes: in.bytes(0)} }

// unary computes one number from each.
func unary(_ string, in *inputs) Work { return Work{FLOPs: in.count(0), Bytes: 2 * in.bytes(0)} }

// binary computes one number from two. An input that lacks a dimension of the result is repeated along it.
func binary(_ string, in *inputs) Work {
	a, b := in.count(0), in.count(1)
	size := sizeOf(in.Type(0))
	switch {
	case math.IsNaN(b): // one number for all
		return Work{FLOPs: a, Bytes: 2 * in.bytes(0)}
	case math.IsNaN(a):
		return Work{FLOPs: b, Bytes: 2 * in.bytes(1)}
	}
	n := results(in.Dims(0), in.Dims(1))
	return Work{FLOPs: n, Bytes: in.bytes(0) + in.bytes(1) + n*max(size, sizeOf(in.Type(1)))}
}

// results returns how many numbers two tensors have once they are broadcast to one shape.
func results(a, b []int64) float64 {
	n := 1.0
	for i := 1; i <= max(len(a), len(b)); i++ {
		x, y := int64(1), int64(1)
		if i <= len(a) {
			x = a[len(a)-i]
		}
		if i <= len(b) {
			y = b[len(b)-i]
		}
		n *= float64(max(x, y))
	}
	return n
}

// inPlace computes one number from two, in place of the first one.
func inPlace(_ string, in *inputs) Work {
	second := in.bytes(1)
	if math.IsNaN(second) {
		second = 0 // one number for all
	}
	return Work{FLOPs: in.count(0), Bytes: 2*in.bytes(0) + second}
}

// allReduce adds up a tensor over GPUs: each sends, and receives, the parts that others add up, and
// then the sums. The operator does not show the number of GPUs: if there are two, they send the least.
func allReduce(_ string, in *inputs) Work {
	for i := range in.dims {
		if in.Dims(i) != nil && in.count(i) > 1 {
			return Work{Bytes: 2 * in.bytes(i), Sent: in.bytes(i)}
		}
	}
	return Work{Bytes: math.NaN()}
}

// amongGPUs returns the work of an all-reduce over n GPUs: each sends 2 (n-1)/n of the tensor. w has
// what each of two GPUs sends: as much as the tensor.
func (w Work) amongGPUs(n int) Work {
	w.Sent *= 2 * float64(n-1) / float64(n)
	return w
}

// gpusOf returns over how many GPUs a kernel of vLLM's or SGLang's own all-reduce adds up, by its name:
// "cross_device_reduce_1stage<__nv_bfloat16, 4>". 0 is unknown.
func gpusOf(kernel string) int {
	_, rest, ok := strings.Cut(kernel, "cross_device_reduce_")
	if !ok {
		return 0
	}
	_, rest, _ = strings.Cut(rest, ", ")
	digits, _, _ := strings.Cut(rest, ">")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 2 {
		return 0
	}
	return n
}
