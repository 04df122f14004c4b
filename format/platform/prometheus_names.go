package platform

import (
	"maps"
	"strings"

	"github.com/sgtrace/sgtrace/series"
)

// A family is a producer's metric that reports know by another name.
type family struct {
	name   string // without the engine's prefix
	metric series.MetricID
	times  float64 // factor for its values
}

// engines are the producers of servers' metrics, by prefix.
var engines = []struct{ prefix, engine string }{{"sglang:", "SGLang"}, {"sglang_", "SGLang"}, {"vllm:", "vLLM"}, {"vllm_", "vLLM"}, {"dynamo_frontend_", "Dynamo"},
	{"llamacpp:", "llama.cpp"}, {"trtllm_", "TensorRT-LLM"}, {"lmdeploy:", "LMDeploy"}, {"tgi_", "TGI"}}

// families are the engines' metrics that reports know.
var families = []family{
	{"num_running_reqs", series.Running, 1},
	{"num_requests_running", series.Running, 1},
	{"num_queue_reqs", series.Queued, 1},
	{"num_requests_waiting", series.Queued, 1},
	{"token_usage", series.KVUsage, 100},
	{"kv_cache_usage_perc", series.KVUsage, 100},
	{"gpu_cache_usage_perc", series.KVUsage, 100},
	{"kv_cache_utilization", series.KVUsage, 100}, // TensorRT-LLM, and so on
	{"kv_cache_hit_rate", series.HitRate, 100},
	{"spec_decode_acceptance_length", series.AcceptLength, 1},
	{"requests_processing", series.Running, 1}, // llama.cpp, and so on
	{"requests_deferred", series.Queued, 1},
	{"kv_cache_usage_ratio", series.KVUsage, 100},
	{"batch_current_size", series.Running, 1}, // TGI, and so on
	{"queue_size", series.Queued, 1},
	{"request_duration_bucket", series.E2E, 1},
	{"request_queue_duration_bucket", series.QueueTime, 1},
	{"request_mean_time_per_token_duration_bucket", series.TPOT, 1},
	{"num_used_tokens", series.KVTokens, 1},
	{"swa_token_usage", series.SwaUsage, 100},
	{"mamba_usage", series.MambaUsage, 100},
	{"gen_throughput", series.Generation, 1},
	{"cache_hit_rate", series.HitRate, 100},
	{"num_prefill_bootstrap_queue_reqs", series.Bootstrapping, 1},
	{"num_prefill_prealloc_queue_reqs", series.Bootstrapping, 1}, // until 2026-05
	{"num_prefill_inflight_queue_reqs", series.Sending, 1},
	{"num_decode_prealloc_queue_reqs", series.Preallocated, 1},
	{"num_decode_transfer_queue_reqs", series.Receiving, 1},
	{"num_retracted_reqs", series.RetractedQueue, 1},
	{"kv_transfer_speed_gb_s", series.TransferSpeed, 1},
	{"spec_accept_length", series.AcceptLength, 1},
	{"spec_accept_rate", series.AcceptRate, 100},
	{"time_to_first_token_seconds_bucket", series.TTFT, 1},
	{"inter_token_latency_seconds_bucket", series.ITL, 1},
	{"time_per_output_token_seconds_bucket", series.TPOT, 1},
	{"request_time_per_output_token_seconds_bucket", series.TPOT, 1},
	{"e2e_request_latency_seconds_bucket", series.E2E, 1},
	{"request_duration_seconds_bucket", series.E2E, 1},
	{"queue_time_seconds_bucket", series.QueueTime, 1},
	{"waiting_request_latency_seconds_bucket", series.QueueTime, 1}, // until 2024-12
	{"request_queue_time_seconds_bucket", series.QueueTime, 1},
}

// labeled are metrics of Triton's backend for TensorRT-LLM whose meaning is in a label, with their usual name. Its "active"
// requests include those that wait.
var labeled = []struct{ name, label, is, plain string }{
	{"nv_trt_llm_request_metrics", "request_type", "waiting", "trtllm_num_requests_waiting"},
	{"nv_trt_llm_request_metrics", "request_type", "scheduled", "trtllm_num_requests_running"},
	{"nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", "fraction", "trtllm_kv_cache_utilization"},
}

// plainOf returns the usual name of a metric, and its labels about the place.
func plainOf(name string, labels map[string]string) (string, map[string]string) {
	if rest, ok := strings.CutPrefix(name, "ray_vllm"); ok && len(rest) > 1 { // renamed by Ray, "ray_vllm_num_requests_running"
		return "vllm:" + rest[1:], labels
	}
	for _, x := range labeled {
		if name == x.name && labels[x.label] == x.is {
			where := maps.Clone(labels)
			where["model_name"] = labels["model"]
			maps.DeleteFunc(where, func(key, _ string) bool { return key == x.label || key == "model" || key == "version" })
			return x.plain, where
		}
	}
	return name, labels
}

// devices are DCGM's metrics that reports know.
var devices = []family{
	{"DCGM_FI_DEV_SM_CLOCK", series.SMClock, 1},
	{"DCGM_FI_DEV_MEM_CLOCK", series.MemoryClock, 1},
	{"DCGM_FI_DEV_GPU_TEMP", series.GPUTemperature, 1},
	{"DCGM_FI_DEV_POWER_USAGE", series.Power, 1},
	{"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", series.Throttling, 1},
	{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", series.Throttling, 1},
	{"DCGM_FI_DEV_XID_ERRORS", series.Xid, 1},
	{"DCGM_FI_DEV_GPU_UTIL", series.GPUUtil, 1},
}

// A meaning is the meaning of a metric's name.
type meaning struct {
	engine string // "" is none
	metric series.MetricID
	times  float64
	known  bool
	bucket bool // of a histogram
	named  series.Metric
}

// meaningOf returns the meaning of a name. kind is its type, if the file has it.
func meaningOf(name, kind string) (m meaning) {
	m.times = 1
	bare := name
	for _, e := range engines {
		if rest, ok := strings.CutPrefix(name, e.prefix); ok {
			m.engine, bare = e.engine, rest
			break
		}
	}
	list := devices
	if m.engine != "" {
		list = families
	}
	for _, f := range list {
		if f.name == bare {
			m.metric, m.times, m.known = f.metric, f.times, true
			m.bucket = series.Metrics[f.metric].Kind == series.Bucket
			return m
		}
	}
	m.named = series.Metric{Name: name, Kind: series.Gauge, Doc: "as its producer names it"}
	switch {
	case strings.HasSuffix(name, "_bucket") && (kind == "" || kind == "histogram"):
		m.named.Kind, m.bucket = series.Bucket, true
	case kind == "counter" || kind == "" && strings.HasSuffix(name, "_total") || kind != "gauge" && (strings.HasSuffix(name, "_count") || strings.HasSuffix(name, "_sum")):
		m.named.Kind = series.Counter
	}
	return m
}
