package profile

import (
	"fmt"
	"testing"

	"github.com/sgtrace/sgtrace/profile/kernelname"
)

func TestParseStep(t *testing.T) {
	for name, want := range map[string]string{
		"step[EXTEND bs=15 toks=15360]":                        "prefill 15, 15360 0",
		"step[DECODE bs=32]":                                   "decode 32, 0 32",
		"step[DECODE bs=32 c_sq=1 c_sk=2 g_sq=3 g_sk=4]":       "decode 32, 0 32",
		"step[MIXED bs=7 toks=900]":                            "other 7, -1 -1",
		"step[IDLE bs=0]":                                      "other 0, -1 -1",
		"step[TARGET_VERIFY bs=4]":                             "decode 4, -1 -1",
		"step[DRAFT_EXTEND bs=4]":                              "other 4, -1 -1",
		"step[DECODE]":                                         "decode -1, 0 -1",
		"scheduler.step 0 prefill bs=8":                        "prefill 8, -1 0",
		"scheduler.step 17 decode bs=32":                       "decode 32, 0 32",
		"scheduler.step 17":                                    "other -1, -1 -1",
		"scheduler.step":                                       "",
		"scheduler.step x":                                     "",
		"scheduler.run_batch":                                  "",
		"forward.decode":                                       "decode -1, -1 -1",
		"forward.extend":                                       "prefill -1, -1 -1",
		"forward.layer":                                        "",
		"execute_context_1(888_788544)_generation_0(0)":        "prefill 1, 888 0",
		"execute_context_0(0)_generation_64(64)":               "decode 64, 0 64",
		"execute_context_2(5)_generation_3(3)":                 "other 5, 5 3",
		"execute_context_0(0)_generation_0(0)":                 "other 0, 0 0",
		"execute_32_context_0(sq0sk0)_generation_32(sq32sk55)": "decode 32, 0 32",
		"execute_8192_context_9(sq8155sk8430sqsq74sqsk76)_generation_37(sq37sk34489)": "other 46, 8155 37",
		"execute_15360_context_15(sq15360)_generation_0(sq0)":                         "prefill 15, 15360 0",
		"execute_new_2_cached_0":                         "prefill 2, -1 -1",
		"execute_new_0_cached_64":                        "decode 64, -1 -1",
		"execute_new_1_cached_63":                        "other 64, -1 -1",
		"step[SPLIT_PREFILL bs=2]":                       "prefill 2, -1 0",
		"step[EXTEND bs=1 toks=x]":                       "prefill 1, -1 0",
		"step[MIXED bs=7 toks=]":                         "other 7, -1 -1",
		"execute_context_1()_generation_2(":              "other 3, -1 -1",
		"execute_context_0(0)_generation_4(sq12sk99)":    "decode 4, 0 12",
		"execute_context_1(99999999999)_generation_0(0)": "prefill 1, -1 0",
		"execute_new_1":                                  "",
		"execute_new_1_cached_x":                         "",
		"gpu_model_runner: forward":                      "other -1, -1 -1",
		"v2_gpu_model_runner: forward":                   "other -1, -1 -1",
		"gpu_model_runner: preprocess":                   "",
		"ProfilerStep#7":                                 "other -1, -1 -1",
		"ProfilerStep#":                                  "", "ProfilerStep": "", "step[": "", "step": "", "execute_model": "", "execute_context_1": "", "aten::mm": "", "": "",
		"execute_x_context_1(1)_generation_0(0)": "",
	} {
		label, ok := ParseStep(name)
		got := ""
		if ok {
			got = fmt.Sprintf("%s %d, %d %d", [...]string{"other", "prefill", "decode"}[label.Kind], label.Batch, label.Prefilled, label.Decoded)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestIsCommunication(t *testing.T) {
	for name, want := range map[string]bool{
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": true,
		"ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)":                  true,
		"ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)":                        true,
		"ncclSymkDevKernel_AllReduce_AGxLL_R_bf16_sum":                               true,
		"void mscclKernel_Sum_half_Simple_0(mscclDevCommInfo*)":                      true,
		"hccl::AllReduce":     true,
		"xccl::all_gather":    true,
		"oneapi::ccl::kernel": true,
		"void vllm::cross_device_reduce_1stage<__hip_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)":             true,
		"void sglang::cross_device_reduce_2stage<nv_bfloat16, 8, 512>(sglang::RankData*)":                          true,
		"void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<half>>(half const*, half*)":   true,
		"void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)":                                           true,
		"void deep_ep::internode_ll::combine<true, 7168, 9>(void*, void*)":                                         true,
		"void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*)":                                 true,
		"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<0, __nv_bfloat16, 8>()": true,
		"void tensorrt_llm::kernels::twoShotAllReduceKernel<half, 8>(AllReduceParams)":                             true,
		"multimem_one_shot_all_reduce_kernel":                                                                      true,
		"void one_shot_all_reduce_push_kernel<bf16>()":                                                             true,
		"nvshmemi_transfer_rma":                  true,
		"void mscclpp::allreduce_kernel<half>()": true,

		"void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>(int)":                   false,
		"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(at::native::ReduceOp<float>)": false,
		"Memcpy DtoH (Device -> Pinned)":                      false,
		"nvjet_tst_128x64_64x8_1x2_h_bz_TNT":                  false,
		"void flash::flash_fwd_splitkv_combine_kernel<>()":    false,
		"void moe::dev::routing::routingIndicesClusterKernel": false,
		"_moe_dispatch_gemm":                                  false,
		"":                                                    false,
	} {
		if got := kernelname.IsCommunication(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A kernel that prepares a dispatch is part of its cost, but does not wait for other ranks.
func TestMeetsOthers(t *testing.T) {
	for name, want := range map[string]bool{
		"void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)":           true,
		"void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*)": false,
		"_ZN7deep_ep9intranode8dispatchILi8ELi768ELi8192EEEvP4int4Pf":              true,
		"nvjet_tst_128x64_64x8_1x2_h_bz_TNT":                                       false,
	} {
		if got := kernelname.MeetsOthers(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
