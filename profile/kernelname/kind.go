package kernelname

import "strings"

// A Kind is the part of a model that a kernel computes. A kernel that computes several has the kind of the
// largest: a norm that quantizes its result is a norm.
type Kind uint8

const (
	KindOther Kind = iota
	KindCommunication
	KindAttention
	KindKVWrite
	KindRope
	KindNorm
	KindExperts // matrix products of experts
	KindRouting // assigns tokens to experts, and gathers the results
	KindGEMM
	KindActivation
	KindQuantization
	KindSoftmax
	KindSampling
	KindEmbedding
	KindSort
	KindCopy
	KindFill
	KindReduction
	KindElementwise
	NumKinds
)

var kindNames = [NumKinds]string{"other", "communication", "attention", "KV write", "rope", "norm", "experts", "routing", "GEMM", "activation", "quantization", "softmax",
	"sampling", "embedding", "sort", "copy", "fill", "reduction", "elementwise"}

// String returns the name of the kind: "GEMM".
func (k Kind) String() string { return kindNames[k] }

// Varies reports whether the duration of such kernels depends on the current requests and on routing.
func (k Kind) Varies() bool {
	return k == KindCommunication || k == KindAttention || k == KindExperts || k == KindRouting
}

// A kindRule is a text in the names of kernels or operators of a kind.
type kindRule struct {
	text string
	kind Kind
}

// kindRules are tried in this order: the name of an attention kernel may also contain its library, "cutlass",
// and its input, "kvcache".
var kindRules = []kindRule{
	{"reshape_and_cache", KindKVWrite}, {"concat_and_cache", KindKVWrite}, {"set_kv_buffer", KindKVWrite}, {"set_mla_kv", KindKVWrite}, {"store_kv", KindKVWrite},
	{"store_cache", KindKVWrite}, {"appendpagedkv", KindKVWrite}, {"pakvcache", KindKVWrite}, {"write_kv", KindKVWrite}, {"kv_cache_write", KindKVWrite},
	{"rotary", KindRope}, {"rope", KindRope},
	{"flash", KindAttention}, {"fmha", KindAttention}, {"attention", KindAttention}, {"attn", KindAttention}, {"paged", KindAttention}, {"batchdecode", KindAttention},
	{"batchprefill", KindAttention}, {"reduce_segments", KindAttention}, {"sage_fwd", KindAttention}, {"merge_state", KindAttention}, {"splitkv", KindAttention},
	{"mla_", KindAttention}, {"fwd_grouped_kernel_stage", KindAttention}, {"fwd_kernel_stage", KindAttention},
	{"renorm", KindRouting}, {"normal_", KindOther}, {"norm", KindNorm},
	{"moe_sum", KindRouting}, {"moe_align", KindRouting}, {"moe_fused_gate", KindRouting}, {"topk", KindRouting}, {"routing", KindRouting}, {"expert_tokens", KindRouting},
	{"sort_expert", KindRouting}, {"bitmatrix", KindRouting}, {"finalize", KindRouting}, {"permute_rows", KindRouting}, {"expandinput", KindRouting},
	{"matmul_ogs", KindExperts}, {"fused_moe", KindExperts}, {"moe_gemm", KindExperts}, {"grouped_gemm", KindExperts}, {"group_gemm", KindExperts}, {"grouped_mm", KindExperts},
	{"m_grouped", KindExperts}, {"moe_forward", KindExperts}, {"moe_ck", KindExperts}, {"ck_moe", KindExperts}, {"moe_kernel", KindExperts}, {"moe_mxgemm", KindExperts},
	{"bmm_bfloat16", KindExperts}, {"bmm_e4m3", KindExperts}, {"bmm_e2m1", KindExperts}, {"bmm_mxe", KindExperts}, // of TensorRT-LLM
	{"silu", KindActivation}, {"gelu", KindActivation}, {"swiglu", KindActivation}, {"act_and_mul", KindActivation},
	{"gemm", KindGEMM}, {"cijk_", KindGEMM}, {"nvjet", KindGEMM}, {"cutlass", KindGEMM}, {"cublas", KindGEMM}, {"xmma", KindGEMM}, {"gemv", KindGEMM}, {"splitk", KindGEMM},
	{"matmul", KindGEMM}, {"marlin", KindGEMM}, {"scaled_mm", KindGEMM}, {"wmma", KindGEMM}, {"aten::mm", KindGEMM}, {"aten::addmm", KindGEMM}, {"aten::bmm", KindGEMM},
	{"aten::baddbmm", KindGEMM}, {"aten::linear", KindGEMM}, {"convolution", KindGEMM}, {"dot_kernel", KindGEMM}, {"_mm_", KindGEMM}, {"cudnn", KindGEMM}, {"conv2d", KindGEMM},
	{"relu", KindActivation}, {"quant", KindQuantization}, {"cast_fp8", KindQuantization}, {"scaled_fp8", KindQuantization}, {"to_fp8", KindQuantization},
	{"softmax", KindSoftmax}, {"argmax", KindSampling}, {"sampl", KindSampling}, {"top_p", KindSampling}, {"multinomial", KindSampling},
	{"embedding", KindEmbedding}, {"gather", KindEmbedding}, {"index_select", KindEmbedding},
	{"sort", KindSort}, {"radix", KindSort}, {"scan", KindSort},
	{"transdata", KindCopy}, {"aclnncast", KindCopy}, {"trans_cast", KindCopy}, // of CANN: into other layouts and types
	{"copy", KindCopy}, {"memcpy", KindCopy}, {"transpose", KindCopy}, {"concat", KindCopy}, {"catarray", KindCopy}, {"aten::cat", KindCopy}, {"contiguous", KindCopy},
	{"fill", KindFill}, {"memset", KindFill}, {"zero_", KindFill},
	{"reduce", KindReduction}, {"pool_", KindReduction}, {"average_pool", KindReduction}, {"maxpool", KindReduction}, {"avgpool", KindReduction},
	{"elementwise", KindElementwise}, {"multi_tensor_apply", KindElementwise}, {"subtensorop", KindElementwise}, {"residual", KindElementwise},
	{"aten::", KindElementwise}, {"aclnn", KindElementwise},
}

// compiledRules are for kernels compiled by Inductor, whose names list the fused operators, and also name
// operators that come after them.
var compiledRules = []kindRule{
	{"_mm_", KindGEMM}, {"rsqrt", KindNorm}, {"layer_norm", KindNorm}, {"rms_norm", KindNorm}, {"softmax", KindSoftmax},
	{"silu", KindActivation}, {"gelu", KindActivation}, {"sigmoid", KindActivation}, {"embedding", KindEmbedding},
	{"triton_tem", KindGEMM}, {"triton_red", KindReduction}, {"", KindElementwise},
}

// KindOf returns the kind of a kernel or an operator by its name.
func KindOf(name string) Kind {
	if IsCommunication(name) {
		return KindCommunication
	}
	head := strings.ToLower(kindHead(name))
	rules := kindRules
	if _, after, ok := strings.Cut(head, "triton_"); ok && strings.Contains(after, "fused") {
		rules = compiledRules
	}
	for i := range rules {
		if strings.Contains(head, rules[i].text) {
			return rules[i].kind
		}
	}
	return KindOther
}

// kindHead returns the part of a name that shows the kind: the rest of a signature is types.
func kindHead(name string) string {
	name = Demangle(name)
	if i := strings.LastIndexByte(name, '_'); i > 0 && strings.HasPrefix(name, "aclnn") { // an operator of CANN, and its kernel
		name = "aclnn" + name[i+1:]
	}
	return strings.ReplaceAll(name[:min(len(name), headBytes)], "flashinfer", "") // a library with more than attention
}
