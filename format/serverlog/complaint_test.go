package serverlog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Messages that a program logs as errors are kept in its words, whatever wraps the line, without anything they may quote.
func TestComplaints(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"an engine of vLLM", `(EngineCore pid=7) INFO 03-11 17:57:09 [core.py:12] starts
(EngineCore pid=7) ERROR 03-11 17:57:10 [executor.py:7] Disk 3 of 'pool' is gone
(EngineCore pid=7) ERROR 03-11 17:57:12 [executor.py:7] Disk 14 of 'pool' is gone
(EngineCore pid=7) ERROR 03-11 17:57:12 [executor.py:7]     at a place
`, "17:57:10 complaint 2: an error: Disk 3 of 'pool' is gone"},
		{"what handles requests", `(APIServer pid=7) ERROR 03-11 17:57:10 [serving_chat.py:7] Cannot render 'CANARY'
(APIServer pid=7) ERROR 03-11 17:57:11 [serving_chat.py:7] Bad prompt: CANARY
`, "17:57:10 complaint 1: an error: Cannot render\n17:57:11 complaint 1: an error: Bad prompt"},
		{"a library in C++", `I0325 09:33:40.551047  8274 transfer_engine.cpp:1] starts
E0325 09:33:41.551047  8274 transfer_engine.cpp:9] Cannot bind 0x7fa3
E0325 09:33:41.651047  8274 transfer_engine.cpp:9] Cannot bind 0x8fb4
`, "09:33:41 complaint 2: an error: Cannot bind 0x7fa3"},
		{"a linker, before an engine ends", `(EngineCore pid=7) INFO 03-11 17:57:09 [core.py:12] compiles
/usr/bin/ld: cannot find -lnothing: No such file or directory
(EngineCore pid=7) ERROR 03-11 17:57:10 [core.py:12] EngineCore failed to start.
`, "17:57:10 crash 1: its engine did not start\n17:57:09 complaint 1: an error: /usr/bin/ld: cannot find -lnothing: No such file or directory"},
		{"records in JSON", `{"time":"2026-03-11T17:57:09.5Z","level":"INFO","message":"registers","target":"dynamo_runtime::x"}
{"time":"2026-03-11T17:57:10.5Z","level":"ERROR","message":"lease 5 is gone: prompt=CANARY","target":"dynamo_runtime::x"}
{"time":"2026-03-11T17:57:11.5Z","level":"INFO","message":"Scheduler hit an exception: Traceback (most recent call last):\n","target":"dynamo_runtime::x"}
`, "17:57:11 exception 1: Scheduler: an exception without an end\n17:57:10 complaint 1: an error: lease 5 is gone: prompt"},
		{"Python's logging, with a name", `2026-06-27 12:57:50,690 - __main__ - INFO - Traceback (most recent call last):
2026-06-27 12:57:51,690 - __main__ - INFO -   File "/x/vllm/v1/utils.py", line 494, in wait
2026-06-27 12:57:51,690 - __main__ - INFO -     raise RuntimeError("It is gone")
2026-06-27 12:57:51,690 - __main__ - INFO - RuntimeError: It is gone
`, "12:57:50 traceback 1: RuntimeError: It is gone"},
		{"the end of a traceback", `(Worker_TP1 pid=404)   File "/x/lmcache/adapter.py", line 8, in register
(Worker_TP1 pid=404)     raise ConnectionError(
(Worker_TP1 pid=404) ConnectionError: Nobody answers
[rank0]:[W519 02:22:44.186903210 Types.cpp:16] over
`, "02:22:44 exception 1: a worker: ConnectionError: Nobody answers"},
		{"a traceback of a process that said something before", `(EngineCore pid=7) INFO 11-27 10:18:35 [core.py:7] starts
(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7]   File "/x/core.py", line 5, in step
`, ""},
		{"a dead engine, as Ray Serve has it", `(ServeReplica:a:b pid=14)     raise self._format_exception(outputs) from None
(ServeReplica:a:b pid=14) vllm.v1.engine.exceptions.EngineDeadError: it is dead
(ServeReplica:a:b pid=14) ERROR 2025-05-23 00:42:04,876 a_b r1 700823bf -- A failure
`, "00:42:04 traceback 1: vllm.v1.engine.exceptions.EngineDeadError\n00:42:04 complaint 1: an error: A failure"},
		{"a raylet", `(raylet) Task f failed. It is tried again
2026-02-02 12:53:27,515 ERROR exceptions.py:73 -- The node is gone
`, "12:53:27 complaint 1: an error: (raylet) Task f failed. It is tried again\n12:53:27 complaint 1: an error: The node is gone"},
		{"LMDeploy", `2026-05-06 08:31:27,135 - lmdeploy - WARNING - no flash attention
[TM][FATAL] kernels/a.cu(212): Check failed: a == b
`, "08:31:27 complaint 1: an error: [TM][FATAL] kernels/a.cu(212): Check failed: a == b"},
		{"a worker, as the engine has it", `ERROR 05-28 13:20:51 [core.py:9] RuntimeError: Worker failed with error 'the device is full', please check the stack trace above for the root cause
`, "13:20:51 traceback 1: a worker failed: the device is full"},
		{"what NCCL says last", `(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] RuntimeError: Worker failed with error 'NCCL error in: /x/NCCLUtils.cpp:77, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.26
(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] Last error:
(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] No space for /dev/shm/nccl-1', please check the stack trace above
`, "10:18:36 traceback 1: a worker failed: NCCL error: unhandled system error: No space for /dev/shm/nccl-1"},
		{"an exception before it serves", `(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] Traceback (most recent call last):
(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7]   File "/x/worker.py", line 5, in load_model
(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7]   File "/x/loader.py", line 7, in check
(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] ValueError: 3 weights are not there
`, "10:18:36 exception 1: the engine: ValueError: 3 weights are not there"},
		{"a check of the engine's own state", `(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] Traceback (most recent call last):
(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7]   File "/x/scheduler.py", line 5, in step
(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] AssertionError: 3 blocks are free twice
`, "10:18:36 exception 1: the engine: AssertionError: 3 blocks are free twice"},
		{"a check of a request", `(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] Traceback (most recent call last):
(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7]   File "/x/tokenizer_manager.py", line 5, in check
(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] AssertionError: CANARY
`, "10:18:36 exception 1: the engine: AssertionError"},
		{"a traceback whose lines a store trimmed", `ERROR 2026-11-27T10:18:36.1Z [2026-11-27 10:18:36 TP7] Scheduler hit an exception: Traceback (most recent call last):
ERROR 2026-11-27T10:18:36.1Z File "/x/scheduler.py", line 5, in step
ERROR 2026-11-27T10:18:36.1Z self.check()
ERROR 2026-11-27T10:18:36.1Z AssertionError: 3 blocks are free twice
`, "10:18:36 exception 1: Scheduler: AssertionError: 3 blocks are free twice"},
		{"Ray Serve, until 2.40", `ERROR 2026-11-27 10:18:36,862 TextRanker j28b73mh af31c081 /serve replica.py:359 - It is gone
  File "/x/ray/serve/_private/utils.py", line 168, in wrap_to_ray_error
`, "10:18:36 complaint 1: an error: It is gone"},
		{"a child of torchrun, until 2.3", `WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 2410413 closing signal SIGTERM
ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 (pid: 2410412) of binary: /x/bin/python
`, "00:00:00 crash 1: its process ended with exit code -9 (killed, often because the host ran out of memory), says torchrun"},
		{"a module of Rust", `2023-10-16T03:01:17.366570Z ERROR infer:send_error: text_generation_router::infer: router/src/infer.rs:588: The shard is gone
2023-10-16T03:01:17.466570Z ERROR dynamo_runtime::a: it is gone
`, "03:01:17 complaint 1: an error: The shard is gone\n03:01:17 complaint 1: an error: it is gone"},
		{"a container of a pod, by stern", `decode-6c8f-vh88z routing-proxy E1127 10:18:36.427556       1 proxy.go:268] "vLLM is not there" err="connection refused"
decode-6c8f-vh88z vllm (APIServer pid=1) INFO:     Finished server process [1]
`, "10:18:36 complaint 1: an error: vLLM is not there: connection refused"},
		{"a fault behind a progress bar", ` 33%|████Memory access fault by GPU node-3 (Agent handle: 0x5a) on address 0x70. Reason: Write access to a read-only page.:54:01, 26.24s/it]
`, "00:00:00 exception 1: a memory access fault of GPU node 3"},
		{"a process that only the first line names", `(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] Traceback (most recent call last):
  File "/x/core.py", line 5, in step
KeyError: None
`, "10:18:36 exception 1: the engine: KeyError"},
		{"a stack in C++", `(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] frame #15: VLLM::Worker_TP1() [0x5551f6]
`, ""},
		{"Dynamo, as it is told to end", `2026-05-15T08:05:11.136Z  INFO worker.graceful_shutdown: [VllmWorker:1] Received shutdown signal, shutting down
2026-05-15T08:05:11.136Z ERROR dynamo_runtime::a: it is gone
`, "08:05:11 stop 1: was told to shut down"},
		{"what waits for a server", `2026-03-18 10:24:40,134 - __main__ - WARNING - Attempt 56: Please wait for sglang server to become ready...
`, ""},
		{"one that may quote a request", `(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] Traceback (most recent call last):
(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7]   File "/x/core.py", line 5, in step
(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] ValueError: CANARY
`, "10:18:36 exception 1: the engine: ValueError"},
		{"what an engine had scheduled as it failed", `(EngineCore pid=7) 2025-11-27 10:18:35 NIXL INFO starts
(EngineCore pid=7) ERROR 11-27 10:18:36 [dump_input.py:82] SchedulerStats(num_running_reqs=0)
(EngineCore pid=7) ERROR 11-27 10:18:36 [core.py:7] EngineCore encountered a fatal error.
`, "10:18:36 crash 1: its engine failed"},
		{"a store of KV caches alone", `I0522 07:37:01.540355 28222 rpc_service.cpp:265] Metrics: 97 %
`, ""},
		{"what sounds worse than it is", `(EngineCore pid=7) ERROR 03-11 17:57:10 [core.py:7] CUDA kernel errors might be asynchronously reported at some other API call
(APIServer pid=7) ERROR 03-11 17:57:10 [serving_chat.py:7] Error with model object='error' message='The model does not exist.'
(EngineCore pid=7) WARNING 03-11 17:57:10 [core.py:7] A timeout of 3 s is set
`, ""},
	} {
		if !sniff([]byte(test.text)) {
			t.Errorf("%s: not recognized", test.name)
		}
		set, _, _ := readText(t, "a.log", strings.NewReader(test.text))
		var got []string
		for _, x := range set.Instants {
			got = append(got, fmt.Sprintf("%s %s %d: %s", clockText(x.Time), x.Kind, x.Count, set.Syms.Name(x.Text)))
		}
		if text := strings.Join(got, "\n"); !sameLines(text, test.want) {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, text, test.want)
		}
		for _, name := range set.Syms.Names() {
			if strings.Contains(name, canary) {
				t.Errorf("%s: a prompt is kept: %q", test.name, name)
			}
		}
	}
}

// clockText is the time of day of t.
func clockText(t trace.Time) string {
	s := int64(t / 1e9 % 86400)
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// sameLines reports whether two texts have the same lines, in any order.
func sameLines(a, b string) bool {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}
