package naming

import (
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// rk returns a rank with TP, DP, PP, EP, and Global, in the order of file names.
func rk(tp, dp, pp, ep int16, global int32) trace.Rank {
	return trace.Rank{TP: tp, PP: pp, DP: dp, EP: ep, Global: global}
}

func global(n int32) trace.Rank { return rk(-1, -1, -1, -1, n) }

func tp(n int16) trace.Rank { return rk(n, -1, -1, -1, -1) }

const (
	id   = "1758513624.3948054"
	idNs = 1758513624394805400
)

// The names have the formats in the producers' sources.
var names = []struct {
	path string
	want Name
}{
	// SGLang
	{id + "-TP-0.trace.json.gz", Name{Rank: tp(0), Run: id, Time: idNs, Producer: "sglang"}},
	{"run-7-" + id + "-TP-3-DP-1-PP-2-EP-4-EXTEND.trace.json.gz", Name{Rank: rk(3, 1, 2, 4, -1), Run: id, Time: idNs, Stage: "EXTEND", Producer: "sglang"}},
	{"bs-8-il-4096-1780539435.2203894-TP-0-DP-0-EP-0-DECODE.trace.json.gz", Name{Rank: rk(0, 0, -1, 0, -1), Run: "1780539435.2203894", Time: 1780539435220389400, Stage: "DECODE", Producer: "sglang"}},
	{id + "-TP-1-prefill.trace.json.gz", Name{Rank: tp(1), Run: id, Time: idNs, Stage: "prefill", Producer: "sglang"}},
	{id + "-TP-1-decode.trace.json.zst", Name{Rank: tp(1), Run: id, Time: idNs, Stage: "decode", Producer: "sglang"}},
	{id + "-TP-1-DECODE.part2.trace.json.gz", Name{Rank: tp(1), Run: id, Time: idNs, Stage: "DECODE", Part: 3, Producer: "sglang"}},
	{"1775078550.0-TP-0.trace.json.gz", Name{Rank: tp(0), Run: "1775078550.0", Time: 1775078550e9, Producer: "sglang"}},
	{"1775078550-TP-0.TRACE.JSON.GZ", Name{Rank: tp(0), Run: "1775078550", Time: 1775078550e9, Producer: "sglang"}},
	{"my-run-TP-2.trace.json", Name{Rank: tp(2), Run: "my-run", Producer: "sglang"}},
	{"TP-2.json", Name{Rank: tp(2), Producer: "sglang"}},
	{"tp-2-dp-1.json.gz", Name{Rank: rk(2, 1, -1, -1, -1), Producer: "sglang"}},
	// The prefix contains words of a rank.
	{"STEP-3-" + id + "-TP-1.trace.json.gz", Name{Rank: tp(1), Run: id, Time: idNs, Producer: "sglang"}},
	{"HTTP-2-" + id + "-TP-1.trace.json.gz", Name{Rank: tp(1), Run: id, Time: idNs, Producer: "sglang"}},
	{"qwen-TP-8-EP-8-" + id + "-TP-1-EP-1.trace.json.gz", Name{Rank: rk(1, -1, -1, 1, -1), Run: id, Time: idNs, Producer: "sglang"}},
	{"EXTEND-" + id + "-TP-0.trace.json.gz", Name{Rank: tp(0), Run: id, Time: idNs, Producer: "sglang"}},
	// Directories, downloads, temporary files.
	{"runs-TP-8/rank5/" + id + "-TP-1.trace.json (1).gz", Name{Rank: tp(1), Run: id, Time: idNs, Producer: "sglang"}},
	{`C:\runs-TP-8\` + id + "-TP-1.trace(2).json", Name{Rank: tp(1), Run: id, Time: idNs, Producer: "sglang"}},
	{"a/" + id + "-TP-1.trace.json.tmp", Name{Rank: tp(1), Run: id, Time: idNs, Producer: "sglang"}},
	// Ascend's profiler names folders.
	{"runs/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json", Name{Rank: global(0), Producer: "ascend"}},
	{"pretrain_rank_3_20250109084754123_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json.gz", Name{Rank: global(3), Run: "pretrain", Producer: "ascend"}},
	{`D:\node-7_3178231_20250109084754123_ascend_pt\trace_view.json`, Name{Rank: trace.NoRank, Host: "node-7", PID: 3178231, Producer: "ascend"}},
	{"lora-rank-16_ascend_pt/trace_view.json", Name{Rank: trace.NoRank}},
	{"rank0_ascend_pt/other.json", Name{Rank: trace.NoRank}},
	// SGLang writes these files beside them.
	{"merged-" + id + ".trace.json.gz", Name{Rank: trace.NoRank, Run: id, Time: idNs, Producer: "sglang", NotRank: true, What: "ranks merged into one file already"}},
	{"merged-TP-0.json", Name{Rank: trace.NoRank, Run: "TP-0", Producer: "sglang", NotRank: true, What: "ranks merged into one file already"}},
	{id + "-TP-3-memory.pickle", Name{Rank: tp(3), Run: id, Time: idNs, Producer: "sglang", NotRank: true, What: memorySnapshot}},
	{"pre-" + id + "-TP-3-memory-DECODE.pickle", Name{Rank: tp(3), Run: id, Time: idNs, Stage: "DECODE", Producer: "sglang", NotRank: true, What: memorySnapshot}},
	{"rpd-" + id + "-TP-0.trace.json.gz", Name{Rank: trace.NoRank, Run: id, Time: idNs, Producer: "rpd", NotRank: true, What: "RPD trace of all ranks of a node"}},
	{"cuda_graph_capture-DecodeCudaGraphRunner-TP-3.json.gz", Name{Rank: tp(3), Run: "DecodeCudaGraphRunner", Producer: "sglang", NotRank: true, What: GraphCapture}},
	{"DecodeCudaGraphRunner_bs_104_rank1.json.gz", Name{Rank: global(1), Run: "DecodeCudaGraphRunner", Producer: "sglang", NotRank: true, What: GraphCapture}},
	{"bs_2_rank0.json.gz", Name{Rank: global(0), Producer: "sglang", NotRank: true, What: GraphCapture}},
	{"encoder-rank2-" + id + ".trace.json", Name{Rank: global(2), Run: id, Time: idNs, Role: "encoder", Producer: "sglang"}},
	{"vit-rank2-" + id + ".trace.json.gz", Name{Rank: global(2), Run: id, Time: idNs, Role: "encoder", Producer: "sglang"}},
	{"profile_batch1_input256_output32_prefill.trace.json.gz", Name{Rank: trace.NoRank, Run: "profile_batch1_input256_output32", Stage: "prefill", Producer: "sglang"}},
	{"p-tp8_batch1_input256_output32_decode.trace.json.gz", Name{Rank: trace.NoRank, Run: "p-tp8_batch1_input256_output32", Stage: "decode", Producer: "sglang"}},
	{"p_vlm_batch1_input256_output32.trace.json.gz", Name{Rank: trace.NoRank, Run: "p_vlm_batch1_input256_output32", Producer: "sglang"}},
	{"0a1b2c-rank-1.trace.json.gz", Name{Rank: global(1), Run: "0a1b2c", Producer: "sglang"}},

	// vLLM
	{"dp0_pp0_tp0_dcp0_ep0_rank0.1787888523192512434.pt.trace.json.gz", Name{Rank: rk(0, 0, 0, 0, 0), Time: 1787888523192512434, Producer: "vllm"}},
	{"dp1_pp2_tp3_pcp0_ep4_rank5.json", Name{Rank: global(5)}}, // the order is unknown, so only the global rank counts
	{"dp1_pp2_pcp0_tp3_dcp0_ep4_rank5.1787888523192512434.pt.trace.json", Name{Rank: rk(3, 1, 2, 4, 5), Time: 1787888523192512434, Producer: "vllm"}},
	{"465585-decode_dp0_pp0_tp1_dcp0_ep1_rank1.1787888523192512434.pt.trace.json.gz", Name{Rank: rk(1, 0, 0, 1, 1), Run: "465585-decode", Time: 1787888523192512434, Producer: "vllm"}},
	{"ab12c-rank-7.1787888523192512434.pt.trace.json.gz", Name{Rank: global(7), Run: "ab12c", Time: 1787888523192512434, Producer: "vllm"}},
	{"rank3.1787888523192512434.pt.trace.json.gz", Name{Rank: global(3), Time: 1787888523192512434}},
	{"gpu-node-1_4711.async_llm.1787888523192512434.pt.trace.json.gz", Name{Rank: trace.NoRank, Host: "gpu-node-1", PID: 4711, Time: 1787888523192512434, Producer: "vllm", NotRank: true, What: "vLLM's front end (async_llm)"}},
	{"async_llm.1787888523192512434.pt.trace.json.gz", Name{Rank: trace.NoRank, Time: 1787888523192512434, Producer: "vllm", NotRank: true, What: "vLLM's front end (async_llm)"}},
	{"x_rank0.async_llm.json", Name{Rank: trace.NoRank, Producer: "vllm", NotRank: true, What: "vLLM's front end (async_llm)"}},
	{"my-async_llm-rank3.json", Name{Rank: trace.NoRank, Producer: "vllm", NotRank: true, What: "vLLM's front end (async_llm)"}},
	{"graph_capture_rank_0_encoder.1787888523192512434.pt.trace.json.gz", Name{Rank: trace.NoRank, Run: "graph_capture", Time: 1787888523192512434, Producer: "vllm", NotRank: true, What: GraphCapture}},
	{"graph_capture_rank0.json.gz", Name{Rank: trace.NoRank, Run: "graph_capture", Producer: "vllm", NotRank: true, What: GraphCapture}},

	// TensorRT-LLM, tensorboard, the trainers
	{"trace-rank-11.json", Name{Rank: global(11), Run: "trace", Producer: "trtllm"}},
	{"llama-tp8-rank-3.json.gz", Name{Rank: global(3), Run: "llama-tp8", Producer: "trtllm"}},
	{"node1.example.com_1234.1683204321123.pt.trace.json", Name{Rank: trace.NoRank, Host: "node1.example.com", PID: 1234, Time: 1683204321123e6, Producer: "tensorboard"}},
	{"job-worker-0_77.1787888523192512434.pt.trace.json.gz", Name{Rank: trace.NoRank, Host: "job-worker-0", PID: 77, Time: 1787888523192512434, Producer: "tensorboard"}},
	{"dp-3-ep-12_77_epoch4.1787888523192512434.pt.trace.json.gz", Name{Rank: trace.NoRank, Host: "dp-3-ep-12", PID: 77, Time: 1787888523192512434, Producer: "tensorboard"}},
	{"worker3.1683204321123.pt.trace.json", Name{Rank: global(3), Time: 1683204321123e6, Producer: "tensorboard"}},
	{"rank_3.1683204321123.pt.trace.json", Name{Rank: global(3), Time: 1683204321123e6}},
	{"step_3.1683204321123.pt.trace.json", Name{Rank: trace.NoRank, Time: 1683204321123e6}},
	{"iteration_2/r11-2026-3-9-14-5.1773065100123.pt.trace.json.gz", Name{Rank: global(11), Time: 1773065100123000000, Producer: "torchtune"}},
	{"r1-2026-3-9-14.1773065100123.pt.trace.json", Name{Rank: trace.NoRank, Time: 1773065100123000000}},
	{"rank12_trace.json.gz", Name{Rank: global(12), Producer: "torchtitan"}},
	{"iteration_10/rank0_trace.json", Name{Rank: global(0), Producer: "torchtitan"}},
	{"rank0_memory_snapshot.pickle", Name{Rank: global(0), NotRank: true, What: memorySnapshot}},
	{"rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", Name{Rank: global(34), Producer: "hta"}},
	{"sampled_rank-1.json.gz", Name{Rank: global(1)}},
	{"mtia_inference_rank_0.json.gz", Name{Rank: global(0)}},
	{"benchmark_result_924719_1679055439_trace.json.gz", Name{Rank: trace.NoRank, Time: 1679055439e9}},
	{"primus-megatron-exp[llama2-70b-run1]-rank[3].1787888523192512434.pt.trace.json.gz", Name{Rank: global(3), Run: "primus-megatron-exp[llama2-70b-run1]", Time: 1787888523192512434, Producer: "primus"}},
	{"megatron-exp[x]-rank[3].json", Name{Rank: global(3)}},
	{"rank-3.json.gz", Name{Rank: global(3)}},
	{"veomni_rank3_1712195495.pt.trace.json.gz", Name{Rank: global(3), Time: 1712195495e9}},
	{"libkineto_activities_1234.json", Name{Rank: trace.NoRank, PID: 1234, Producer: "kineto"}},

	// plain
	{"rank3.json", Name{Rank: global(3)}},
	{"RANK3.JSON.GZ", Name{Rank: global(3)}},
	{"trace_rank_3.json", Name{Rank: global(3)}},
	{"trace-rank=3.json", Name{Rank: global(3)}},
	{"global_rank3.json", Name{Rank: global(3)}},
	{"tp3.json", Name{Rank: tp(3)}},
	{"TP3-DP1.json.gz", Name{Rank: rk(3, 1, -1, -1, -1)}},
	{"trace_tp3_pp1.json", Name{Rank: rk(3, -1, 1, -1, -1)}},
	{"x_tp_rank_3.json", Name{Rank: tp(3)}},
	{"x-tp-rank-3-dp-rank-1.json", Name{Rank: rk(3, 1, -1, -1, -1)}},

	// No rank
	{"", Name{Rank: trace.NoRank}},
	{"-", Name{Rank: trace.NoRank}},
	{".json", Name{Rank: trace.NoRank}},
	{"trace.json", Name{Rank: trace.NoRank}},
	{"1016005.json.gz", Name{Rank: trace.NoRank}},
	{"STEP-3.json", Name{Rank: trace.NoRank}},
	{"HTTP-2.json", Name{Rank: trace.NoRank}},
	{"http2.json", Name{Rank: trace.NoRank}},
	{"frank3.json", Name{Rank: trace.NoRank}},
	{"rank3b.json", Name{Rank: trace.NoRank}},
	{"rank.json", Name{Rank: trace.NoRank}},
	{"llama-tp8.json", Name{Rank: trace.NoRank}},
	{"llama_tp8_ep8_rank2.json", Name{Rank: global(2)}},
	{"tp8_ep8_rank2.json", Name{Rank: global(2)}},
	{"local_rank3.json", Name{Rank: trace.NoRank}},
	{"node-rank-3.json", Name{Rank: trace.NoRank}},
	{"lora-rank-16.json", Name{Rank: trace.NoRank}},
	{"lora-rank-16-rank-3.json", Name{Rank: global(3), Run: "lora-rank-16", Producer: "trtllm"}},
	{"runs-TP-8/trace.json", Name{Rank: trace.NoRank}},
	{"rank3/trace.json", Name{Rank: trace.NoRank}},
	{"x-TP-99999.json", Name{Rank: trace.NoRank}},
	{"rank99999999999.json", Name{Rank: trace.NoRank}},
	{"merger-x.json", Name{Rank: trace.NoRank}},
}

func TestParseFile(t *testing.T) {
	for _, c := range names {
		if got := ParseFile(c.path); got != c.want {
			t.Errorf("%s\n got %+v\nwant %+v", c.path, got, c.want)
		}
	}
}
