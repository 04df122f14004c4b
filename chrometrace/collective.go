package chrometrace

import (
	"math"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/internal/jsonscan"
	"github.com/sgtrace/sgtrace/trace"
)

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

// collective records that the event is one.
func (p *parser) collective(index, row int32, onGPU bool) {
	ev := &p.ev
	c := Collective{
		Event: index, Row: row, Time: ev.ts, Dur: ev.dur, Name: p.nameOf(ev).sym, OnGPU: onGPU,
		Seq: p.intArg(argSeq), In: p.intArg(argIn), Out: p.intArg(argOut),
		Op: p.symArg(argOp), Group: p.symArg(argGroup), Ranks: p.symArg(argRanks), Dtype: p.symArg(argDtype),
		GroupSize: -1,
	}
	if n := p.intArg(argGroupSize); n > 0 && n <= math.MaxInt32 {
		c.GroupSize = int32(n)
	}
	if p.found&(1<<argCommsID) != 0 {
		// A hash: if it is printed as a signed number, its bits are the same.
		text := string(p.got[argCommsID].text())
		if u, err := strconv.ParseUint(text, 10, 64); err == nil {
			c.CommsID = u
		} else if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			c.CommsID = uint64(v)
		}
	}
	p.out.collectives = append(p.out.collectives, c)
}

// intArg returns the argument with a role; -1 if there is none.
func (p *parser) intArg(r argRole) int64 {
	if p.found&(1<<r) != 0 {
		if n, ok := jsonscan.Int(p.got[r].text()); ok {
			return n
		}
	}
	return -1
}

// symArg returns the text of the argument with a role; 0 if there is none.
func (p *parser) symArg(r argRole) trace.Sym {
	if p.found&(1<<r) == 0 {
		return 0
	}
	return p.symbols.Intern(p.idText(p.got[r].raw))
}
