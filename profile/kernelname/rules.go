package kernelname

import (
	"regexp"
	"strings"
)

// A nameRule recognizes kernels by a part of their name.
type nameRule struct {
	text   string // in lower case; anywhere in the name
	start  bool   // at its beginning, after "void " and the like
	source string // origin of kernels with such names
}

// mixedRules are exceptions to commRules.
var mixedRules = []nameRule{
	// Multiplies matrices and communicates meanwhile: kernel_fused_gemm_allreduce of Triton-distributed. Most of
	// the time goes to the multiplication.
	{text: "gemm", source: "matrix products, also those that communicate meanwhile"},
	// The names of kernels fused by Inductor list all of their inputs, even a collective:
	// triton_poi_fused_add_all_reduce_mul_0.
	{text: "triton_poi_fused_", start: true, source: "PyTorch: compiled by Inductor"},
	{text: "triton_red_fused_", start: true, source: "PyTorch: compiled by Inductor"},
	{text: "triton_per_fused_", start: true, source: "PyTorch: compiled by Inductor"},
}

// commRules are needed where there are no arguments: inside of CUDA graphs, which is all of decoding, and for
// everything that does not go through torch.distributed.
var commRules = []nameRule{
	// The library that torch.distributed uses, one per vendor.
	{"nccldevkernel", true, "NCCL since 2.19, RCCL"},       // ncclDevKernel_AllReduce_Sum_bf16_RING_LL; RCCL: ncclDevKernel_Generic
	{"ncclkernel", true, "NCCL before 2.19, RCCL"},         // ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem); RCCL: ncclKernel
	{"ncclsym", true, "NCCL since 2.27: symmetric memory"}, // ncclSymDevKernel_ of NCCL 2.27, ncclSymkDevKernel_ since 2.28
	{"nccl:", true, "PyTorch: annotations that are drawn over kernels"},
	{"rccl", false, "RCCL"},
	{"mscclkernel", true, "RCCL with MSCCL"}, // mscclKernel_Sum_half_LL
	{"mscclpp", false, "MSCCL++"},            // in namespaces
	{"hccl::", false, "HCCL: MTIA, Gaudi, Ascend"},
	{"hcom_", true, "HCCL of Ascend"}, // hcom_allReduce_
	{"xccl::", false, "oneCCL through XCCL"},
	{"oneccl", false, "oneCCL"},
	{"oneapi::ccl", false, "oneCCL"},

	// All-reduce of inference servers, over peer memory.
	{"cross_device_", false, "custom all-reduce of vLLM, SGLang and aiter"}, // cross_device_reduce_1stage, reduce_scatter_cross_device_store
	{"allreduce", false, "TensorRT-LLM, FlashInfer, AMD quick all-reduce"},  // allreduce_fusion_kernel_oneshot_lamport, twoShotAllReduceKernel
	{"all_reduce", false, "SGLang, PyTorch symmetric memory"},
	{"quickreduce", false, "AMD quick all-reduce"},
	{"quick_reduce", false, "AMD quick all-reduce"},
	{"multimem_", false, "PyTorch symmetric memory"}, // multimem_one_shot_all_reduce_kernel
	{"symmetric_memory::", false, "PyTorch symmetric memory"},
	{"flashinfer::comm::", false, "FlashInfer"}, // its all-reduce over PCIe, and all-to-all of sequences (ulysses)
	{"userbuffers_", false, "Transformer Engine, TensorRT-LLM"},
	{"reduce_scatter", false, "kernels named after the collective"},
	{"reducescatter", false, "kernels named after the collective"},
	{"all_gather", false, "kernels named after the collective"},
	{"allgather", false, "kernels named after the collective"},
	{"all_to_all", false, "kernels named after the collective"},
	{"alltoall", false, "kernels named after the collective"},
	{"all2all", false, "kernels named after the collective"}, // MORI: OneShotAll2allSdmaKernel; Triton-distributed: kernel_all2all_push_intra_node_nvl
	{"two_shot_reduce", false, "kernels named after the algorithm"},
	{"one_shot_reduce", false, "kernels named after the algorithm"},

	// Expert parallelism. Preparations for a dispatch (get_dispatch_layout) are part of its cost.
	{"deep_ep::", false, "DeepEP"},                        // dispatch, combine, notify_dispatch in internode, intranode, internode_ll, elastic
	{"::ep::", false, "DeepEP as DeepSeek itself has it"}, // dpsk::ep::internode::combine
	{"hybrid_ep::", false, "Hybrid-EP of NVIDIA, in DeepEP"},
	{"uccl::", false, "UCCL-EP"},
	{"nixl_ep::", false, "NIXL EP"},
	{"mooncake::", false, "Mooncake EP"},
	{"moea2a", false, "TensorRT-LLM, FlashInfer"}, // moeA2ADispatchKernel
	{"mori::", false, "MORI of AMD"},
	{"epdispatch", false, "MORI of AMD"}, // compiled on the spot: EpDispatchIntraNodeKernel_bf16
	{"epcombine", false, "MORI of AMD"},
	{"moedistributedispatch", false, "CANN"},
	{"moedistributecombine", false, "CANN"},
	{"pplx::", false, "pplx-kernels of Perplexity"},
	{"a2a_dispatch_", false, "pplx-garden of Perplexity"}, // a2a_dispatch_send_kernel
	{"a2a_combine_", false, "pplx-garden of Perplexity"},
	{"kernel_dispatch_token", true, "Triton-distributed"},
	{"kernel_combine_token", true, "Triton-distributed"},

	// Access to the memory of other devices, and libraries built on it.
	{"nvshmem", false, "NVSHMEM"},                                // the library itself, and kernels that use its types
	{"_on_stream_kernel", false, "NVSHMEM: calls from the host"}, // barrier_on_stream_kernel_threadgroup
	{"rocshmem", false, "rocSHMEM"},
	{"barrier_all_", false, "MORI of AMD, Triton-distributed"}, // mori_shmem_barrier_all_block, barrier_all_intra_node_kernel
	{"kernel_ring_reduce_", true, "Triton-distributed"},        // the second half of its reduce-scatter
	{"_forward_push_", true, "Triton-distributed"},             // its all-gather of low latency
	{"_forward_pull_kernel", true, "Triton-distributed"},
}

// computeRules are names that computation usually has. They change no class, since kernels without a match
// count as computation, too: they only show which kernels are known.
var computeRules = []nameRule{
	{"cutlass", false, "matrix products"}, {"cublas", false, "matrix products"}, {"nvjet", false, "matrix products"},
	{"xmma", false, "matrix products"}, {"cijk_", false, "matrix products"}, {"tensile", false, "matrix products"},
	{"gemv", false, "matrix products"}, {"splitk", false, "matrix products"}, {"wgrad", false, "matrix products"},
	{"dgrad", false, "matrix products"}, {"matmul", false, "matrix products"}, {"deep_gemm", false, "matrix products"},
	{"marlin", false, "matrix products"}, {"_mm_", false, "matrix products"}, {"wmma", false, "matrix products"},

	{"at::", false, "PyTorch"}, {"at_cuda_detail", false, "PyTorch"}, {"triton_", false, "PyTorch: compiled by Inductor"},
	{"elementwise", false, "PyTorch"}, {"embedding", false, "PyTorch"}, {"cudnn", false, "cuDNN"}, {"miopen", false, "MIOpen"},
	{"cub::", false, "CUB"}, {"thrust::", false, "Thrust"}, {"rocprim", false, "rocPRIM"},
	{"conv", false, "convolutions, and conversions of types"}, {"winograd", false, "convolutions"},
	{"pool", false, "pooling"}, {"dropout", false, "training"}, {"adam", false, "training"}, {"optimizer", false, "training"},

	{"flash", false, "attention"}, {"fmha", false, "attention"}, {"attention", false, "attention"}, {"attn", false, "attention"},
	{"_fwd_kernel", false, "attention"}, {"mla", false, "attention"}, {"paged", false, "attention"}, {"batchdecode", false, "attention"},
	{"batchprefill", false, "attention"}, {"rotary", false, "attention"}, {"rope", false, "attention"}, {"kv_cache", false, "attention"},
	{"kvcache", false, "attention"}, {"kv_indices", false, "attention"}, {"reshape_and_cache", false, "attention"},

	{"norm", false, "layers of transformers"}, {"softmax", false, "layers of transformers"}, {"silu", false, "layers of transformers"},
	{"gelu", false, "layers of transformers"}, {"swiglu", false, "layers of transformers"}, {"act_and_mul", false, "layers of transformers"},
	{"relu", false, "layers of transformers"}, {"quant", false, "layers of transformers"}, {"fp8", false, "layers of transformers"},
	{"topk", false, "experts, and sampling"}, {"moe", false, "experts"}, {"expert", false, "experts"}, {"routing", false, "experts"},
	{"permute", false, "experts"}, {"sampl", false, "sampling"}, {"argmax", false, "sampling"}, {"top_p", false, "sampling"},
	{"mamba", false, "state-space models"}, {"selective_scan", false, "state-space models"}, {"chunk_", false, "linear attention"},

	{"reduce", false, "reductions within a device"}, {"transpose", false, "layouts"}, {"gather", false, "layouts"},
	{"scatter", false, "layouts"}, {"concat", false, "layouts"}, {"index", false, "layouts"}, {"cast", false, "conversions of types"},
	{"fill", false, "layouts"}, {"sort", false, "sorting"}, {"scan", false, "sorting"}, {"rand", false, "random numbers"},
	{"philox", false, "random numbers"}, {"fft", false, "transforms"},
}

// A nameHead is the part of a name that nameRules match: the rest of a signature is parameter types, which say
// little about the kernel itself.
type nameHead struct{ name, start string }

// headBytes is the length of that part. It is longer than every real name.
const headBytes = 200

// newNameHead returns the head of a demangled name.
func newNameHead(kernel string) nameHead {
	name := strings.ToLower(kernel[:min(len(kernel), headBytes)])
	return nameHead{name, strings.TrimPrefix(name, "void ")}
}

func (h *nameHead) matches(r *nameRule) bool {
	return r.start && strings.HasPrefix(h.start, r.text) || !r.start && strings.Contains(h.name, r.text)
}

// matchesAny reports whether one of the rules matches.
func (h *nameHead) matchesAny(rules []nameRule) bool {
	for i := range rules {
		if h.matches(&rules[i]) {
			return true
		}
	}
	return false
}

// pattern returns the rule as a regular expression.
func (r *nameRule) pattern() string {
	if r.start {
		return "(?i)^(?:void )?" + regexp.QuoteMeta(r.text)
	}
	return "(?i)" + regexp.QuoteMeta(r.text)
}

// IsCommunication reports whether a kernel communicates between devices, by its name, mangled or not. Copies
// from and to the host do not count.
func IsCommunication(kernel string) bool {
	head := newNameHead(Demangle(kernel))
	return !head.matchesAny(mixedRules) && head.matchesAny(commRules)
}

// MeetsOthers reports whether a kernel, by its name, is one rank's part in something that several ranks do
// together. Communication is, except for preparations.
func MeetsOthers(kernel string) bool {
	return IsCommunication(kernel) && !strings.Contains(kernel, "get_dispatch_layout")
}

// WaitsOnHost reports whether an annotation of a thread, by its name, is one rank's part in a collective of
// hosts, in which the thread itself waits for other ranks: "gloo:all_reduce". In "nccl:all_reduce", a thread
// only requests one.
func WaitsOnHost(name string) bool {
	return strings.HasPrefix(name, "gloo:") && len(name) > len("gloo:")
}

// MeetsOnHost reports whether hosts wait for each other in an annotation, by its name. In a broadcast they do
// not: who waits for whom depends on the root.
func MeetsOnHost(name string) bool {
	return WaitsOnHost(name) && (strings.Contains(name, "all_") || strings.Contains(name, "barrier") || strings.Contains(name, "reduce_scatter"))
}

// CollectiveOfAnnotation returns the collective requested by the calls in an annotation with the given name:
// "all_to_all" for "nccl:all_to_all", which PyTorch's profiler records, and "AllReduce" for
// "NCCL:ncclAllReduce", an NCCL range of Nsight Systems. ok is false if there is none.
func CollectiveOfAnnotation(name string) (op string, ok bool) {
	for _, prefix := range [...]string{"nccl:", "NCCL:nccl", "rccl:", "xccl:", "hccl:"} {
		if op, ok := strings.CutPrefix(name, prefix); ok && op != "" {
			op, _, _ = strings.Cut(op, " ") // "nccl:send 0->1"
			return op, true
		}
	}
	return "", false
}
