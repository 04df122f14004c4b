package kernelname

import (
	"regexp"
	"strings"
	"testing"
)

// kernelNames has names of all kinds that the rules know, and some unknown ones.
var kernelNames = map[string]Class{
	"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)":                               ClassCommunication,
	"ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)":                                                ClassCommunication,
	"ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)":                                                      ClassCommunication,
	"ncclSymkDevKernel_AllReduce_AGxLL_R_bf16_sum":                                                             ClassCommunication,
	"ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)":                                          ClassCommunication,
	"void mscclKernel_Sum_half_Simple_0(mscclDevCommInfo*)":                                                    ClassCommunication,
	"void vllm::cross_device_reduce_1stage<__hip_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)":             ClassCommunication,
	"void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)":                                           ClassCommunication,
	"void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*)":                                 ClassCommunication,
	"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<0, __nv_bfloat16, 8>()": ClassCommunication,
	"void deep_ep::legacy::layout::get_dispatch_layout<256, 32, 8>(long const*, int*)":                         ClassCommunication,
	"void dpsk::ep::internode::combine<false, 8, __nv_bfloat16>(int4*)":                                        ClassCommunication,
	"void dpsk::ep::cuda::get_dispatch_layout<256, 32>(long const*)":                                           ClassCommunication,
	"void dpsk::grouped_gemm::cuda::utils::transpose<128>(char const*)":                                        ClassCompute,
	"void deep_ep::elastic::dispatch_impl<16, 8>(int4*)":                                                       ClassCommunication,
	"void hybrid_ep::combine_kernel<8>(hybrid_ep::combine_kernel_param_t)":                                     ClassCommunication,
	"void uccl::internode_ll::dispatch<true, false, 7168>(void*)":                                              ClassCommunication,
	"void tensorrt_llm::kernels::moe_alltoall::moeA2APrepareDispatchKernel(int*)":                              ClassCommunication,
	"void flashinfer::comm::pcie_ipc::push_oneshot_param_kernel<half, 2>(half*)":                               ClassCommunication,
	"EpDispatchIntraNodeKernel_bf16":                                                                           ClassCommunication,
	"a2a_combine_recv_kernel":                                                                                  ClassCommunication,
	"OneShotAll2allSdmaAsyncWaitKernel_u32":                                                                    ClassCommunication,
	"c10d::symmetric_memory::barrier_kernel(unsigned int**, int, int, int, unsigned long)":                     ClassCommunication,
	"void multimem_one_shot_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)":                              ClassCommunication,
	"void userbuffers_fp16_sum_inplace_gpu_rw<8>(int, int, int)":                                               ClassCommunication,
	"barrier_on_stream_kernel_threadgroup":                                                                     ClassCommunication,
	"barrier_all_intra_node_kernel":                                                                            ClassCommunication,
	"kernel_dispatch_token_intra_node":                                                                         ClassCommunication,
	"mega_kernel_dispatch_token_moe_grouped_gemm":                                                              ClassCompute,
	"kernel_fused_gemm_allreduce":                                                                              ClassCompute,
	"_attn_fwd":                                                                                                ClassCompute,
	"nvshmemi_transfer_rma":                                                                                    ClassCommunication,
	"void mscclpp::allreduce_kernel<half>()":                                                                   ClassCommunication,
	"void quickreduce::allreduce_prototype_twoshot<half>(half const*)":                                         ClassCommunication,
	"Memcpy DtoH (Device -> Pinned)":                                                                           ClassMemory,
	"Memset (Device)":                                                                                          ClassMemory,
	"[CUDA memcpy Host-to-Device]":                                                                             ClassMemory,
	"__amd_rocclr_copyBuffer":                                                                                  ClassMemory,
	"__amd_rocclr_fillBufferAligned":                                                                           ClassMemory,
	"nvjet_tst_128x64_64x8_1x2_h_bz_TNT":                                                                       ClassCompute,
	"void flash::flash_fwd_splitkv_combine_kernel<>()":                                                         ClassCompute,
	"kernel(int" + strings.Repeat(", int", 50) + ", nvshmem_team_t)":                                           ClassCompute, // too far into the name
	"": ClassCompute,
}

func TestDefaultClasses(t *testing.T) {
	classes := DefaultClasses()
	for name, want := range kernelNames {
		got, _ := classes.Of(name)
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if (got == ClassCommunication) != IsCommunication(name) {
			t.Errorf("%s: the rules and IsCommunication differ", name)
		}
	}
	for _, rule := range classes.Rules {
		if rule.Source == "" {
			t.Errorf("%v has no source", rule.pattern())
		}
		if rule.part == nil {
			continue
		}
		printed := regexp.MustCompile(rule.pattern())
		for name := range kernelNames {
			name = Demangle(name)
			name = name[:min(len(name), headBytes)]
			if head := newNameHead(name); head.matches(rule.part) != printed.MatchString(name) {
				t.Errorf("%s: %v and what it is printed for differ", name, printed)
			}
		}
	}
}

// mangledNames are names as compilers mangle them, of communication and compute kernels; a profiler
// truncated the last ones.
var mangledNames = map[string]Class{
	"_ZN7deep_ep9intranode8dispatchILi8ELi768ELi8192EEEvP4int4Pf":                             ClassCommunication,
	"_ZN4mori3moe25EpDispatchIntraNodeKernelI14__hip_bfloat16EEvNS0_14EpDispatchArgsE":        ClassCommunication,
	"_ZN10flashinfer4comm8pcie_ipc25push_oneshot_param_kernelI6__halfLi2EEEvPT_":              ClassCommunication,
	"_ZN4c10d16symmetric_memory14barrier_kernelEPPjiiim":                                      ClassCommunication,
	"_ZN5aiter26cross_device_reduce_1stageIDF16bLi8EEEvPNS_8RankDataENS_11RankSignalsE.kd":    ClassCommunication,
	"_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_":  ClassCompute,
	"_ZN7deep_ep12internode_ll7combineILb1ELi7168ELi9ENS_":                                    ClassCommunication,
	"_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassINS_27Rmsnorm2": ClassCompute,
}

func TestMangledNames(t *testing.T) {
	classes := DefaultClasses()
	for name, want := range mangledNames {
		if got, _ := classes.Of(name); got != want {
			t.Errorf("%s (%s): %v, want %v", name, Demangle(name), got, want)
		}
	}
	for name, want := range map[string]string{
		"_ZN5aiter26cross_device_reduce_1stageIDF16bLi8EEEvPNS_8RankDataE.kd": "aiter::cross_device_reduce_1stage<std::bfloat16_t, 8>",
		"_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rm":                    "ck_tile::kentry",
		"_Z6kernelPf": "kernel", "_Z": "_Z", "_Z99999x": "_Z99999x", "_ZN": "_ZN", "_Znot": "_Znot", "plain(int)": "plain(int)",
	} {
		if got := Demangle(name); strings.TrimPrefix(got, "void ") != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A kernel is unknown only if no rule matches. The rules of Holistic Trace Analysis match every kernel.
func TestUnknownKernels(t *testing.T) {
	for name, want := range map[string]bool{
		"ncclDevKernel_Generic": true, "nvjet_tst_128x64": true, "__amd_rocclr_copyBuffer": true, "void at::native::foo()": true,
		"my_own_thing": false, "": false, "kernel_17": false,
	} {
		if _, known := DefaultClasses().Of(name); known != want {
			t.Errorf("%s: known is %v", name, known)
		}
		if _, known := HTAClasses().Of(name); !known {
			t.Errorf("%s: a rule of Holistic Trace Analysis knows everything", name)
		}
	}
}

func TestCollectiveOfAnnotation(t *testing.T) {
	for name, want := range map[string]string{
		"nccl:all_to_all": "all_to_all", "nccl:_all_gather_base": "_all_gather_base", "nccl:send 0->1": "send",
		"NCCL:ncclAllReduce": "AllReduce", "nccl:": "", "NCCL:something": "", "step[DECODE bs=3]": "", "ncclAllReduce": "",
	} {
		if op, ok := CollectiveOfAnnotation(name); op != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", name, op, ok)
		}
	}
}

func TestWaitsOnHost(t *testing.T) {
	for name, want := range map[string]struct{ waits, meets bool }{
		"gloo:all_reduce": {true, true}, "gloo:all_gather": {true, true}, "gloo:barrier": {true, true}, "gloo:reduce_scatter": {true, true},
		"gloo:broadcast": {true, false}, "gloo:reduce": {true, false}, "gloo:gather": {true, false}, "gloo:send": {true, false},
		"gloo:": {}, "nccl:all_reduce": {}, "mpi:all_reduce": {}, "ucc:all_reduce": {}, "c10d::allreduce_": {}, "my gloo:all_reduce": {},
	} {
		if waits, meets := WaitsOnHost(name), MeetsOnHost(name); waits != want.waits || meets != want.meets {
			t.Errorf("%s: waits %v, meets %v", name, waits, meets)
		}
	}
}

// HTAClasses classifies kernels as Holistic Trace Analysis does with its regular expressions.
func TestHTAClasses(t *testing.T) {
	classes := HTAClasses()
	for name, want := range map[string]Class{
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": ClassCommunication,
		"void (anonymous namespace)::ncclKernel_x()":                                 ClassCommunication,
		"hipMemcpyAsync":                        ClassCommunication, // this rule comes before that for copies
		"Memcpy HtoD (Pinned -> Device)":        ClassMemory,
		"dma_request":                           ClassMemory,
		"Context Sync":                          ClassOther,
		"Stream Wait Event":                     ClassOther,
		"pe_exe":                                ClassOther,
		"void kernel_with_Memcpy_in_its_name()": ClassOther,
		"CopyDeviceToHost":                      ClassCompute, // a copy in ROCm
		"void vllm::cross_device_reduce_1stage<half, 8>()":               ClassCompute,
		"void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)": ClassCompute,
		"event_wait": ClassCompute,
	} {
		if got, _ := classes.Of(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestReadClasses(t *testing.T) {
	classes, err := ReadClasses(strings.NewReader("# ours\n\nCommunication\t^my_[ab] x\n  other   my_\nmemory gemm$\n"), "rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Class{
		"my_a x": ClassCommunication, "my_c": ClassOther, "big_gemm": ClassMemory, "gemms": ClassCompute, "ncclDevKernel_x": ClassCommunication,
	} {
		if got, _ := classes.Of(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for text, want := range map[string]string{
		"compute":        `rules.txt:1: "compute": want a class and a regular expression, such as 'communication my_allreduce'`,
		"# a\nfast .*":   `rules.txt:2: no class "fast"; there are other, compute, communication, memory`,
		"compute a(":     "rules.txt:1: error parsing regexp: missing closing ): `a(`",
		"memory (?!no)x": "rules.txt:1: error parsing regexp: invalid or unsupported Perl syntax: `(?!`",
	} {
		if _, err := ReadClasses(strings.NewReader(text), "rules.txt"); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// The printed table can be read again.
func TestClassesString(t *testing.T) {
	text := DefaultClasses().String()
	for _, want := range []string{"communication  (?i)^(?:void )?nccldevkernel\n", "# DeepEP (in the first 200 bytes)\n", "memory         ^Mem(?:cpy|set)\\b\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	again, err := ReadClasses(strings.NewReader(text), "again")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(DefaultClasses().Rules); len(again.Rules) != 2*n || !strings.Contains(again.String(), "^__amd_rocclr_") {
		t.Errorf("%d rules of %d", len(again.Rules), n)
	}
}
