package profile

import "strings"

// A commRule recognizes communication kernels by their name.
type commRule struct {
	text  string // in lower case; anywhere in the name
	start bool   // at its beginning, behind "void " and the like
}

// commRules are needed where arguments do not tell: inside of CUDA graphs, which
// is all of decoding, and for everything that does not go through
// torch.distributed.
var commRules = []commRule{
	// The library that torch.distributed uses, one per vendor.
	{"nccldevkernel", true}, // NCCL since 2.19: ncclDevKernel_AllReduce_Sum_bf16_RING_LL; RCCL: ncclDevKernel_Generic
	{"ncclkernel", true},    // before: ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem); RCCL: ncclKernel
	{"ncclsym", true},       // over symmetric memory: ncclSymDevKernel_ of NCCL 2.27, ncclSymkDevKernel_ since 2.28
	{"nccl:", true},         // annotations that are drawn over kernels
	{"rccl", false},         // what RCCL's own kernels are called besides
	{"mscclkernel", true},   // RCCL with MSCCL: mscclKernel_Sum_half_LL
	{"mscclpp", false},      // MSCCL++, in namespaces
	{"hccl::", false},       // HCCL: MTIA, Gaudi, Ascend
	{"hcom_", true},         // HCCL of Ascend: hcom_allReduce_
	{"xccl::", false},       // oneCCL through XCCL
	{"oneccl", false},
	{"oneapi::ccl", false},

	// All-reduce of inference servers, over peer memory.
	{"cross_device_reduce_", false},     // SGLang, vLLM: vllm::cross_device_reduce_1stage, _2stage
	{"allreduce", false},                // TensorRT-LLM, FlashInfer: allreduce_fusion_kernel_oneshot_lamport,
	{"all_reduce", false},               // trtllm_allreduce...; SGLang one_shot_all_reduce; quick reduce: quickreduce::allreduce_prototype
	{"quickreduce", false},              // AMD quick all-reduce
	{"multimem_", false},                // torch symmetric memory: multimem_one_shot_all_reduce_kernel
	{"c10d::symmetric_memory::", false}, // its barrier_kernel, put_signal_kernel, wait_signal_kernel
	{"flashinfer::comm::", false},       // its all-reduce over PCIe, and all-to-all of sequences (ulysses)
	{"userbuffers_", false},             // Transformer Engine, TensorRT-LLM: userbuffers_fp16_sum_inplace_gpu_rw
	{"reduce_scatter", false},
	{"reducescatter", false},
	{"all_gather", false},
	{"allgather", false},
	{"all_to_all", false},
	{"alltoall", false},
	{"all2all", false}, // MORI: OneShotAll2allSdmaKernel; Triton-distributed: kernel_all2all_push_intra_node_nvl
	{"two_shot_reduce", false},
	{"one_shot_reduce", false},

	// Expert parallelism.
	{"deep_ep::", false},            // DeepEP: dispatch, combine, notify_dispatch in internode, intranode, internode_ll, elastic
	{"hybrid_ep::", false},          // its counterpart of NVIDIA: dispatch_kernel, combine_kernel
	{"uccl::", false},               // UCCL-EP: the names of DeepEP
	{"nixl_ep::", false},            // NIXL EP: the same
	{"mooncake::", false},           // Mooncake EP: the same
	{"moea2a", false},               // TensorRT-LLM, FlashInfer: moeA2ADispatchKernel
	{"mori::", false},               // MORI of AMD, in namespaces, and
	{"epdispatch", true},            // compiled on the spot: EpDispatchIntraNodeKernel_bf16
	{"epcombine", true},             // EpCombineIntraNodeKernel_bf16
	{"pplx::", false},               // Perplexity's all-to-all, the first and
	{"a2a_dispatch_", false},        // the second one: a2a_dispatch_send_kernel
	{"a2a_combine_", false},         // a2a_combine_recv_kernel
	{"kernel_dispatch_token", true}, // Triton-distributed
	{"kernel_combine_token", true},

	// Access to the memory of other devices, and what is built on it.
	{"nvshmem", false},           // NVSHMEM itself, and kernels that take its types
	{"_on_stream_kernel", false}, // its calls from the host: barrier_on_stream_kernel_threadgroup
	{"rocshmem", false},
	{"barrier_all_", false},        // MORI: mori_shmem_barrier_all_block; Triton-distributed: barrier_all_intra_node_kernel
	{"kernel_ring_reduce_", true},  // Triton-distributed: the second half of its reduce-scatter
	{"_forward_push_", true},       // its all-gather of low latency
	{"_forward_pull_kernel", true}, // the same
}

// notComm are parts of names that the rules above would take wrongly.
var notComm = []string{
	// Prepares what a dispatch sends, without sending: deep_ep::layout,
	// deep_ep::legacy::layout, uccl::layout.
	"get_dispatch_layout",
	// Multiplies matrices and communicates meanwhile: kernel_fused_gemm_allreduce of
	// Triton-distributed. Multiplying is what takes most of the time.
	"gemm",
}

// IsCommunication tells by its name whether a kernel communicates between
// devices. Copies from and to the host do not count.
func IsCommunication(kernel string) bool {
	// A signature goes on with types of parameters, which say little about the
	// kernel itself; 200 bytes reach behind every real name.
	name := strings.ToLower(kernel[:min(len(kernel), 200)])
	start := strings.TrimPrefix(name, "void ")
	for _, not := range notComm {
		if strings.Contains(name, not) {
			return false
		}
	}
	for _, rule := range commRules {
		if rule.start && strings.HasPrefix(start, rule.text) || !rule.start && strings.Contains(name, rule.text) {
			return true
		}
	}
	return false
}
