package serverlog

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// canary stands for prompts and keys.
const canary = "CANARY"

// written is a log as servers and collectors write it: the keys and their order are from real
// lines, the values are not.
const written = `[2025-07-18 15:32:54] server_args=ServerArgs(model_path='m', tp_size=4, api_key='CANARY', disaggregation_mode='null', dp_size=2)
[2025-07-18 15:32:54 TP0] Decode batch. #running-req: 3, #token: 2266, token usage: 0.01, cuda graph: True, gen throughput (token/s): 3.13, #queue-req: 2, timestamp: 2025-07-18T15:32:54.159394
(SGLangEngine pid=111711, ip=10.15.36.1) [2025-07-18 15:33:20 TP0] Decode batch [39913], #running-req: 78, #token: 432100, token usage: 0.27, cuda graph: True, gen throughput (token/s): 7269.16, #queue-req: 0,
[2025-07-18 15:33:21 DP6 TP6 EP6] Decode batch, #running-req: 251, #token: 2811200, token usage: 1.00, cuda graph: True, gen throughput (token/s): 2055.94, #queue-req: 655,
[2025-07-18 15:33:22 TP0] Decode batch, #running-req: 2, #full token: 5632, full token usage: 0.12, mamba num: 4, mamba usage: 0.33, accept len: 3.12, accept rate: 0.56, cuda graph: True, gen throughput (token/s): 95.33, #queue-req: 1
[2025-07-18 15:33:23 TP0] Prefill batch. #new-seq: 1, #new-token: 20, #cached-token: 5, cache hit rate: 12.34%, token usage: 0.00, #running-req: 0, #queue-req: 0
[2025-07-18 15:33:24 TP0] Prefill batch, #new-seq: 1, #new-token: 30, #cached-token: 0, token usage: 0.00, #unbootstrapped-req: 7, #queue-req: 4, #transferring-req: 2 
[2025-07-18 15:33:25 DP1 TP4] KV cache pool is full. Retract requests. #retracted_reqs: 4, #new_token_ratio: 0.0980 -> 0.3487
[2025-07-18 15:33:26 DP1 TP4] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl/srt/managers/scheduler.py", line 3232, in run_batch
    x = y
ValueError: CANARY
[2025-07-18 15:33:27 DP1 TP4] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)
[2025-07-18 15:33:27 DP1 TP4] Pyspy dump for PID 309 (py-spy dump --native --pid 309):
Process 309: sglang::scheduler_DP1_TP4
Python v3.12.3 (/usr/bin/python3)

Thread 309 (idle): "MainThread"
    0x7fa2d1487d71 (libc.so.6)
    c10d::ProcessGroupGloo::RecvWork::wait (libtorch_cpu.so)
    event_loop_overlap (scheduler.py:1001)
        Arguments:
            prompt: "CANARY"
    run_scheduler (scheduler.py:2000)
[2025-07-18 15:33:28] INFO:     10.0.0.1:5000 - "POST /generate HTTP/1.1" 500 Internal Server Error
[2025-07-18 15:33:29] Receive: obj=GenerateReqInput(rid='r1', text='CANARY Decode batch, #running-req: 9')
[2025-07-18 15:33:30] Finish: obj=GenerateReqInput(rid='r3', text='CANARY'), out={'text': 'CANARY', 'meta_info': {'id': 'r3', 'finish_reason': {'type': 'stop', 'matched': 'CANARY'}, 'prompt_tokens': 3, 'completion_tokens': 9, 'e2e_latency': 1.5}}
{"timestamp":"2025-07-18T15:33:30.123456","event":"request.finished","rid":"r1","obj":{"rid":"r1","text":"CANARY","bootstrap_room":7},"out":{"text":"CANARY","meta_info":{"id":"r1","finish_reason":{"type":"abort","message":"CANARY","status_code":500},"prompt_tokens":3,"completion_tokens":9,"cached_tokens":1,"e2e_latency":1.5}}}
{"log":"[2025-07-18 15:33:31 TP0] ReqTimeStats(rid=r2, bootstrap_room=None, input_len=4, cached_input_len=0, output_len=8, attempts=1, type=unified): queue_duration=1.64ms, initial_prefill_elapsed=85.09ms, post_prefill_elapsed=2270.33ms, forward_duration=2355.41ms, entry_time=1752852808.500\n","stream":"stderr","time":"2025-07-18T15:33:31.9Z"}
2026-04-27T23:03:15.250907Z  INFO metrics_reporter.report_decode_stats: Decode batch, #running-req: 5, #token: 9, token usage: 0.12, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0
[08/19/2026-14:11:49] [TRT-LLM] [I] [_torch][RANK 0] iter = 2, global_rank = 0, rank = 0, num_scheduled_requests = 3, kv_cache_util = 0.112, currank_total_requests = 0/1, host_step_time = 4.08ms, prev_device_step_time = 243.13ms, timestamp = x, states = {'num_ctx_tokens': 11, 'cached_kv_tokens': 2}, num_active = 4, num_fetched = 1, num_dummy = 0, num_unscheduled = 1
`

// Every line in every layout is read with the values it contains.
func TestEveryLayout(t *testing.T) {
	set, rows, all := readText(t, "decode.log", strings.NewReader(written))
	for metric, want := range map[series.MetricID]found{
		series.Running: {7, 3 + 78 + 251 + 2 + 0 + 5 + 3, 251}, series.Queued: {8, 2 + 655 + 1 + 4 + 1, 655}, series.NewTokens: {3, 20 + 30 + 11, 30},
		series.KVUsage: {8, 1 + 27 + 100 + 33 + 12 + 11.2, 100}, series.Bootstrapping: {1, 7, 7}, series.Sending: {1, 2, 2}, series.HitRate: {1, 12.34, 12.34},
		series.AcceptLength: {1, 3.12, 3.12}, series.StepTime: {1, 243.13e6, 243.13e6}, series.ServerErrors: {1, 1, 1},
	} {
		if got := all[metric]; got.n != want.n || got.sum < want.sum-1e-6 || got.sum > want.sum+1e-6 || got.most != want.most {
			t.Errorf("%s: %+v, want %+v", series.Metrics[metric].Name, got, want)
		}
	}
	if rows.Len() != 3 {
		t.Errorf("%d requests, want 3", rows.Len())
	}
	var said []string
	for _, x := range set.Instants {
		said = append(said, x.Kind.String()+": "+set.Syms.Name(x.Text))
	}
	for _, want := range []string{"retraction: the KV cache is full", "exception: Scheduler: ValueError", "timeout: Scheduler did not return for 300 to 450 s",
		"timeout: its main thread is in event_loop_overlap (scheduler.py:1001)", "start: starts: tp_size 4, dp_size 2"} {
		if !strings.Contains(strings.Join(said, "\n"), want) {
			t.Errorf("nothing says %q: %q", want, said)
		}
	}
	for _, name := range set.Syms.Names() {
		if strings.Contains(name, canary) {
			t.Errorf("a prompt or a key is kept: %q", name)
		}
	}
}

// Two records on one line, or halves of records, are split where they begin.
func TestDamagedRecords(t *testing.T) {
	one := `{"request_parameters": "{\"text\": \"CANARY\"}", "id": "a", "finish_reason": {"type": "stop"}, "prompt_tokens": 1, "completion_tokens": 2, "e2e_latency": 0.5, "request_received_ts": 1787000000.25, "request_finished_ts": 1787000000.75}`
	text := one + one + "\n" + one[:90] + one + "\n" + one[100:] + "\n"
	_, rows, _ := readText(t, "sglang-request-metrics-20260822_14.log", strings.NewReader(text))
	if rows.Len() != 3 {
		t.Errorf("%d records, want 3", rows.Len())
	}
}

// The time zone comes from collector timestamps, or from Unix times beside local ones.
func TestZonesOfLogs(t *testing.T) {
	for text, want := range map[string]string{
		"2026-08-22T14:03:05.123456789Z [2026-08-22 10:03:05 TP0] Decode batch, #running-req: 1, #queue-req: 0\n":                                                                "UTC-4",
		"2025-07-25T07:53:08.217+08:00 stdout F [2025-07-25 07:53:08 TP0] Decode batch, #running-req: 1, #queue-req: 0\n":                                                        "UTC+8",
		"[2026-08-24 15:56:13 TP0] ReqTimeStats(rid=r, input_len=1, output_len=1, type=unified): queue_duration=1.64ms, forward_duration=2355.41ms, entry_time=1787601371.304\n": "UTC-4",
		"[2026-08-24 15:56:13 TP0] Decode batch, #running-req: 1, #queue-req: 0\n":                                                                                               "UTC",
	} {
		set, _, _ := readText(t, "a.log", strings.NewReader(text))
		if got := set.Sources[0].Zone.Name(); got != want {
			t.Errorf("%s: %s by %s, want %s", text, got, set.Sources[0].Zone.By, want)
		}
	}
}

// Reading continues after any damage.
func TestDamagedLogs(t *testing.T) {
	subject := testinput.Subject{Data: []byte(written)}
	for seed := range uint64(200) {
		mutant := subject.Mutate(seed)
		readText(t, "a.log", bytes.NewReader(mutant.Data))
	}
}

// FuzzRead reads arbitrary data, and keeps no prompt.
func FuzzRead(f *testing.F) {
	f.Add(written)
	f.Fuzz(func(t *testing.T, text string) {
		sniff([]byte(text))
		readText(t, "a.log", strings.NewReader(text))
	})
}

// BenchmarkRead reads lines of batches.
func BenchmarkRead(b *testing.B) {
	lines := strings.Repeat("[2025-11-03 14:31:10 DP6 TP6 EP6] Decode batch, #running-req: 251, #token: 2811200, token usage: 1.00, cuda graph: True, gen throughput (token/s): 2055.94, #queue-req: 655, \n"+
		"[2025-11-03 14:31:10] INFO:     10.0.0.1:5000 - \"POST /generate HTTP/1.1\" 200 OK\n", 20000)
	b.SetBytes(int64(len(lines)))
	for b.Loop() {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		opt := &format.Options{Syms: set.Syms, Diags: set.Diags, Series: set, Records: spantable.NewRequestRecords(set), Flight: recorder.NewInFlight(set.Syms)}
		index(&format.Input{Name: "a.log", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(lines)), nil }}, opt)
	}
}

// Of unrecognized lines, only those about problems are counted.
func TestUnknownLines(t *testing.T) {
	for text, want := range map[string]int{
		"visual.blocks.0.attn.proj.weight torch.Size([1152, 1152])":                                                                              0,
		"Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:02<00:07,  2.4s/it]":                                                    0,
		"/usr/lib/python3/site-packages/x.py:5: UserWarning: The following error is ignored":                                                     0,
		"[2026-05-25 17:29:52 TP1] awq quantization is not fully optimized yet.":                                                                 0,
		"[2026-05-25 17:29:52 TP1] Ignore import error when loading sglang.srt.models.mindspore: No module named 'mindspore'":                    0,
		"[2026-05-25 17:29:52 TP1] The frobnicator failed to start":                                                                              1,
		"some plugin of ours has crashed":                                                                                                        1,
		"(APIServer pid=1) INFO 06-18 09:55:08 [api_server.py:1] Starting vLLM API server":                                                       0,
		"(APIServer pid=1) WARNING 06-18 09:55:08 [api_server.py:1] the connection was refused by everybody":                                     1,
		"[2026-09-29 00:00:00 TP0] Decode batch, #running-req: 2, #token: 32, token usage: 0.12, gen throughput (token/s): 95.33, #queue-req: 1": 0,
	} {
		set, _, _ := readText(t, "s.log", strings.NewReader(text+"\n"))
		if got := set.Sources[0].Other; got != want {
			t.Errorf("%d unknown lines, want %d: %s", got, want, text)
		}
	}
}

// The keys and their order are from SGLang's source of 2026-08, and from a fork with lists by DP rank.
// Decode lines repeat the cached tokens of all running requests, so only those in prefill lines are summed.
func TestLayoutsOfSource(t *testing.T) {
	const text = `[2026-08-22 14:00:00 TP0] Prefill batch [41], #new-seq: 2, #new-token: 300, #cached-token: 100, token usage: 0.10, #running-req: 3, #queue-req: 4, #pending-token: 512, #bootstrap-req: 1, #inflight-req: 2, waiting-image-req: 0, npu graph: False, input throughput (token/s): 812.33, est. prefill TFLOPS/s (per GPU): 1.23, fwd occupancy: 93.10%
[2026-08-22 14:00:01 TP0] Decode batch [42], #running-req: 5, #cached-token: 7777, #full token: 5632, full token usage: 0.12, mamba num: 4, mamba usage: 0.03, accept len: 3.12, accept rate: 0.56, pre-allocated usage: 0.01, #prealloc-req: 0, #transfer-req: 0, #retracted-req: 0, cuda graph: True, gen throughput (token/s): 95.33, #queue-req: 6, est. decode TFLOPS/s (per GPU): 0.40, est. read BW (GB/s per GPU): 900.00, est. write BW (GB/s per GPU): 3.00, fwd occupancy: 91.00%
[2026-08-22 14:00:02 TP0] Prefill batch. #new-seq: 1, #new-token: 50, #cached-token: 25, token usage: 0.11, #running-req: 6, #prefill per DP: [1, 0], #running per DP: [3, 3], #queue-req: 7, 
`
	set, _, all := readText(t, "prefill-0.log", strings.NewReader(text))
	for metric, want := range map[series.MetricID]float64{series.NewSeqs: 3, series.NewTokens: 350, series.CachedTokens: 125, series.Running: 14, series.Queued: 17, series.PendingTokens: 512, series.Bootstrapping: 1,
		series.Sending: 2, series.KVTokens: 5632, series.Generation: 95.33, series.AcceptLength: 3.12, series.PrefillRate: 812.33} {
		if all[metric].sum != want {
			t.Errorf("%s: %v, want %v", set.Metric(metric).Name, all[metric].sum, want)
		}
	}
	if src := &set.Sources[0]; src.Read != 3 || src.Other != 0 {
		t.Errorf("%d lines are read, %d not known", src.Read, src.Other)
	}
}
