package request

import "strings"

// Phase is what a stage means for a request, whatever version named it.
type Phase uint8

const (
	OtherPhase     Phase = iota
	RoutePhase           // choosing a server and talking to it
	DispatchPhase        // tokenizing, handing over to the scheduler
	QueuePhase           // waiting to be scheduled
	BootstrapPhase       // prefill and decode side finding each other
	PrefillPhase         // computing the prompt
	TransferPhase        // moving the KV cache
	DecodePhase          // generating
)

// String returns the word that reports print.
func (p Phase) String() string {
	return [...]string{"other", "route", "dispatch", "queue", "bootstrap", "prefill", "transfer", "decode"}[p]
}

// A StageInfo is what is known of a stage by its name.
type StageInfo struct {
	Name  string
	Level int // lowest --trace-level that exports it
	Phase Phase
	Doc   string
}

// Stages lists the stages that SGLang's tracing has had, from
// python/sglang/srt/observability/req_time_stats.py and trace.py between
// 2025-09 (#9962) and 2026-08. Names that changed stand on rows of their own.
var Stages = []StageInfo{
	{"tokenize", 1, DispatchPhase, "tokenizing the prompt"},
	{"api_server_dispatch", 2, DispatchPhase, "HTTP server hands the request to the scheduler"},
	{"dispatch", 2, DispatchPhase, "api_server_dispatch before 2026-04 (#22186)"},
	{"dpc_dispatch", 2, DispatchPhase, "DP controller hands the request to a rank"},
	{"dc_dispatch", 2, DispatchPhase, "dpc_dispatch before 2026-04 (#22186)"},
	{"request_process", 2, DispatchPhase, "scheduler receives the request and queues it"},
	{"prefill_waiting", 1, QueuePhase, "waiting for the first prefill batch"},
	{"prefill_forward", 1, PrefillPhase, "prefill; in the v1 layout it includes the wait"},
	{"chunked_prefill", 3, PrefillPhase, "one chunk of a prompt that is prefilled in pieces"},
	{"decode_waiting", 1, QueuePhase, "waiting for the first decode batch"},
	{"decode_forward", 1, DecodePhase, "from the first decode step to the last"},
	{"decode_loop", 3, DecodePhase, "one decode step: one token, or several with speculation"},
	{"fake_output", 3, DecodePhase, "prebuilt batch that takes over the first token from prefill"},
	{"prefill_prepare", 1, BootstrapPhase, "prefill server prepares the transfer"},
	{"prefill_bootstrap", 1, BootstrapPhase, "prefill server waits for the decode server to connect"},
	{"prefill_transfer_kv_cache", 1, TransferPhase, "prefill server sends the KV cache"},
	{"decode_prepare", 1, BootstrapPhase, "decode server allocates for the KV cache"},
	{"decode_bootstrap", 1, BootstrapPhase, "decode server connects to the prefill server"},
	{"decode_transferred", 1, TransferPhase, "decode server waits for the KV cache, prefill included"},
	{"quick_finish", 1, DecodePhase, "request that ends without decoding"},
	{"spec_draft", 2, DecodePhase, "drafting tokens"},
	{"spec_verify", 2, DecodePhase, "verifying drafted tokens"},
	{"spec_draft_extend", 3, DecodePhase, "extending the draft model's cache"},
	{"run_batch_cpu", 4, OtherPhase, "CPU side of one micro-batch (pipeline parallel)"},
	{"mm_encode", 1, PrefillPhase, "encoding images or audio"},
	{"mooncake_send", 1, TransferPhase, "queueing one chunk of the KV cache for sending"},
	{"mooncake_worker_send", 1, TransferPhase, "a transfer worker sends one chunk"},
	{"mooncake_worker_send_session", 2, TransferPhase, "sending one chunk to one target"},
	{"mooncake_recv", 1, TransferPhase, "receiving the KV cache"},
	{"mooncake_worker_recv", 1, TransferPhase, "a transfer worker receives one chunk"},
	{"scheduler_dispatch", 1, DispatchPhase, "diffusion scheduler takes the request"},
	{"gpu_forward", 2, PrefillPhase, "diffusion model runs"},
	{"mini_lb_launch", 1, RoutePhase, "mini load balancer picks the servers (v1)"},
	{"wait_PD_finish", 1, RoutePhase, "mini load balancer waits for both servers (v1)"},
	{"hicache_l3_backup_enqueue", 1, OtherPhase, "queueing a backup of cached pages"},
	{"hicache_l3_backup", 1, OtherPhase, "writing cached pages to storage"},
	{"hicache_l3_prefetch_enqueue", 1, OtherPhase, "queueing a prefetch of cached pages"},
	{"hicache_l3_prefetch_query", 1, OtherPhase, "asking storage for cached pages"},
	{"hicache_l3_prefetch_transfer", 1, OtherPhase, "reading cached pages from storage"},
}

var stageByName = func() map[string]*StageInfo {
	m := make(map[string]*StageInfo, len(Stages))
	for i := range Stages {
		m[Stages[i].Name] = &Stages[i]
	}
	return m
}()

// StageOf returns what is known of the stage with the given name. A stage that
// is not in the table is exported at every level, as far as one can tell.
func StageOf(name string) StageInfo {
	if s, ok := stageByName[name]; ok {
		return *s
	}
	return StageInfo{Name: name}
}

// roleOfRoot reads the role from the name of a request span: "prefill Req
// e1cca7b0", " Req 7ca07386" (unified; the blank is real), "Req 7ca07386" (v1a),
// "router Req 44123033" (v1b), "Sender Req 0x7c5442" (Mooncake).
func roleOfRoot(name string) (Role, bool) {
	role, _, ok := strings.Cut(name, "Req ")
	if !ok {
		return Other, false
	}
	switch strings.TrimSpace(role) {
	case "":
		return Unified, true
	case "prefill":
		return Prefill, true
	case "decode":
		return Decode, true
	case "router":
		return Router, true
	case "Sender":
		return Sender, true
	case "encoder", "encode":
		return Encoder, true
	}
	return Other, true
}

// envelopePrefix begins the names of the spans that the v1b layout (2025-10,
// #10804) puts around the requests of one bootstrap room.
const envelopePrefix = "Bootstrap Room "

// roleOfLabel reads the role from a thread label; a label without one has the
// role of the part.
func roleOfLabel(label string, part Role) Role {
	switch {
	case strings.HasPrefix(label, "Prefill"):
		return Prefill
	case strings.HasPrefix(label, "Decode"):
		return Decode
	case label == "Mini lb":
		return Router
	case label == "Encoder":
		return Encoder
	case strings.HasPrefix(label, "mooncake"), part == Sender:
		return Prefill
	}
	return part
}

// labelOrder is the way of a request through a server.
var labelOrder = []string{"Tokenizer", "DP Controller", "Encoder", "Scheduler", "mooncake"}

func labelRank(label string) int {
	for i, l := range labelOrder {
		if strings.Contains(label, l) {
			return i
		}
	}
	return len(labelOrder)
}

// isScheduler tells whether stages under label follow the batches of a rank.
func isScheduler(label string) bool { return strings.Contains(label, "Scheduler") }

// abortReasons tell aborted from failed, by what the reason begins with. The
// texts are from scheduler.py, disaggregation/{prefill,decode}.py and trace.py.
var abortReasons = []struct {
	prefix string
	status Status
}{
	{"The request queue is full", Aborted},
	{"The request is aborted by a higher priority request", Aborted},
	{"Aborted", Aborted},
	{"have unclosed span, auto closed", Aborted}, // client gone while queued
	{"Prefill bootstrap failed", Failed},
	{"Prefill transfer failed", Failed},
	{"Decode transfer failed", Failed},
}

// StatusOfReason tells whether a reason means aborted or failed.
func StatusOfReason(reason string) Status {
	for _, r := range abortReasons {
		if strings.HasPrefix(reason, r.prefix) {
			return r.status
		}
	}
	return Failed
}
