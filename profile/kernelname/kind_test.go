package kernelname

import "testing"

// Names of real kernels and operators.
func TestKindOf(t *testing.T) {
	for name, want := range map[string]Kind{
		"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x128x64_warpgroupsize1x1x1":                KindGEMM,
		"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x4_tn_align8>":    KindGEMM,
		"nvjet_sm103_tst_16x64_64x16_4x1_v_bz_TNN":                                                     KindGEMM,
		"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256":                                     KindGEMM,
		"void cublasLt::splitKreduce_kernel<32, 16, int, float>":                                       KindGEMM,
		"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90>>":            KindAttention,
		"fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausal":                                       KindAttention,
		"kernel_unified_attention_3d":                                                                  KindAttention,
		"kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel_object_at__tensorptrbf16gmem": KindNorm,
		"triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0":                                           KindNorm,
		"triton_poi_fused_mul_silu_1":                                                                  KindActivation,
		"triton_poi_fused_constant_pad_nd_moe_forward_0":                                               KindElementwise,
		"void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)":                         KindRope,
		"void (anonymous namespace)::fused_rope_store_kernel<true, 128l, true, __nv_bfloat16>":         KindRope,
		"aclnnMm_MatMulCommon_MatMulV2":                                                                KindGEMM,
		"aclnnMm_TransData_TransData":                                                                  KindCopy, // the last word is what runs
		"aclnnAddmm_AddAiCore_Add":                                                                     KindElementwise,
		"aclnnMoeDistributeDispatch":                                                                   KindCommunication,
		"void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>":                                     KindKVWrite,
		"_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu":                                          KindExperts,
		"_topk_forward": KindRouting,
		"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<int>": KindCommunication,
		"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(vllm::RankData*)":               KindCommunication,
		"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long> >":      KindFill,
		"aten::addmm":              KindGEMM,
		"a_name_that_says_nothing": KindOther,
	} {
		if got := KindOf(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
