package matching

import "testing"

func TestKindOf(t *testing.T) {
	for name, want := range map[string]Kind{
		"allreduce": KindSync, "_allgather_base": KindSync, "all_to_allv": KindSync, "_reduce_scatter_base": KindSync,
		"broadcast": KindRooted, "reduce": KindRooted, "send": KindSend, "recv": KindRecv, "barrier": KindSync,
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long)":               KindSync,
		"ncclKernel_ReduceScatter_RING_LL_Sum_half(ncclDevComm*)":                             KindSync,
		"ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymkDevWorkArgs4K)":             KindSync,
		"ncclSymDevKernel_AllGather_LLMC(ncclSymDevArgs)":                                     KindSync,
		"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)":                            KindRooted,
		"ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)":                           KindUnknown,
		"void sglang::cross_device_reduce_1stage<__nv_bfloat16, 8>(sglang::RankData*)":        KindSync,
		"void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, float*, int*, long*)": KindRooted,
		"void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)":                      KindMeet,
		"void dpsk::ep::internode::combine<false, 8, __nv_bfloat16>(int4*)":                   KindMeet,
		"void dpsk::ep::internode::cached_notify<false>(void**)":                              KindMeet,
		"mori::moe::EpDispatchIntraNodeKernel":                                                KindMeet,
		"EpDispatchInterNodeV1KernelLowLatency_bf16":                                          KindRooted,
		"void multimem_one_shot_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)":         KindSync,
		"void tensorrt_llm::kernels::twoShotAllReduceKernel<half, 8>(AllReduceParams)":        KindSync,
		"void quickreduce::allreduce_prototype_twoshot<half>(half const*)":                    KindSync,
		"aiter::reduce_scatter_cross_device_store<std::bfloat16_t, 8>":                        KindSync,
		"flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport":        KindSync,
		"mori_shmem_barrier_all_block":                                                        KindSync,
		"c10d::symmetric_memory::wait_signal_kernel":                                          KindUnknown,
		"void at::native::reduce_kernel<512, 1>(at::native::ReduceOp<float>)":                 KindRooted,
	} {
		if got := kindOf(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
