package profile

import (
	"regexp"
	"strings"
)

// commSources tell whose kernels each of commRules is for.
var commSources = map[string]string{
	"nccldevkernel": "NCCL since 2.19, RCCL",
	"ncclkernel":    "NCCL before 2.19, RCCL",
	"ncclsym":       "NCCL since 2.27: symmetric memory",
	"nccl:":         "PyTorch: annotations that are drawn over kernels",
	"rccl":          "RCCL",
	"mscclkernel":   "RCCL with MSCCL",
	"mscclpp":       "MSCCL++",
	"hccl::":        "HCCL: MTIA, Gaudi, Ascend",
	"hcom_":         "HCCL of Ascend",
	"xccl::":        "oneCCL through XCCL",
	"oneccl":        "oneCCL",
	"oneapi::ccl":   "oneCCL",

	"cross_device_reduce_":     "custom all-reduce of vLLM and SGLang",
	"allreduce":                "TensorRT-LLM, FlashInfer, AMD quick all-reduce",
	"all_reduce":               "SGLang, PyTorch symmetric memory",
	"quickreduce":              "AMD quick all-reduce",
	"multimem_":                "PyTorch symmetric memory",
	"c10d::symmetric_memory::": "PyTorch symmetric memory",
	"flashinfer::comm::":       "FlashInfer",
	"userbuffers_":             "Transformer Engine, TensorRT-LLM",
	"reduce_scatter":           "kernels named after the collective",
	"reducescatter":            "kernels named after the collective",
	"all_gather":               "kernels named after the collective",
	"allgather":                "kernels named after the collective",
	"all_to_all":               "kernels named after the collective",
	"alltoall":                 "kernels named after the collective",
	"all2all":                  "kernels named after the collective",
	"two_shot_reduce":          "kernels named after the algorithm",
	"one_shot_reduce":          "kernels named after the algorithm",

	"deep_ep::":             "DeepEP",
	"hybrid_ep::":           "Hybrid-EP of NVIDIA, in DeepEP",
	"uccl::":                "UCCL-EP",
	"nixl_ep::":             "NIXL EP",
	"mooncake::":            "Mooncake EP",
	"moea2a":                "TensorRT-LLM, FlashInfer",
	"mori::":                "MORI of AMD",
	"epdispatch":            "MORI of AMD",
	"epcombine":             "MORI of AMD",
	"pplx::":                "pplx-kernels of Perplexity",
	"a2a_dispatch_":         "pplx-garden of Perplexity",
	"a2a_combine_":          "pplx-garden of Perplexity",
	"kernel_dispatch_token": "Triton-distributed",
	"kernel_combine_token":  "Triton-distributed",

	"nvshmem":              "NVSHMEM",
	"_on_stream_kernel":    "NVSHMEM: calls from the host",
	"rocshmem":             "rocSHMEM",
	"barrier_all_":         "MORI of AMD, Triton-distributed",
	"kernel_ring_reduce_":  "Triton-distributed",
	"_forward_push_":       "Triton-distributed",
	"_forward_pull_kernel": "Triton-distributed",
}

// A commHead is what [IsCommunication] looks at of a name.
type commHead struct{ name, start string }

// commBytes is how much of a name that is.
const commBytes = 200

func newCommHead(kernel string) commHead {
	name := strings.ToLower(kernel[:min(len(kernel), commBytes)])
	return commHead{name, strings.TrimPrefix(name, "void ")}
}

func (h *commHead) matches(r *commRule) bool {
	return r.start && strings.HasPrefix(h.start, r.text) || !r.start && strings.Contains(h.name, r.text)
}

// pattern returns the rule as a regular expression.
func (r *commRule) pattern() string {
	if r.start {
		return "(?i)^(?:void )?" + regexp.QuoteMeta(r.text)
	}
	return "(?i)" + regexp.QuoteMeta(r.text)
}

// DefaultName is what [DefaultClasses] are called.
const DefaultName = "default"

// DefaultClasses returns the rules that are used unless others are asked for: what
// communicates by [IsCommunication], what copies, and everything else computes.
// Copies that the profiler recorded as such are memory whatever they are called.
func DefaultClasses() *Classes {
	c := &Classes{Name: DefaultName}
	add := func(class Class, source string, comm *commRule, pattern string) {
		c.Rules = append(c.Rules, ClassRule{class, regexp.MustCompile(pattern), source, comm})
	}
	for _, text := range notComm {
		rule := commRule{text: text}
		add(ClassCompute, "prepares what is communicated, or does more than communicate", &rule, rule.pattern())
	}
	for i := range commRules {
		rule := &commRules[i]
		add(ClassCommunication, commSources[rule.text], rule, rule.pattern())
	}
	add(ClassMemory, "copies in the words of PyTorch's profiler", nil, `^Mem(?:cpy|set)\b`)
	add(ClassMemory, "copies in the words of nsys stats", nil, `^\[CUDA mem(?:cpy|set)`)
	add(ClassMemory, "copies by kernels of ROCm's runtime", nil, `^__amd_rocclr_(?:copy|fill)`)
	return c
}

// htaNotCompute are beginnings of what Holistic Trace Analysis does not take for
// computation, though neither for anything else. Some of them are calls of the
// host, which it looks at with the same rules.
var htaNotCompute = []string{
	`nccl`, `.*Memcpy`, `.*Memset`, `.*dma`, `.*Sync`, `Stream Wait Event`, `cuda.*LaunchKernel`, `runFunction`, `hip`,
	`job_exe`, `packet`, `pe_exe`, `cpum_exe_subgraph`, `hccl`, `collective_subgraph_execution`,
}

// HTAClasses returns the rules of Holistic Trace Analysis 0.6, for comparison with
// its tables. They know NCCL by its name and take every other way to communicate
// for computation.
func HTAClasses() *Classes {
	const source = "Holistic Trace Analysis 0.6, hta/common/types.py"
	rule := func(class Class, pattern string) ClassRule {
		return ClassRule{Class: class, Regexp: regexp.MustCompile(pattern), Source: source}
	}
	return &Classes{Name: "hta", Rules: []ClassRule{
		rule(ClassCommunication, `^(?:nccl|hip|hccl|.*ncclKernel)`),
		rule(ClassMemory, `^(?:(?:hip)?Memcpy|(?:hip)?Memset|dma)`),
		rule(ClassOther, `^(?:`+strings.Join(htaNotCompute, "|")+`)`),
	}}
}
