package chrometrace

import (
	"fmt"
	"math"
	"testing"
)

func TestParseStep(t *testing.T) {
	for name, want := range map[string]string{
		"step[EXTEND bs=15 toks=15360]":                        "prefill 15",
		"step[DECODE bs=32]":                                   "decode 32",
		"step[DECODE bs=32 c_sq=1 c_sk=2 g_sq=3 g_sk=4]":       "decode 32",
		"step[MIXED bs=7 toks=900]":                            "other 7",
		"step[IDLE bs=0]":                                      "other 0",
		"step[TARGET_VERIFY bs=4]":                             "decode 4",
		"step[DRAFT_EXTEND bs=4]":                              "other 4",
		"step[DECODE]":                                         "decode -1",
		"execute_context_1(888_788544)_generation_0(0)":        "prefill 1",
		"execute_context_0(0)_generation_64(64)":               "decode 64",
		"execute_context_2(5)_generation_3(3)":                 "other 5",
		"execute_context_0(0)_generation_0(0)":                 "other 0",
		"execute_32_context_0(sq0sk0)_generation_32(sq32sk55)": "decode 32",
		"execute_8192_context_9(sq8155sk8430sqsq74sqsk76)_generation_37(sq37sk34489)": "other 46",
		"execute_15360_context_15(sq15360)_generation_0(sq0)":                         "prefill 15",
		"ProfilerStep#7": "other -1",
		"ProfilerStep#":  "", "ProfilerStep": "", "step[": "", "step": "", "execute_model": "", "execute_context_1": "", "aten::mm": "", "": "",
		"execute_x_context_1(1)_generation_0(0)": "",
	} {
		kind, batch, ok := ParseStep(name)
		got := ""
		if ok {
			got = fmt.Sprintf("%s %d", [...]string{"other", "prefill", "decode"}[kind], batch)
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
		"void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*)":                                 false,
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
		if got := IsCommunication(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCollectives(t *testing.T) {
	comm := func(args string) string {
		return `{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":7,` + abs + `,"dur":5,"args":{` + args + `}}`
	}
	r := parse(t, `[`+comm(`"device": 0, "correlation": 12, "Collective name": "allreduce", "In msg nelems": 8, "Out msg nelems": 9, "Group size": 8, "dtype": "BFloat16", "Process Group Name": "3", "Process Group Ranks": "[0, 1, 2]", "Seq": 42, "Comms Id": 17446744073709551557`)+`,`+
		comm(`"correlation": 13`)+`,`+comm(`"Comms Id": -5, "Seq": 0`)+`,
		{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,`+abs+`,"dur":1,"args":{"Collective name":"broadcast","Process Group Name":"default_pg"}},
		{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1,"tid":1,`+abs+`,"dur":1,"args":{"External id":5}},
		{"ph":"X","cat":"kernel","name":"void vllm::cross_device_reduce_1stage<half, 8>()","pid":0,"tid":7,`+abs+`,"dur":1,"args":{"correlation":1}},
		{"ph":"X","cat":"cpu_op","name":"vllm::all_reduce","pid":1,"tid":1,`+abs+`,"dur":1,"args":{}},
		{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,`+abs+`,"dur":1,"args":{"correlation":1}},
		{"ph":"X","cat":"collective_comm","name":"xccl::allreduce","pid":1,"tid":1,`+abs+`,"dur":1}]`)
	var got []string
	for _, c := range r.Collectives {
		got = append(got, fmt.Sprintf("%d %v id %d seq %d %s group %s %s %s %d/%d of %d", c.Event, c.OnGPU, c.CommsID, c.Seq, r.name(c.Op), r.name(c.Group), r.name(c.Ranks), r.name(c.Dtype), c.In, c.Out, c.GroupSize))
	}
	want := []string{
		"0 true id 17446744073709551557 seq 42 allreduce group 3 [0, 1, 2] BFloat16 8/9 of 8",
		"1 true id 0 seq -1  group    -1/-1 of -1",
		fmt.Sprintf("2 true id %d seq 0  group    -1/-1 of -1", uint64(math.MaxUint64-4)),
		"3 false id 0 seq -1 broadcast group default_pg   -1/-1 of -1",
		"5 true id 0 seq -1  group    -1/-1 of -1",
		"8 false id 0 seq -1  group    -1/-1 of -1",
	}
	if d := diff(got, want); d != "" {
		t.Error(d)
	}
	if len(r.Work) != 4 || r.Work[0].Correlation != 12 {
		t.Errorf("%+v", r.Work)
	}
}

func TestMicros(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "-0": 0, "1": 1000, "-1": -1000, "1.5": 1500, "0.001": 1, "0.0005": 1, "0.00049999": 0, "-0.0005": -1, "1712195495406752.797": 1712195495406752797,
		"1712195495406752.7974": 1712195495406752797, "1712195495406752.7975": 1712195495406752798, "9223372036854775.807": math.MaxInt64, "-9223372036854775.807": -math.MaxInt64,
		"1e3": 1000000, "1.5E-3": 2, "12e-4": 1, "1e-9999": 0, "0e9999": 0, "100000000000000000000e-10": 10000000000000, "0000000000000000000000001.5": 1500, "1.694039968933321e15": 1694039968933321000,
	} {
		if got, next, ok := micros([]byte(text+","), 0); got != want || !ok || next != len(text) {
			t.Errorf("%s: %d %d %v, want %d", text, got, next, ok, want)
		}
	}
	for _, text := range []string{"", "-", "x", ".5", "9223372036854775.808", "1e30", "1e99999999999", "99999999999999999999", "1e", "1e+", "null"} {
		if got, _, ok := micros([]byte(text+","), 0); ok {
			t.Errorf("%s: %d", text, got)
		}
	}
	for _, text := range []string{"1", "1.", "1.5", "1.5e", "1.5e-", "1.5e-3", "-", "1712195495406752.7974"} {
		if _, next, _ := micros([]byte(text), 0); next != len(text) {
			t.Errorf("%s: goes on behind %d", text, next)
		}
	}
}
