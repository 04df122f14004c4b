package profile

import "strings"

// A commRule recognises communication kernels by their name.
type commRule struct {
	text  string // in lower case; anywhere in the name
	start bool   // at its beginning, behind "void " and the like
}

// commRules are needed where arguments do not tell: inside of CUDA graphs, which
// is all of decoding, and for everything that does not go through
// torch.distributed.
var commRules = []commRule{
	// The library that torch.distributed uses, one per vendor.
	{"nccldevkernel", true},     // NCCL since 2.19: ncclDevKernel_AllReduce_Sum_bf16_RING_LL; RCCL: ncclDevKernel_Generic
	{"ncclkernel", true},        // before: ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem); RCCL: ncclKernel
	{"ncclsymkdevkernel", true}, // NCCL 2.27: symmetric memory
	{"nccl:", true},             // annotations that are drawn over kernels
	{"rccl", false},             // what RCCL's own kernels are called besides
	{"mscclkernel", true},       // RCCL with MSCCL: mscclKernel_Sum_half_LL
	{"mscclpp", false},          // MSCCL++, in namespaces
	{"hccl::", false},           // HCCL: MTIA, Gaudi, Ascend
	{"hcom_", true},             // HCCL of Ascend: hcom_allReduce_
	{"xccl::", false},           // oneCCL through XCCL
	{"oneccl", false},
	{"oneapi::ccl", false},

	// All-reduce of inference servers, over peer memory.
	{"cross_device_reduce_", false}, // SGLang, vLLM: vllm::cross_device_reduce_1stage, _2stage
	{"allreduce", false},            // TensorRT-LLM, FlashInfer: allreduce_fusion_kernel_oneshot_lamport,
	{"all_reduce", false},           // trtllm_allreduce...; SGLang one_shot_all_reduce; quick reduce: quickreduce::allreduce_prototype
	{"quickreduce", false},          // AMD quick all-reduce
	{"multimem_", false},            // torch symmetric memory: multimem_one_shot_all_reduce_kernel
	{"reduce_scatter", false},
	{"reducescatter", false},
	{"all_gather", false},
	{"allgather", false},
	{"all_to_all", false},
	{"alltoall", false},
	{"two_shot_reduce", false},
	{"one_shot_reduce", false},

	// Expert parallelism.
	{"deep_ep::", false}, // DeepEP: dispatch, combine, notify_dispatch in internode, intranode, internode_ll
	{"mori::", false},    // AMD's counterpart
	{"nvshmem", false},   // NVSHMEM itself, and kernels that take its types
	{"rocshmem", false},
	{"pplx::", false}, // Perplexity's all-to-all
}

// ranges of names that the rules above would take wrongly.
var notComm = []string{
	// Prepares what a dispatch sends, without sending.
	"deep_ep::layout",
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
