package serverlog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/series"
)

// wrappings are prefixes of log collectors and viewers.
var wrappings = map[string]string{
	"kubectl --timestamps":          "2026-03-04T10:22:12.123456789Z ",
	"kubectl --prefix":              "[pod/decode-0/main] ",
	"kubectl --prefix --timestamps": "[pod/decode-0/main] 2026-03-04T10:22:12.123456789Z ",
	"containerd":                    "2026-03-04T10:22:12.123456789Z stderr F ",
	"stern":                         "decode-0 main ",
	"docker compose":                "decode-0  | ",
	"systemd":                       "Mar 04 10:22:12 node1 sglang[41]: ",
	"systemd, short-iso":            "2026-03-04T10:22:12+0000 node1 sglang[41]: ",
	"srun --label":                  "3: ",
	"Ray":                           "(Engine(Base) pid=12, ip=10.0.0.1) ",
	"aws logs tail":                 "2026-03-04T10:22:12.123000+00:00 llm/main/0ab1 ",
	"Grafana":                       "2026-03-04T10:22:12.123Z\t",
	"a viewer of its own":           "10:22:12.123 <decode-0> ",
	"RunPod":                        "a0b1c2d3e4f5g6[info]",
	"Buildkite":                     "[2026-03-04T10:22:12Z] ",
	"ts":                            "[2026-03-04T10:22:12.123456+00:00] ",
	"logcli":                        `2026-03-04T10:22:12.123Z {app="llm", pod="decode-0"} `,
	"torchrun":                      "[default3]:",
	"colors by rsyslog":             "#033[36mdecode-0#033[0m ",
	"colors that lost their escape": "[36mdecode-0[0m ",
}

// The result does not depend on line prefixes, even for tracebacks, whose lines have no timestamp.
func TestWrappings(t *testing.T) {
	for engine, text := range map[string]string{
		"SGLang": `[2026-03-04 10:22:10 TP0] Decode batch. #running-req: 3, #token: 4123, token usage: 0.02, gen throughput (token/s): 88.17, #queue-req: 0
[2026-03-04 10:22:12 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/scheduler.py", line 18, in event_loop
    self.run()
RuntimeError: CUDA error: an illegal memory access was encountered
[rank0]:[E304 10:22:33.020753201 ProcessGroupNCCL.cpp:683] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600064 milliseconds before timing out.
`,
		"vLLM": `(APIServer pid=605) INFO 03-04 10:22:10 [loggers.py:273] Engine 000: Avg prompt throughput: 532.2 tokens/s, Avg generation throughput: 20.5 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.7%
(EngineCore pid=1154) ERROR 03-04 10:22:12 [core.py:1242] Traceback (most recent call last):
(EngineCore pid=1154) ERROR 03-04 10:22:12 [core.py:1242]   File "/x/core.py", line 12, in step
(EngineCore pid=1154) ERROR 03-04 10:22:12 [core.py:1242] RuntimeError: CUDA error: an illegal memory access was encountered
(APIServer pid=605) INFO:     10.0.0.4:44562 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error
`,
		"Dynamo": `2026-03-04T10:22:10.250907Z  INFO metrics_reporter.report: Decode batch, #running-req: 3, #token: 4123, token usage: 0.02, gen throughput (token/s): 88.17, #queue-req: 0
2026-03-04T10:22:12.250907Z ERROR scheduler.run: Scheduler hit an exception: Traceback (most recent call last):
  File "/x/scheduler.py", line 18, in event_loop
RuntimeError: CUDA error: an illegal memory access was encountered
`,
		"TensorRT-LLM": `[03/04/2026-10:22:10] [TRT-LLM] [I] iter = 2, global_rank = 0, rank = 0, num_scheduled_requests = 3, kv_cache_util = 0.112
[03/04/2026-10:22:12] [TRT-LLM] [E] Encountered an error in forward function: CUDA error
`,
	} {
		want := saidIn(t, text)
		if !strings.Contains(want, "CUDA error") && engine != "TensorRT-LLM" {
			t.Errorf("%s, bare: %s", engine, want)
		}
		for name, before := range wrappings {
			seconds := 10
			wrapped := regexp.MustCompile(`(?m)^(.)`).ReplaceAllStringFunc(text, func(first string) string {
				seconds++ // each line has a new timestamp
				return strings.ReplaceAll(before, "10:22:12", fmt.Sprintf("10:22:%d", min(seconds, 13))) + first
			})
			if !sniff([]byte(wrapped)) {
				t.Errorf("%s, %s: not recognized", engine, name)
			}
			if got := saidIn(t, wrapped); got != want {
				t.Errorf("%s, %s:\n%swant\n%s", engine, name, got, want)
			}
		}
	}
}

// Deployments may configure Python's logging themselves.
func TestOwnFormats(t *testing.T) {
	const batch, failed = "Decode batch, #running-req: 3, #token: 4123, token usage: 0.02, gen throughput (token/s): 88.17, #queue-req: 0\n", "Scheduler hit an exception: Traceback (most recent call last):\n  File \"/x/scheduler.py\", line 18, in event_loop\nRuntimeError: CUDA error: x\n"
	want := saidIn(t, "[2026-03-04 10:22:10] "+batch+"[2026-03-04 10:22:12] "+failed)
	for _, before := range []string{
		"[2026-03-04 10:22:10][scheduler_metrics_mixin.py:424][INFO]: ", "2026-03-04 10:22:10 INFO 151972 [scheduler_metrics_mixin.py:287] ", "2026-03-04 10:22:10,120 - sglang.srt.managers - INFO - ",
		"2026-03-04 10:22:10.120 | INFO     | sglang.srt.managers.scheduler:log:287 - ", "INFO:2026-03-04 10:22:10,120:sglang.srt: ", "2026-03-04T10:22:12.1Z stderr F 2026-03-04 10:22:10 [INFO] scheduler.py:12: ",
	} {
		text := before + batch + before + failed
		if !sniff([]byte(text)) {
			t.Errorf("%s: not recognized", before)
		}
		if got := saidIn(t, text); got != want {
			t.Errorf("%s:\n%swant\n%s", before, got, want)
		}
	}
}

// saidIn lists the events in a log, without times and places.
func saidIn(t *testing.T, text string) string {
	t.Helper()
	set, _, all := readText(t, "a.log", strings.NewReader(text))
	var b strings.Builder
	for _, x := range set.Instants {
		fmt.Fprintf(&b, "%s %s %s\n", set.Places[x.Place].Rank, set.Syms.Name(x.Text), set.Syms.Name(x.Stack))
	}
	fmt.Fprintf(&b, "%g running, %g errors, %d unknown\n", all[series.Running].sum, all[series.ServerErrors].sum, set.Sources[0].Other)
	return b.String()
}

// Ray workers of a vLLM engine belong to one server, whatever their hosts; SGLang actors are separate servers.
func TestActorsOfRay(t *testing.T) {
	for actor, want := range map[string]int{"RayWorkerWrapper": 1, "SGLangEngine": 2} {
		set, _, _ := readText(t, "a.log", strings.NewReader(strings.ReplaceAll(`(Actor pid=7, ip=10.0.0.1) [2026-03-04 10:22:10 TP0] Scheduler hit an exception: Traceback (most recent call last):
(Actor pid=8, ip=10.0.0.2) [2026-03-04 10:22:10 TP1] Scheduler hit an exception: Traceback (most recent call last):
`, "Actor", actor)))
		servers := map[int32]bool{}
		for _, x := range set.Instants {
			servers[set.Places[x.Place].Server] = true
		}
		if len(set.Instants) != 2 || len(servers) != want {
			t.Errorf("%s: %d events of %d servers, want %d", actor, len(set.Instants), len(servers), want)
		}
	}
}

// Pods with interleaved lines stay separate.
func TestPodsOfOneFile(t *testing.T) {
	const line = `(APIServer pid=1) INFO 03-04 10:22:10 [loggers.py:273] Engine 000: Avg prompt throughput: 532.2 tokens/s, Avg generation throughput: 20.5 tokens/s, Running: 3 reqs, Waiting: 0 reqs
`
	set, _, _ := readText(t, "a.log", strings.NewReader("[pod/vllm-0/main] "+line+"vllm-1 main "+line+"2026-03-04T10:22:12.1+00:00 vllm/main/2 "+line+"2026-03-04T10:22:12.1Z [vllm-3] "+line+"2026-03-04T10:22:12.1Z stderr "+line))
	var got []string
	for i := range set.Servers {
		got = append(got, set.Servers[i].Name)
	}
	if text := strings.Join(got, " "); text != "vllm-0 vllm-1 vllm.main.2 vllm-3 a" {
		t.Error(text)
	}
}

// Lines without a timestamp belong to the server whose timestamped lines have the same prefix, even if the previous line is from a
// different process.
func TestWrappedTracebackWithoutStamp(t *testing.T) {
	const text = `(WorkerDict pid=7)   File "/x/sglang/srt/managers/schedule_batch.py", line 16, in get_batch
(WorkerDict pid=7)     self.lens.cpu()
(WorkerDict pid=7) RuntimeError: CUDA error: it is gone
(WorkerDict pid=7) [2026-05-23 18:02:42] Received sigquit from a child process. It usually means the child failed.
`
	const other = `(WorkerDict pid=8) [2026-05-23 18:02:40 TP0] Prefill batch. #new-seq: 1, #new-token: 16, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0
`
	for _, text := range []string{text, other + text} {
		set, _, _ := readText(t, "a.log", strings.NewReader(text))
		if !sniff([]byte(text)) || len(set.Instants) != 2 || set.Places[set.Instants[0].Place].Server != set.Places[set.Instants[1].Place].Server {
			t.Errorf("%v of %v", set.Instants, set.Servers)
		}
	}
}

// A traceback of a Ray actor that writes no timestamps does not belong to the server of the previous line.
func TestTracebackOfAnotherActor(t *testing.T) {
	const text = `(HttpServer pid=7) (EngineCore pid=9) INFO 03-04 10:22:10 [core.py:27] Waiting for init message from front-end.
(Trainer pid=5) Traceback (most recent call last):
(Trainer pid=5)   File "/x/train.py", line 3, in step
(HttpServer pid=7) (EngineCore pid=9) INFO 03-04 10:22:11 [core.py:27] Waiting for init message from front-end.
(Trainer pid=5) RuntimeError: it is gone
`
	set, _, _ := readText(t, "a.log", strings.NewReader(text))
	if len(set.Instants) != 1 || set.Servers[set.Places[set.Instants[0].Place].Server].Name != "Trainer pid=5" {
		t.Errorf("%v of %v", set.Instants, set.Servers)
	}
}

// Triton's TensorRT-LLM backend logs its iterations as JSON, which later releases quote.
func TestIterationsOfTriton(t *testing.T) {
	const old = `I1218 03:35:37.688135 7 libtensorrtllm.cc:1205] {"Active Request Count":9,"Context Requests per Iteration":1,"Free KV cache blocks":30,"Generation Requests per Iteration":3,"Max KV cache blocks":40,"Total Context Tokens":128,"Used KV cache blocks":10}
`
	const quoted = `I0831 18:57:08.685678 1 model_instance_state.cc:969] "{\"Active Request Count\":99,\"Iteration Counter\":392,\"Scheduled Requests\":5,\"Total Context Tokens\":0,\"Max KV cache blocks\":40,\"Used KV cache blocks\":31}"
`
	for text, want := range map[string][4]float64{old: {4, 5, 25, 128}, quoted: {5, 94, 77.5, 0}} {
		set, _, all := readText(t, "a.log", strings.NewReader(text))
		got := [4]float64{all[series.Running].sum, all[series.Queued].sum, all[series.KVUsage].sum, all[series.NewTokens].sum}
		if !sniff([]byte(text)) || got != want || set.Servers[0].Engine != "TensorRT-LLM" {
			t.Errorf("%v of %v, want %v", got, set.Servers, want)
		}
	}
}

// Lines that a library prints in a vLLM worker, with its own timestamp format, belong to the server and to the worker's rank.
func TestLibrariesInWorkers(t *testing.T) {
	const text = `(EngineCore_DP0 pid=9) INFO 03-10 20:08:20 [core.py:27] Waiting for init message from front-end.
(Worker_TP2 pid=5) [2026-03-10 20:11:49] INFO file_baton.py:48: waiting for baton release at /x/lock_module_rmsnorm
(Worker_TP3 pid=6) [2026-03-10 20:16:30] INFO core.py:863: finish build [module_rmsnorm], cost 281.1s
(EngineCore_DP0 pid=9) INFO 03-10 20:18:20 [abstract.py:331] It took 0.555 seconds to fall asleep.
(EngineCore_DP0 pid=9) INFO 03-10 20:19:20 [abstract.py:331] It took 0.4 seconds to wake up tags {'weights'}.
`
	set, _, _ := readText(t, "a.log", strings.NewReader(text))
	var got []string
	for _, x := range set.Instants {
		p := set.Places[x.Place]
		got = append(got, fmt.Sprintf("%s TP%d %s", set.Servers[p.Server].Name, p.Rank.TP, set.Syms.Name(x.Text)))
	}
	want := []string{"a TP2 waits until another process has built a kernel", "a TP3 has built a kernel, after 281 s", "a TP-1 " + series.Sleeps, "a TP-1 " + series.Wakes}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
