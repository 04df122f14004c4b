package profile

import "testing"

func TestBareName(t *testing.T) {
	for name, want := range map[string]string{
		"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, 1> >(int, at::native::FillFunctor<float>)": "vectorized_elementwise_kernel",
		"void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, at::detail::Array<char *, (int)1>>(int, T2, T3)":               "vectorized_elementwise_kernel",
		"void (anonymous namespace)::softmax_warp_forward<float, float, 10, true>(float*, float const*)":                                                       "softmax_warp_forward",
		"void <unnamed>::softmax_warp_forward<float, float, (int)10, (bool)1>(T2 *, const T1 *, int)":                                                          "softmax_warp_forward",
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)":                                                                           "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
		"ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn":                                                                                           "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn",
		"Memcpy HtoD (Pinned -> Device)": "[CUDA memcpy Host-to-Device]",
		"[CUDA memcpy Host-to-Device]":   "[CUDA memcpy Host-to-Device]",
		"Memset (Device)":                "[CUDA memset]",
		"cudaLaunchKernel":               "cudaLaunchKernel",
		"cudaLaunchKernel_v7000":         "cudaLaunchKernel",
		"cudaLaunchKernelExC_v11060":     "cudaLaunchKernelExC",
		"cuLaunchKernel_v2":              "cuLaunchKernel_v2",
		"":                               "",
		"<<<":                            "<<<",
	} {
		if got := BareName(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
