package assembly

import (
	"strings"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// stages lists the stages of SGLang's tracing, from python/sglang/srt/observability/req_time_stats.py and
// trace.py between 2025-09 (#9962) and 2026-08. A renamed stage has a row for each name.
var stages = []stage{
	{"tokenize", 1, request.DispatchPhase, request.Tokenizing, "tokenizing the prompt"},
	{"api_server_dispatch", 2, request.DispatchPhase, request.NoMeaning, "HTTP server hands the request to the scheduler"},
	{"dispatch", 2, request.DispatchPhase, request.NoMeaning, "api_server_dispatch before 2026-04 (#22186)"},
	{"dpc_dispatch", 2, request.DispatchPhase, request.NoMeaning, "DP controller hands the request to a rank"},
	{"dc_dispatch", 2, request.DispatchPhase, request.NoMeaning, "dpc_dispatch before 2026-04 (#22186)"},
	{"request_process", 2, request.DispatchPhase, request.NoMeaning, "scheduler receives the request and queues it"},
	{"prefill_waiting", 1, request.QueuePhase, request.Queueing, "waiting for the first prefill batch"},
	{"prefill_forward", 1, request.PrefillPhase, request.Prefilling, "prefill; in the v1 layout it includes the wait"},
	{"chunked_prefill", 3, request.PrefillPhase, request.PrefillingChunk, "one chunk of a prompt that is prefilled in pieces"},
	{"decode_waiting", 1, request.QueuePhase, request.DecodeQueueing, "waiting for the first decode batch"},
	{"decode_forward", 1, request.DecodePhase, request.Answering, "from the first decode step to the last"},
	{"decode_loop", 3, request.DecodePhase, request.Stepping, "one decode step: one token, or several with speculation"},
	{"fake_output", 3, request.DecodePhase, request.Prebuilt, "prebuilt batch that takes over the first token from prefill"},
	{"prefill_prepare", 1, request.BootstrapPhase, request.SendPreparing, "prefill server prepares the transfer"},
	{"prefill_bootstrap", 1, request.BootstrapPhase, request.SendConnecting, "prefill server waits for the decode server to connect"},
	{"prefill_transfer_kv_cache", 1, request.TransferPhase, request.Sending, "prefill server sends the KV cache"},
	{"decode_prepare", 1, request.BootstrapPhase, request.ReceivePreparing, "decode server allocates for the KV cache"},
	{"decode_bootstrap", 1, request.BootstrapPhase, request.ReceiveConnecting, "decode server connects to the prefill server"},
	{"decode_transferred", 1, request.TransferPhase, request.Receiving, "decode server waits for the KV cache, prefill included"},
	{"quick_finish", 1, request.DecodePhase, request.NoMeaning, "request that ends without decoding"},
	{"spec_draft", 2, request.DecodePhase, request.NoMeaning, "drafting tokens"},
	{"spec_verify", 2, request.DecodePhase, request.Verifying, "verifying drafted tokens"},
	{"spec_draft_extend", 3, request.DecodePhase, request.NoMeaning, "extending the draft model's cache"},
	{"run_batch_cpu", 4, request.OtherPhase, request.Launching, "CPU side of one micro-batch (pipeline parallel)"},
	{"mm_encode", 1, request.PrefillPhase, request.Encoding, "encoding images or audio"},
	{"mooncake_send", 1, request.TransferPhase, request.SendQueueing, "queueing one chunk of the KV cache for sending"},
	{"mooncake_worker_send", 1, request.TransferPhase, request.WorkerSending, "a transfer worker sends one chunk"},
	{"mooncake_worker_send_session", 2, request.TransferPhase, request.NoMeaning, "sending one chunk to one target"},
	{"mooncake_recv", 1, request.TransferPhase, request.NoMeaning, "receiving the KV cache"},
	{"mooncake_worker_recv", 1, request.TransferPhase, request.NoMeaning, "a transfer worker receives one chunk"},
	{"scheduler_dispatch", 1, request.DispatchPhase, request.NoMeaning, "diffusion scheduler takes the request"},
	{"gpu_forward", 2, request.PrefillPhase, request.NoMeaning, "diffusion model runs"},
	{"mini_lb_launch", 1, request.RoutePhase, request.NoMeaning, "mini load balancer picks the servers (v1)"},
	{"wait_PD_finish", 1, request.RoutePhase, request.NoMeaning, "mini load balancer waits for both servers (v1)"},
	{"wait_pd_finish", 2, request.RoutePhase, request.NoMeaning, "wait_PD_finish in the first weeks of v2"},
	{"hicache_l3_backup_enqueue", 1, request.OtherPhase, request.Caching, "queueing a backup of cached pages"},
	{"hicache_l3_backup", 1, request.OtherPhase, request.Caching, "writing cached pages to storage"},
	{"hicache_l3_prefetch_enqueue", 1, request.OtherPhase, request.Caching, "queueing a prefetch of cached pages"},
	{"hicache_l3_prefetch_query", 1, request.OtherPhase, request.Caching, "asking storage for cached pages"},
	{"hicache_l3_prefetch_transfer", 1, request.OtherPhase, request.Caching, "reading cached pages from storage"},
	{"hicache_storage_hit_query", 5, request.OtherPhase, request.Caching, "asking Mooncake for cached pages"},
	{"hicache_mooncake_fetch", 4, request.OtherPhase, request.Caching, "reading cached pages from Mooncake"},
}

// A stage is a row of the table: see [request.StageInfo].
type stage struct {
	name  string
	level int
	phase request.Phase
	means request.Meaning
	doc   string
}

// stageTable and vllmStageTable are the tables of stages in the model's form.
var stageTable, vllmStageTable = infosOf(stages), infosOf(vllmStages)

func infosOf(stages []stage) []request.StageInfo {
	t := make([]request.StageInfo, len(stages))
	for i, s := range stages {
		t[i] = request.StageInfo{Name: s.name, Level: s.level, Phase: s.phase, Means: s.means, Doc: s.doc}
	}
	return t
}

var stageByName = func() map[string]*request.StageInfo {
	m := make(map[string]*request.StageInfo, len(stageTable)+len(vllmStageTable))
	for _, table := range [][]request.StageInfo{stageTable, vllmStageTable} {
		for i := range table {
			m[table[i].Name] = &table[i]
		}
	}
	return m
}()

// roleOfRoot reads the role from the name of a request span: "prefill Req e1cca7b0", " Req 7ca07386"
// (unified; the space is real), "Req 7ca07386" (v1a), "router Req 44123033" (v1b), "Sender Req 0x7c5442"
// (Mooncake).
func roleOfRoot(name string) (request.Role, bool) {
	role, _, ok := strings.Cut(name, "Req ")
	if !ok { // Zipkin's server writes names in lowercase
		role, _, ok = strings.Cut(name, "req ")
	}
	if !ok {
		return request.Other, false
	}
	switch strings.TrimSpace(role) {
	case "":
		return request.Unified, true
	case "prefill":
		return request.Prefill, true
	case "decode":
		return request.Decode, true
	case "router":
		return request.Router, true
	case "Sender":
		return request.Sender, true
	case "encoder", "encode":
		return request.Encoder, true
	}
	return request.Other, true
}

// envelopePrefix begins the names of the spans that the v1b layout (2025-10, #10804) puts around the
// requests of one bootstrap room.
const envelopePrefix = "Bootstrap Room "

// roleOfLabel reads the role from a thread label; a label without a role has that of the part.
func roleOfLabel(label string, part request.Role) request.Role {
	switch {
	case strings.HasPrefix(label, "Prefill"):
		return request.Prefill
	case strings.HasPrefix(label, "Decode"):
		return request.Decode
	case label == "Mini lb":
		return request.Router
	case label == "Encoder":
		return request.Encoder
	case strings.HasPrefix(label, "mooncake"), part == request.Sender:
		return request.Prefill
	}
	return part
}

// labelOrder is the order in which a request passes the threads of a server.
var labelOrder = []string{"Tokenizer", "DP Controller", "Encoder", "Scheduler", "mooncake"}

func labelRank(label string) int {
	for i, l := range labelOrder {
		if strings.Contains(label, l) {
			return i
		}
	}
	return len(labelOrder)
}

// writerOf returns the text in labelOrder that is part of the label of threads that write a stage.
func writerOf(stage string) string {
	switch stage {
	case "tokenize", "api_server_dispatch", "dispatch":
		return "Tokenizer"
	case "dpc_dispatch", "dc_dispatch":
		return "DP Controller"
	case "mm_encode":
		return "Encoder"
	}
	if strings.HasPrefix(stage, "mooncake_worker") {
		return "mooncake"
	}
	return "Scheduler"
}

// isScheduler reports whether stages of threads with this label follow the batches of a rank.
func isScheduler(label string) bool { return strings.Contains(label, "Scheduler") }

// abortReasons distinguish aborted from failed by the beginning of the reason. The texts are from
// scheduler.py, disaggregation/{prefill,decode}.py, and trace.py.
var abortReasons = []struct {
	prefix string
	status request.Status
}{
	{request.QueueFull, request.Aborted},
	{"The request is aborted by a higher priority request", request.Aborted},
	{"Aborted", request.Aborted},
	{"have unclosed span, auto closed", request.Aborted}, // the client left while the request was queued
	{"Prefill bootstrap failed", request.Failed},
	{"Prefill transfer failed", request.Failed},
	{"Decode transfer failed", request.Failed},
}

// statusOfReason returns whether a reason means aborted or failed.
func statusOfReason(reason string) request.Status {
	for _, r := range abortReasons {
		if strings.HasPrefix(reason, r.prefix) {
			return r.status
		}
	}
	return request.Failed
}

// instantKind returns the kind of an event by its name. "Sending request" is the gateway's text, and
// "Sending concurrent requests" if it sends one each to a prefill and a decode server.
func (b *builder) instantKind(name trace.Sym) request.InstantKind {
	switch name {
	case b.keys.schedule:
		return request.Scheduled
	case b.keys.retract:
		return request.Retracted
	case b.keys.sending, b.keys.sendingOne:
		return request.HandedOn
	}
	return request.OtherInstant
}

// modeOf reads the forward_mode of a batch.
func modeOf(text string) request.Mode {
	switch text {
	case "prefill":
		return request.PrefillMode
	case "decode":
		return request.DecodeMode
	}
	return request.OtherMode
}
