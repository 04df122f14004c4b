package torch

import "fmt"

// Streams of a GPU, as PyTorch and NCCL number them in a process of SGLang.
const (
	ComputeStream = 7
	CommStream    = 20
	CopyStream    = 24
)

// APIKind is a row of APITable.
type APIKind uint8

const (
	APILaunch APIKind = iota
	APILaunchEx
	APIDriverLaunch
	APIGraphLaunch
	APIMemcpy
	APIEventRecord
	APIStreamWait
	APIStreamSync
	APIMalloc
	APIModuleLoad
)

// APITable has the calls of CUDA, with their numbers in CUPTI (cupti_runtime_cbid.h, cupti_driver_cbid.h). Kineto starts a
// flow at those that launch something, and ends one at the others, too.
var APITable = [...]struct {
	In       Category
	name     string
	cbid     int
	launches bool
}{
	APILaunch:       {catRuntime, "cudaLaunchKernel", 211, true},
	APILaunchEx:     {catRuntime, "cudaLaunchKernelExC", 430, true},
	APIDriverLaunch: {CatDriver, "cuLaunchKernelEx", 652, true},
	APIGraphLaunch:  {catRuntime, "cudaGraphLaunch", 311, true},
	APIMemcpy:       {catRuntime, "cudaMemcpyAsync", 41, true},
	APIEventRecord:  {catRuntime, "cudaEventRecord", 135, false},
	APIStreamWait:   {catRuntime, "cudaStreamWaitEvent", 147, false},
	APIStreamSync:   {catRuntime, "cudaStreamSynchronize", 131, false},
	APIMalloc:       {catRuntime, "cudaMalloc", 20, false},
	APIModuleLoad:   {CatDriver, "cuModuleLoadData", 28, false},
}

// OpKind is a row of OpTable.
type OpKind uint8

const (
	opNorm OpKind = iota
	opQKV
	opRope
	opAttention
	opOut
	opGateUp
	opActivate
	opDown
	opHead
	opAllReduce
	OpAllGather
	opSoftmax
	opSample
	OpCopyIn
	OpCopyOut
	OpGraph
	OpSync
)

// OpRow is an operator that PyTorch runs for one operation of the model.
type OpRow struct {
	outer, inner string // nested operators; both may be empty
	annotation   string // of a collective
	module       string // nn.Module around them, numbered by layer
	frames       [2]string
	shapes       string // of the inputs; @ stands for the number of tokens
	innerShapes  string // of the inputs of inner, if they differ
	API          APIKind
	Stream       int
	GPU          Category // of what runs on the GPU
	Kernel       string
	Details      string // its arguments after the correlation
	share        int    // of the time of a segment, in percent
}

// halfLayers are the operators of the two halves of a layer, and of the head after the last one. Each ends in a collective.
var (
	attentionHalf = []OpKind{opNorm, opQKV, opRope, opAttention, opOut}
	mlpHalf       = []OpKind{opNorm, opGateUp, opActivate, opDown}
	modelHead     = []OpKind{opNorm, opHead}
)

// Arguments of kernels as CUPTI reports them.
const (
	SmallKernel   = `      "registers per thread": 40,      "shared memory": 16448,      "blocks per SM": 0.242424,      "warps per SM": 7.757576,      "grid": [32, 1, 1],      "block": [1024, 1, 1],      "est. achieved occupancy %": 12`
	GemmKernel    = `      "registers per thread": 168,      "shared memory": 213504,      "blocks per SM": 1.000000,      "warps per SM": 12.000000,      "grid": [132, 1, 1],      "block": [384, 1, 1],      "est. achieved occupancy %": 19`
	NCCLKernel    = `      "registers per thread": 96,      "shared memory": 0,      "blocks per SM": 0.181818,      "warps per SM": 3.090909,      "grid": [24, 1, 1],      "block": [544, 1, 1],      "est. achieved occupancy %": 5`
	WideKernel    = `      "registers per thread": 32,      "shared memory": 0,      "blocks per SM": 3.878788,      "warps per SM": 31.030302,      "grid": [512, 1, 1],      "block": [256, 1, 1],      "est. achieved occupancy %": 48`
	linearShapes  = `"Concrete Inputs": ["", "", ""], "Input type": ["c10::BFloat16", "c10::BFloat16", ""], "Input Strides": [[8192, 1], [8192, 1], []], "Input Dims": [[@, 8192], [10240, 8192], []], `
	productShapes = `"Concrete Inputs": ["", ""], "Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Strides": [[8192, 1], [1, 8192]], "Input Dims": [[@, 8192], [8192, 10240]], ` // of aten::mm in aten::linear
	hiddenShapes  = `"Concrete Inputs": ["", "", "", "1e-05"], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar"], "Input Strides": [[8192, 1], [8192, 1], [1], []], "Input Dims": [[@, 8192], [@, 8192], [8192], []], `
	tokenShapes   = `"Concrete Inputs": ["", "", "False"], "Input type": ["long int", "long int", "Scalar"], "Input Strides": [[1], [1], []], "Input Dims": [[@], [@], []], `
)

// linear is a product with the weights of a module, at a line of SGLang's linear.py.
func linear(module string, line, share int, kernel string) OpRow {
	return OpRow{
		outer: "aten::linear", inner: "aten::mm", module: "nn.Module: " + module, shapes: linearShapes, innerShapes: productShapes,
		frames: [2]string{fmt.Sprintf("sglang/srt/layers/linear.py(%d): forward", line), "<built-in function linear>"},
		API:    APIDriverLaunch, Stream: ComputeStream, GPU: CatKernel, Details: GemmKernel, share: share, Kernel: kernel,
	}
}

// OpTable is a Llama model on Hopper as SGLang runs it with FlashAttention 3.
var OpTable = [...]OpRow{
	opNorm: {
		outer: "sgl_kernel::fused_add_rmsnorm", module: "nn.Module: RMSNorm", shapes: hiddenShapes,
		frames: [2]string{"sglang/srt/layers/layernorm.py(77): forward_cuda", "sgl_kernel/elementwise.py(38): fused_add_rmsnorm"},
		API:    APILaunchEx, Stream: ComputeStream, GPU: CatKernel, Details: SmallKernel, share: 5,
		Kernel: "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, __nv_bfloat16*, __nv_bfloat16*, unsigned int, unsigned int, unsigned int, float, float)",
	},
	opQKV: linear("QKVParallelLinear", 400, 25, "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT"),
	opRope: {
		outer: "sgl_kernel::apply_rope_pos_ids_cos_sin_cache", module: "nn.Module: RotaryEmbedding", shapes: hiddenShapes,
		frames: [2]string{"sglang/srt/layers/rotary_embedding.py(205): forward_cuda", "sgl_kernel/elementwise.py(311): apply_rope_with_cos_sin_cache_inplace"},
		API:    APILaunch, Stream: ComputeStream, GPU: CatKernel, Details: WideKernel, share: 4,
		Kernel: "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheEnhancedKernel<false, true, 128u, 8u, 16u, __nv_bfloat16, long>(flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheEnhancedParams<__nv_bfloat16, long>)",
	},
	opAttention: {
		outer: "sgl_kernel::fwd", module: "nn.Module: RadixAttention", shapes: hiddenShapes,
		frames: [2]string{"sglang/srt/layers/attention/flashattention_backend.py(650): forward_extend", "sgl_kernel/flash_attn.py(40): flash_attn_with_kvcache"},
		API:    APILaunchEx, Stream: ComputeStream, GPU: CatKernel, Details: GemmKernel, share: 44,
		Kernel: "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1>>, cute::tuple<cute::C<128>, cute::C<128>, cute::C<128>>, 128, cutlass::bfloat16_t, float, cutlass::arch::Sm90, true, false, false, true, true, false, true>>>>(flash::FlashAttnFwdSm90::Params)",
	},
	opOut:    linear("RowParallelLinear", 1331, 22, "nvjet_tst_64x128_64x8_1x2_h_bz_splitK_TNT"),
	opGateUp: linear("MergedColumnParallelLinear", 400, 52, "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNT"),
	opActivate: {
		outer: "sgl_kernel::silu_and_mul", module: "nn.Module: SiluAndMul", shapes: hiddenShapes,
		frames: [2]string{"sglang/srt/layers/activation.py(70): forward_cuda", "sgl_kernel/elementwise.py(190): silu_and_mul"},
		API:    APILaunch, Stream: ComputeStream, GPU: CatKernel, Details: WideKernel, share: 6,
		Kernel: "void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &(silu(float const&))>(__nv_bfloat16*, __nv_bfloat16 const*, int)",
	},
	opDown: linear("RowParallelLinear", 1331, 37, "nvjet_tst_128x64_64x8_2x1_v_bz_splitK_TNT"),
	opHead: {
		outer: "aten::linear", inner: "aten::mm", module: "nn.Module: LogitsProcessor", shapes: linearShapes, innerShapes: productShapes,
		frames: [2]string{"sglang/srt/layers/logits_processor.py(610): _get_logits", "<built-in method matmul of type object at 0x7f6c2e1a5ac0>"},
		API:    APIDriverLaunch, Stream: ComputeStream, GPU: CatKernel, Details: GemmKernel, share: 95,
		Kernel: "nvjet_tst_192x128_64x5_1x2_h_bz_coopB_TNT",
	},
	opAllReduce: {
		outer: "c10d::allreduce_", inner: "record_param_comms", annotation: "nccl:all_reduce", module: "nn.Module: RowParallelLinear", shapes: hiddenShapes,
		frames: [2]string{"sglang/srt/distributed/parallel_state.py(520): all_reduce", "torch/distributed/distributed_c10d.py(2800): all_reduce"},
		API:    APILaunchEx, Stream: CommStream, GPU: CatKernel, Details: NCCLKernel,
		Kernel: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
	},
	OpAllGather: {
		outer: "c10d::_allgather_base_", inner: "record_param_comms", annotation: "nccl:_all_gather_base", module: "nn.Module: LogitsProcessor", shapes: hiddenShapes,
		frames: [2]string{"sglang/srt/distributed/parallel_state.py(640): all_gather", "torch/distributed/distributed_c10d.py(3750): all_gather_into_tensor"},
		API:    APILaunchEx, Stream: CommStream, GPU: CatKernel, Details: NCCLKernel,
		Kernel: "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
	},
	opSoftmax: {
		outer: "aten::softmax", inner: "aten::_softmax", module: "nn.Module: Sampler", shapes: tokenShapes,
		frames: [2]string{"sglang/srt/layers/sampler.py(95): forward", "<built-in method softmax of type object at 0x7f6c2e1a5ac0>"},
		API:    APILaunch, Stream: ComputeStream, GPU: CatKernel, Details: SmallKernel,
		Kernel: "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(float*, float const*, int)",
	},
	opSample: {
		outer: "sgl_kernel::top_k_top_p_sampling_from_probs", module: "nn.Module: Sampler", shapes: tokenShapes,
		frames: [2]string{"sglang/srt/layers/sampler.py(121): forward", "sgl_kernel/sampling.py(330): top_k_top_p_sampling_from_probs"},
		API:    APILaunch, Stream: ComputeStream, GPU: CatKernel, Details: SmallKernel,
		Kernel: "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u, (cub::BlockScanAlgorithm)2, (cub::BlockReduceAlgorithm)2, 4u, true, float, int>(float*, int*, float*, int*, int*, float, unsigned int, unsigned long, unsigned long)",
	},
	OpCopyIn: {
		outer: "aten::to", inner: "aten::copy_", shapes: tokenShapes,
		frames: [2]string{"sglang/srt/model_executor/forward_batch_info.py(320): init_new", "<built-in method to of Tensor object at 0x7f6a5c0b7d30>"},
		API:    APIMemcpy, Stream: CopyStream, GPU: CatMemcpy, Kernel: "Memcpy HtoD (Pinned -> Device)",
	},
	OpCopyOut: {
		outer: "aten::to", inner: "aten::copy_", shapes: tokenShapes,
		frames: [2]string{"sglang/srt/managers/scheduler.py(2411): copy_to_cpu", "<built-in method to of Tensor object at 0x7f6a5c0b7d30>"},
		API:    APIMemcpy, Stream: CopyStream, GPU: CatMemcpy, Kernel: "Memcpy DtoH (Device -> Pinned)",
	},
	OpGraph: {
		frames: [2]string{"sglang/srt/model_executor/cuda_graph_runner.py(790): replay", "torch/cuda/graphs.py(140): replay"},
		API:    APIGraphLaunch,
	},
	OpSync: {
		frames: [2]string{"torch/cuda/streams.py(230): synchronize", "<built-in method synchronize of Event object at 0x7f6a5c0b7e80>"},
		API:    APIStreamSync,
	},
}
