// Package counted knows the counters and gauges with which servers, gateways, and schedulers say what they answered, refused, or
// gave up, and which servers get no requests. Their values become series and events that no longer depend on the producer.
package counted

import "strings"

// A class is how a request ended, for whoever runs the servers. What its client did wrong is fine.
type class uint8

const (
	fine class = iota
	failed
	refused
)

// A part is what a counter counts of the requests of its group.
type part uint8

const (
	each  part = iota // each of them once, with how it ended
	total             // all of them, whose failures another counter has
	bad               // only those that did not succeed, which another counter has, too
)

// A counter is a counter of requests, or of their answers. Its name has no "ray_" and no "_total". Labels say how a request ended: the first that is set
// counts. Who are labels that name the responder; without any, it is the server that was scraped.
type counter struct {
	name   string
	labels []string
	who    []string
	group  string // of counters of the same requests; "" is the counter alone
	part   part
}

// counters are those of smg, Traefik, ingress-nginx, Envoy, Istio, HAProxy, Kong, APISIX, Knative (KServe), of any server with
// prometheus-fastapi-instrumentator, of Dynamo, SGLang, vLLM, TensorRT-LLM, LMDeploy, TGI, TEI, Triton, Ray Serve, the gateway API's inference extension
// (llm-d), and LiteLLM. Ray Serve's replicas count a request either as an error or as a request.
var counters = []counter{
	{name: "smg_http_responses", labels: []string{"status_code"}},
	{name: "traefik_service_requests", labels: []string{"code"}, who: []string{"exported_service", "service"}},
	{name: "nginx_ingress_controller_requests", labels: []string{"status"}, who: []string{"exported_service", "service", "ingress"}},
	{name: "envoy_cluster_upstream_rq_xx", labels: []string{"envoy_response_code_class"}, who: []string{"envoy_cluster_name"}},
	{name: "istio_requests", labels: []string{"response_code"}, who: []string{"destination_workload", "destination_service_name"}},
	{name: "haproxy_server_http_responses", labels: []string{"code"}, who: []string{"server"}},
	{name: "kong_http_requests", labels: []string{"code"}, who: []string{"service"}},
	{name: "apisix_http_status", labels: []string{"code"}, who: []string{"matched_host", "route"}},
	{name: "revision_request_count", labels: []string{"response_code", "response_code_class"}, who: []string{"revision_name"}},
	{name: "http_requests", labels: []string{"status"}},
	{name: "sglang:http_responses", labels: []string{"status_code"}},
	{name: "dynamo_frontend_requests", labels: []string{"error_type", "status"}},
	{name: "dynamo_component_requests", who: []string{"dynamo_component"}, group: "dynamo_component", part: total},
	{name: "dynamo_component_errors", labels: []string{"error_type"}, who: []string{"dynamo_component"}, group: "dynamo_component", part: bad},
	{name: "vllm:request_success", labels: []string{"finished_reason"}},
	{name: "trtllm_request_success", labels: []string{"finished_reason"}, group: "trtllm"},
	{name: "trtllm_request_error", labels: []string{"error_type"}, group: "trtllm", part: bad},
	{name: "lmdeploy:num_requests_succeeded", group: "lmdeploy"},
	{name: "lmdeploy:num_requests_failed", group: "lmdeploy", part: bad},
	{name: "tgi_request_count", group: "tgi", part: total},
	{name: "tgi_request_failure", labels: []string{"err"}, group: "tgi", part: bad},
	{name: "te_request_count", group: "te", part: total},
	{name: "te_request_failure", labels: []string{"err"}, group: "te", part: bad},
	{name: "nv_inference_request_success", group: "nv"},
	{name: "nv_inference_request_failure", labels: []string{"reason"}, group: "nv", part: bad},
	{name: "serve_num_http_requests", group: "serve http", part: total},
	{name: "serve_num_http_error_requests", labels: []string{"error_code"}, group: "serve http", part: bad},
	{name: "serve_deployment_request_counter", who: []string{"deployment"}, group: "serve"},
	{name: "serve_deployment_error_counter", who: []string{"deployment"}, group: "serve", part: bad},
	{name: "inference_objective_request", group: "objective", part: total},
	{name: "inference_objective_request_error", labels: []string{"error_code"}, group: "objective", part: bad},
	{name: "inference_model_request", group: "model", part: total},
	{name: "inference_model_request_error", labels: []string{"error_code"}, group: "model", part: bad},
	{name: "litellm_proxy_total_requests_metric", group: "litellm", part: total},
	{name: "litellm_proxy_failed_requests_metric", labels: []string{"exception_status"}, group: "litellm", part: bad},
}

// apart are groups in which the counter of bad requests has requests that no other counter has.
var apart = map[string]bool{"trtllm": true, "lmdeploy": true, "nv": true, "serve": true}

// bare returns the name of a counter without what exporters put around it.
func bare(name string) string {
	return strings.TrimSuffix(strings.TrimPrefix(name, "ray_"), "_total")
}

// words are how producers without HTTP codes call what happened to a request, in lower case.
var words = map[string]class{
	"error": failed, "internal": failed, "timeout": failed, "other": failed, "backend": failed, "serviceunavailable": failed,
	"overload": refused, "overloaded": refused, "rejected": refused, "inferencepoolresourceexhausted": refused,
	"success": fine, "stop": fine, "length": fine, "abort": fine, "repetition": fine, "validation": fine, "not_found": fine, "not_implemented": fine,
	"badrequest": fine, "badconfiguration": fine, "modelnotfound": fine, "template": fine, "tool_error": fine,
}

// classOf returns how a request ended, by the label of a counter: a code, its first digit, or a word.
func classOf(text string, of part) class {
	digit := len(text) == 1 || len(text) == 3
	switch is, ok := words[strings.ToLower(text)]; {
	case ok:
		return is
	case strings.HasPrefix(strings.ToLower(text), "cancel"): // in both spellings
		return fine
	case text == "429":
		return refused
	case digit && text[0] == '5', of == bad && !(digit && text[0] >= '1' && text[0] <= '4'):
		return failed
	}
	return fine
}

// mishaps are counters of what happens to requests and servers, with words for one, and the labels that name whom it happens to. A mishap that an
// HTTP status follows from is evidence for it.
var mishaps = []struct {
	name, with, one, many string
	who                   []string
	once                  bool // growth is reported elsewhere
}{
	{"envoy_cluster_upstream_rq_timeout", "", "request that timed out", "requests that timed out", []string{"envoy_cluster_name"}, false},
	{"envoy_cluster_upstream_rq_pending_overflow", "", "request that its circuit breaker turned away", "requests that its circuit breaker turned away", []string{"envoy_cluster_name"}, false},
	{"envoy_cluster_upstream_cx_connect_fail", "", "connection that failed", "connections that failed", []string{"envoy_cluster_name"}, false},
	{"envoy_cluster_upstream_cx_none_healthy", "", "request for which no server was healthy", "requests for which no server was healthy", []string{"envoy_cluster_name"}, false},
	{"dynamo_frontend_model_migration", "", "request that moved to another worker because its own went away", "requests that moved to another worker because theirs went away", nil, false},
	{"litellm_deployment_failure_responses", "", "failed answer", "failed answers", []string{"api_base", "litellm_model_name"}, false},
	{"tgi_batch_inference_failure", "", "batch that failed", "batches that failed", nil, false},
	{"inference_extension_scheduler_attempts", "status=failure", "request for which no server was found", "requests for which no server was found", nil, false},
	{"smg_worker_retries_exhausted", "", "request that failed after all retries", "requests that failed after all retries", nil, false},
	{"sgl_router_retries_exhausted", "", "request that failed after all retries", "requests that failed after all retries", nil, false},
	{"container_oom_events", "", "time that it ran out of memory", "times that it ran out of memory", []string{"pod"}, false},
	{"node_vmstat_oom_kill", "", "process killed because memory ran out", "processes killed because memory ran out", nil, true},
	{"node_infiniband_link_downed", "", "time that an InfiniBand link went down", "times that an InfiniBand link went down", nil, true},
}

// devices are counters and gauges of GPUs that are 0 on sound ones, of DCGM's exporter and of AMD's. In says, {gpu} is the number of the GPU, and {n} how many.
var devices = []struct{ name, says string }{
	{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "memory of GPU {gpu} has had {n} since its driver was loaded"},
	{"DCGM_FI_DEV_ROW_REMAP_FAILURE", "memory of GPU {gpu} has a bad row that it cannot replace: the GPU needs repair"},
	{"DCGM_FI_DEV_ROW_REMAP_PENDING", "memory of GPU {gpu} has a bad row, which a reset replaces"},
	{"gpu_ecc_uncorrect", "memory of GPU {gpu} has had {n} since its driver was loaded"},
}

// gauges show how a gateway treats a server: the value at which the server gets no requests, the one at which it does, and the reason.
var gauges = []struct {
	name, with string
	who        []string
	out, in    float64
	says, back string
}{
	{"smg_worker_health", "", workers, 0, 1, "it is unhealthy", "is healthy again for the router"},
	{"sgl_router_worker_health", "", workers, 0, 1, "it is unhealthy", "is healthy again for the router"},
	{"smg_worker_cb_state", "", workers, 1, 0, "its circuit breaker opened", "gets requests of the router again: its circuit breaker closed"},
	{"sgl_router_cb_state", "", workers, 1, 0, "its circuit breaker opened", "gets requests of the router again: its circuit breaker closed"},
	{"litellm_deployment_state", "", []string{"api_base", "litellm_model_name"}, 2, 0, "LiteLLM counts it as out", "gets requests of the router again"},
	{"haproxy_server_status", "state=DOWN", []string{"server"}, 1, 0, "HAProxy finds it down", "is up again for the router"},
	{"serve_deployment_replica_healthy", "", []string{"replica"}, 0, 1, "Ray Serve finds the replica unhealthy", "is healthy again for the router"},
	{"inference_pool_ready_pods", "", []string{"name"}, 0, 1, "no pod of the pool is ready", "has a ready pod again"},
}

var workers = []string{"worker", "worker_url"}
