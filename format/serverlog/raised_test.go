package serverlog

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/series"
)

// told lists the events in a log, one per line.
func told(t *testing.T, name, log string) string {
	t.Helper()
	if !sniff([]byte(log)) {
		t.Errorf("%s: not recognized", name)
	}
	set, _, all := readText(t, "a.log", strings.NewReader(log))
	var got []string
	for _, x := range set.Instants {
		line := fmt.Sprintf("%s %s %d: %s", x.Kind, cmp.Or(set.Places[x.Place].Rank.String(), "-"), x.Count, set.Syms.Name(x.Text))
		if frames := set.Syms.Name(x.Stack); frames != "" {
			frame, _, _ := strings.Cut(frames, "\n")
			line += " in " + frame
		}
		got = append(got, line)
	}
	if n := all[series.ServerErrors].sum; n > 0 {
		got = append(got, fmt.Sprintf("server errors %.0f", n))
	}
	if n := all[series.Refused].sum; n > 0 {
		got = append(got, fmt.Sprintf("refused %.0f", n))
	}
	if set.Sources[0].Other > 0 {
		got = append(got, fmt.Sprintf("%d unknown lines from line %d on", set.Sources[0].Other, set.Sources[0].FirstOther))
	}
	return strings.Join(got, "\n")
}

// The message of an exception may follow on its line or be the next exception of a chain. Quoted parts of requests are not kept.
func TestRaised(t *testing.T) {
	const begins = "(EngineCore pid=7) INFO 03-11 17:57:09 [core.py:12] starts\n"
	lines := func(text string) string {
		return begins + "(EngineCore pid=7) ERROR 03-11 17:57:10 [core.py:7] " + strings.ReplaceAll(text, "\n", "\n(EngineCore pid=7) ERROR 03-11 17:57:10 [core.py:7] ") + "\n"
	}
	for _, test := range []struct{ name, text, want string }{
		{"a compiler tells in the next line what it met", lines(`Traceback (most recent call last):
  File "/x/torch/output_graph.py", line 5, in call
torch._dynamo.exc.BackendCompilerFailed: backend='a' raised:
OutOfMemory: a tile takes 9 bytes of 8`), "exception - 1: the engine: torch._dynamo.exc.BackendCompilerFailed: backend='a' raised: OutOfMemory: a tile takes 9 bytes of 8 in call (output_graph.py:5)"},
		{"and it is an exception by its name", lines(`Traceback (most recent call last):
  File "/x/torch/output_graph.py", line 5, in call
torch._dynamo.exc.BackendCompilerFailed: backend='a' raised:
RuntimeError: the device is no such one`), "exception - 1: the engine: RuntimeError: the device is no such one in call (output_graph.py:5)"},
		{"nothing follows", lines(`Traceback (most recent call last):
  File "/x/a.py", line 5, in call
RuntimeError: the reason is this:`), "exception - 1: the engine: RuntimeError: the reason is this: in call (a.py:5)"},
		{"the next exception follows", lines(`Traceback (most recent call last):
  File "/x/a.py", line 5, in call
RuntimeError: another program says:
Traceback (most recent call last):
  File "/x/b.py", line 6, in load
ImportError: no module of this name`), "exception - 1: the engine: RuntimeError: another program says: in call (a.py:5)\nexception - 1: the engine: ImportError: no module of this name in load (b.py:6)"},
		{"a message that may quote a request is not gone on with", `[2026-03-11 17:57:10 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/serving.py", line 5, in call
ValueError: this is bad:
CANARY
`, "exception TP0 1: Scheduler: ValueError in call (serving.py:5)"},
		{"a task is canceled as it takes too long", lines(`Traceback (most recent call last):
  File "/x/asyncio/tasks.py", line 5, in wait
asyncio.exceptions.CancelledError

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/engine.py", line 6, in step
asyncio.exceptions.TimeoutError`), "exception - 1: the engine: asyncio.exceptions.TimeoutError in step (engine.py:6)"},
		{"a task is canceled, and nothing tells why", lines(`Traceback (most recent call last):
  File "/x/asyncio/tasks.py", line 5, in wait
asyncio.exceptions.CancelledError`), "exception - 1: the engine: asyncio.exceptions.CancelledError in wait (tasks.py:5)"},
		{"an engine waits for its workers", lines(`Traceback (most recent call last):
  File "/x/executor.py", line 5, in collective_rpc
TimeoutError: RPC call to sample_tokens timed out.`), "timeout - 1: the engine: its workers did not return from sample_tokens in time in collective_rpc (executor.py:5)"},
		{"a step of a model", lines(`Traceback (most recent call last):
  File "/x/worker.py", line 5, in execute_model
  File "/x/attention.py", line 6, in forward
ValueError: 9 tokens do not fit in 8 places`), "exception - 1: the engine: ValueError: 9 tokens do not fit in 8 places in forward (attention.py:6)"},
		{"a grammar in a step of a model", lines(`Traceback (most recent call last):
  File "/x/worker.py", line 5, in execute_model
  File "/x/grammar.py", line 6, in accept
ValueError: CANARY`), "exception - 1: the engine: ValueError in accept (grammar.py:6)"},
		{"a key in a step of a model", lines(`Traceback (most recent call last):
  File "/x/worker.py", line 5, in execute_model
KeyError: 'CANARY'`), "exception - 1: the engine: KeyError in execute_model (worker.py:5)"},
		{"an exception before a message that speaks of a kernel", lines(`Traceback (most recent call last):
  File "/x/bridge.py", line 5, in warm_up
RuntimeError: cannot compile this kernel: no tile fits`), "exception - 1: the engine: RuntimeError: cannot compile this kernel: no tile fits in warm_up (bridge.py:5)"},
		{"a store trims lines: what stands behind a frame is its code", lines(`Traceback (most recent call last):
File "/x/executor.py", line 5, in step
status = queue.get(
File "/x/broadcast.py", line 6, in acquire
raise LookupError
RuntimeError: nothing came`), "exception - 1: the engine: RuntimeError: nothing came in acquire (broadcast.py:6)"},
		{"a format of one's own tells ranks beside the source", `2026-10-20 03:02:22 INFO 31223 [DP3 TP3 EP3 scheduler.py:222] Decode batch, #running-req: 9, #token: 57, token usage: 0.21, cuda graph: True, gen throughput (token/s): 63.45, #queue-req: 0
2026-10-20 03:02:23 ERROR 31223 [DP3 TP3 EP3 scheduler.py:230] Scheduler hit an exception: Traceback (most recent call last):
RuntimeError: it is broken
`, "exception DP3 TP3 EP3 1: Scheduler: RuntimeError: it is broken"},
		{"Ray Serve asks a replica how it does, ROCm has no room, and a port of RDMA goes and comes back", `(ServeController pid=9) WARNING 2026-06-25 04:39:50,101 controller 9 -- Didn't receive health check response for replica Replica(id='a1', deployment='m', app='b') after 10.0s, marking it unhealthy.
:0:rocdevice.cpp            :2984: 118 us:  Callback: Queue 0x7f Aborting with error : HSA_STATUS_ERROR_OUT_OF_RESOURCES: There is no room. It needs some. Code: 0x1008 Available Free mem : 0 MB
node1:31:40 [0] transport/net_ib.cc:9 NCCL WARN NET/IB : mlx5_3:1 Got async error event: port error
node1:31:40 [0] transport/net_ib.cc:9 NCCL WARN NET/IB : mlx5_3:1 Got async error event: port active
`, "unhealthy - 1: Ray Serve's replica a1 does not answer health checks\nexception - 1: a queue of its GPU was aborted: There is no room (HSA_STATUS_ERROR_OUT_OF_RESOURCES)\ncommunication - 1: NCCL warns: NET/IB : mlx5_3:1 Got async error event: port error (node1, GPU 0)"},
		{"a transfer fails for what its server does not do, and one rank learns of it", `[2026-09-02 10:11:02] Prefill transfer failed for request rank=0 req.rid='a' with exception Pages of this size are not sent.
[2026-09-02 10:11:03 TP1] Prefill transfer failed for request rank=1 req.rid='b' req.bootstrap_room=7 with exception KVTransferError(bootstrap_room=7): Failed due to an unknown reason from another rank
`, "transfer failed - 1: sending the KV cache failed: Pages of this size are not sent\ntransfer failed TP1 1: sending the KV cache failed, and the line does not say why"},
		{"Ray leaves out what others say, too", `(RayWorkerWrapper pid=9, ip=10.0.0.5) ERROR 03-11 15:24:45 [worker.py:62] Traceback (most recent call last): [repeated 3x across cluster]
(RayWorkerWrapper pid=9, ip=10.0.0.5) ERROR 03-11 15:24:45 [worker.py:62] RuntimeError: it is broken [repeated 3x across cluster] (Ray says so.)
`, "exception - 1: a worker: RuntimeError: it is broken"},
		{"a call of CUDA ends a process, and a port is taken", begins + `Failed: Cuda error /x/custom_all_reduce.cuh:30 'no peers'
ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use
`, "exception - 1: a failed CUDA call ended it: no peers\nexception - 1: its port is in use"},
		{"a server of diffusion models has stamps without a year", `[12-16 14:26:50] server_args: {"model_path": "x"}
[12-16 14:27:08] Rank 0 scheduler is dead. Please check if there are relevant logs.
[12-16 14:27:10.5] Exit code: -9
`, "crash - 1: a scheduler died\ncrash - 1: a process ended with exit code -9 (killed, often because the host ran out of memory)"},
		{"a store shows the newest line first", `[2026-04-04 06:24:51] Received sigquit from a child process. It usually means the child failed.
KeyError: 'layers.78'
param = params_dict[name]
File "/x/python/sglang/srt/models/llama.py", line 503, in load_weights
[2026-04-04 06:24:50 TP7] Scheduler hit an exception: Traceback (most recent call last):
[2026-04-04 06:22:33 TP7] Init torch distributed ends. mem usage=1.97 GB
[2026-04-04 06:22:32 TP7] Init torch distributed begin.
`, "start TP7 1: sets up communication\nexception TP7 1: Scheduler: KeyError: 'layers.78' in load_weights (llama.py:503)\ncrash - 1: a process of the server failed, and all end"},
		{"a store shows the newest record first, which may have several lines", `[2026-04-04 06:24:51] Received sigquit from a child process. It usually means the child failed.
[2026-04-04 06:24:50 TP7] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/python/sglang/srt/models/llama.py", line 503, in load_weights
    param = params_dict[name]
KeyError: 'layers.78'
[2026-04-04 06:22:33 TP7] Init torch distributed ends. mem usage=1.97 GB
[2026-04-04 06:22:32 TP7] Init torch distributed begin.
`, "start TP7 1: sets up communication\nexception TP7 1: Scheduler: KeyError: 'layers.78' in load_weights (llama.py:503)\ncrash - 1: a process of the server failed, and all end"},
		{"a discovery finds nobody to the end of the log", `2026-05-06T10:11:00.100000Z  INFO dynamo_runtime::discovery::kube: X::list returning 2 instances for query=All
2026-05-06T10:12:00.100000Z  INFO dynamo_runtime::discovery::kube: X::list returning 0 instances for query=All
2026-05-06T10:13:00.100000Z  INFO dynamo_runtime::discovery::kube: X::list returning 0 instances for query=All
`, "refusal - 2: its discovery of servers finds none from then on"},
		{"a discovery finds its servers in the end", `2026-05-06T10:12:00.100000Z  INFO dynamo_runtime::discovery::kube: X::list returning 0 instances for query=All
2026-05-06T10:13:00.100000Z  INFO dynamo_runtime::discovery::kube: X::list returning 0 instances for query=All
2026-05-06T10:14:00.100000Z  INFO dynamo_runtime::discovery::kube: X::list returning 2 instances for query=All
`, ""},
		{"a worker of RunPod tells what it did not catch", `a1b2[info]INFO 03-24 18:13:28 [model_runner.py:1110] Starting to load model x...
a1b2[error]Uncaught exception | <class 'ValueError'>; XModel has no vLLM implementation; use another.; <traceback object at 0x7f5b>;
`, "start - 1: loads weights\nexception - 1: ValueError: XModel has no vLLM implementation; use another"},
		{"logits that are no numbers", "[2026-11-08 04:44:04 TP1] Detected errors during sampling! NaN in the logits.\n", "complaint TP1 1: an error: its logits are NaN: what it samples by them is of no use"},
		{"an engine of vLLM begins, and stays where it asks which GPUs see each other", `INFO 07-29 08:28:17 llm_engine.py:176] Initializing an LLM engine (v0.5) with config: model='a'
INFO 07-29 08:28:18 pynccl.py:63] vLLM is using nccl==2.22.3
INFO 07-29 08:28:19 custom_all_reduce_utils.py:212] generating GPU P2P access cache in /x/cache.json
`, "start - 1: starts its engine\nstart - 1: sets up communication\nstart - 1: tries which GPUs reach each other"},
	} {
		if text := told(t, test.name, test.text); text != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, text, test.want)
		}
	}
}
