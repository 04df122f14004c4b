package serverlog

import "testing"

// Events are described as an engineer would read them from the log. The keys and their order are
// from real logs of many releases, the values are not.
func TestIncidents(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"all TP ranks tell of a retraction, as it was worded until 2025-02", `[2025-01-05 11:58:44 TP0] Decode out of memory happened. #retracted_reqs: 2, #new_token_ratio: 0.1000 -> 0.9000
[2025-01-05 11:58:44 TP3] Decode out of memory happened. #retracted_reqs: 2, #new_token_ratio: 0.1000 -> 0.9000
[2025-01-05 11:58:44 TP1] Decode out of memory happened. #retracted_reqs: 2, #new_token_ratio: 0.1000 -> 0.9000
[2025-01-05 11:58:50 TP1] Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.1000 -> 0.9000
`, `retraction TP0 2: the KV cache is full: retracts requests
retraction TP1 1: the KV cache is full: retracts requests`},
		{"ROCm ends a scheduler", `[2026-04-13 10:11:03 TP0] Decode batch, #running-req: 3, #token: 3240, token usage: 0.00, cuda graph: True, gen throughput (token/s): 171.00, #queue-req: 0
:0:rocdevice.cpp            :3586: 118 us:  Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016
Memory access fault by GPU node-4 (Agent handle: 0x55) on address 0x7f0. Reason: Unknown.
`, `exception - 1: a queue of its GPU was aborted: An HSAIL operation resulted in a hardware exception (HSA_STATUS_ERROR_EXCEPTION)
exception - 1: a memory access fault of GPU node 4`},
		{"an NPU of Ascend ends a server, and its stamps are of a form of their own", `[rank7]:[E1212 12:10:10.131512730 compiler_depend.ts:1675] [Rank 7] HCCL watchdog thread terminated with exception:
[ERROR] 2025-12-12-12:10:11 (PID:285, Device:4, RankID:-1) ERR00100 PTA call acl api failed
[Error]: The aicore execution times out.
        Rectify the fault based on the error information in the ascend log.
The error from device(chipId:2, dieId:0), serial number is 17, hccl fftsplus task timeout occurred during task execution, stream_id:9, stuck notify num:1, timeout=1836s.[FUNC:Process]
EI9999: 2025-12-12-12:10:11.358.410  The error from device(chipId:3, dieId:0), serial number is 9, hccl fftsplus task timeout occurred during task execution, stream_id:5, stuck notify num:1, timeout:30min(default).[FUNC:Process]
[rank1]: EI0009: [PID: 22] 2025-12-12-12:10:12.119.066 Transport init error. Reason: [Create][DestLink]Create Dest error! dst_rank[0]-remote_ip_addr[172.16.0.114]
`, `exception rank 7 1: PyTorch ends it, as its watchdog met an exception
exception - 1: its NPU: The aicore execution times out
timeout - 1: a collective of HCCL timed out after 1836 s
timeout - 1: a collective of HCCL timed out after 30 min
communication - 1: HCCL: Transport init error, to 172.16.0.114`},
		{"an exception of Python has the number of an error of an NPU, and what follows says what it is", `[2026-01-15 13:43:22 DP2 TP10 EP10] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl/srt/managers/scheduler.py", line 3015, in run_scheduler_process
    scheduler.event_loop_overlap()
RuntimeError: NPU function error: c10_npu::acl::Synchronize(stream), error code is 507035
[ERROR] 2026-01-15-13:43:22 (PID:337412, Device:10, RankID:-1) ERR00100 PTA call acl api failed
[Error]: The vector core execution is abnormal. 
`, `exception DP2 TP10 EP10 1: Scheduler: RuntimeError: NPU function error: c10_npu::acl::Synchronize(stream), error code is 507035: The vector core execution is abnormal in run_scheduler_process (scheduler.py:3015)`},
		{"Mooncake does not find the other side, and LMCache has no room", `[2025-04-14 03:56:38 TP0] Prefill batch. #new-seq: 1, #new-token: 10, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, 
E0414 03:56:41.856248 77969 transfer_metadata_plugin.cpp:173] Unexpected code in http response, GET http://10.6.1.5:8998/metadata response code: 404 response body: metadata not found
W0414 03:56:41.856264 77969 transfer_metadata.cpp:153] Failed to retrieve segment descriptor, name 10.6.1.6_58f33e4e-7c3e
E0414 03:56:42.778028 2548307 ascend_direct_transport.cpp:820] Failed to connect to target: 172.16.1.9:25389, status: 103900
I0414 03:56:43.617945 803444 transfer_engine_py.cpp:454] Sync batch data transfer timeout after 33061142969ns
E0414 03:56:44.929325 217299 tcp_transport.cpp:393] TcpTransport: ASIO exception: connect: Connection refused
[2025-04-14 03:56:45,155] LMCache WARNING: Failed to allocate memory for tensor(torch.Size([2, 32]), torch.bfloat16) because no memory is available (memory_management.py:672:lmcache.v1.memory_management)
`, `transfer failed - 1: no memory of 10.6.1.6 takes transfers, says Mooncake's metadata server: has it ended, or does it use another one?
transfer failed - 1: cannot connect to 172.16.1.9 for a transfer
transfer failed - 1: a Mooncake transfer timed out after 33 s
transfer failed - 1: sending over TCP failed: nothing takes connections at the other side
transfer failed - 1: LMCache has no room in its own memory: what it should load or keep is lost`},
		{"Mooncake finds no port to connect from, in a line that somebody set in bold", `p-0  | [2026-04-03 16:02:25] Prefill batch, #new-seq: 1, #new-token: 27, #cached-token: 8, token usage: 0.25, #running-req: 0, #queue-req: 8, #prealloc-req: 2, #inflight-req: 8, cuda graph: False, input throughput (token/s): 47.00
**p-0  | E0403 16:02:26.014493   391 tcp_transport.cpp:542] TcpTransport::startTransfer encountered an ASIO exception. Slice details - length: 56, opcode: 1. Exception: connect: Cannot assign requested address**
`, `transfer failed - 1: sending over TCP failed: its host has no port left to connect from`},
		{"only the advice behind requests that were given up is there", `[2026-08-03 07:32:08 TP6 EP6] Some requests fail to receive KV Cache transfer done signal after bootstrapping.
[2026-08-03 07:32:08 TP1 EP1] Some requests fail to receive KV Cache transfer done signal after bootstrapping.
`, `transfer failed - 1: requests did not get their KV cache in time`},
		{"vLLM releases what no decode server fetched, and cannot shake hands", `(EngineCore_DP0 pid=37) WARNING 09-04 16:35:21 [nixl_connector.py:1048] Releasing expired KV blocks for request cmpl-3d which were retrieved by 0 decode worker(s) within 120 seconds.
(EngineCore_DP0 pid=37) ERROR 09-04 16:35:21 [nixl_connector.py:1068] Potentially invalid KV blocks for unrecognized request cmpl-3d were retrieved by a decode worker. They may have expired.
(EngineCore_DP0 pid=38) ERROR 09-04 16:35:22 [distributed/.../v1/nixl_connector.py:820] zmq.error.Again: Resource temporarily unavailable
(EngineCore_DP0 pid=38) ERROR 09-04 16:35:22 [distributed/.../v1/nixl_connector.py:832] Handshake failed for request cmpl-6e, marking blocks as invalid
E0904 16:35:23.494601 nixl_agent.cpp:631] prepXferDlist: failed to prepare the descriptors for any of the specified or potential backends for agent ''
`, `transfer failed - 1: no decode server fetched a KV cache within 120 s: it is lost
transfer failed - 1: a decode server fetched a KV cache that was given up before: its answer may be wrong
traceback - 1: zmq.error.Again
transfer failed - 1: a NIXL transfer failed: handshake failed
transfer failed - 1: a NIXL transfer failed: no backend takes the memory of both sides`},
		{"the excerpt has the last line of an exception only", `ERROR 06-03 08:28:11 [core.py:517] nixl._bindings.nixlBackendError: NIXL_ERR_BACKEND
ERROR 06-03 08:28:11 [async_llm.py:420] AsyncLLM output_handler failed.
`, `traceback - 1: nixl._bindings.nixlBackendError: NIXL_ERR_BACKEND
crash - 1: its engine is dead; see what happened before`},
		{"a worker of vLLM tells its rank by its name", `(Worker_DP0_TP5_EP5 pid=25) ERROR 12-03 03:24:54 [mooncake_connector.py:410] Mooncake transfer failed for request cmpl-09
(VllmWorker TP1 pid=75) ERROR 12-03 03:24:55 [mooncake_connector.py:410] Mooncake transfer failed for request cmpl-0a
(EngineCore_DP0 pid=20) ERROR 12-03 03:24:56 [mooncake_connector.py:410] Mooncake transfer failed for request cmpl-0b
`, `transfer failed DP0 TP5 EP5 1: a Mooncake transfer failed
transfer failed TP1 1: a Mooncake transfer failed
transfer failed - 1: a Mooncake transfer failed`},
		{"an excerpt begins with the last line of an exception", `ValueError: token_to_kv_pool_allocator memory leak detected! full_available_size=60, full_evictable_size=39
KeyError: 'a prompt'
[2026-01-04 10:57:43 TP3] Scheduler hit an exception: Traceback (most recent call last):
`, `traceback - 1: ValueError: token_to_kv_pool_allocator memory leak detected! full_available_size=60, full_evictable_size=39
exception TP3 1: Scheduler: an exception without an end
1 unknown lines from line 2 on`},
		{"vLLM until 0.8, whose workers and server end, and PyTorch until 2.1", `[rank1]:[F ProcessGroupNCCL.cpp:1169] [PG 2 Rank 1] [PG 2 Rank 1] ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress in monitoring enqueued collectives.
ERROR 08-07 18:42:46 multiproc_worker_utils.py:120] Worker VllmWorkerProcess pid 160 died, exit code: -6
CRITICAL 08-07 18:42:47 launcher.py:72] AsyncLLMEngine has failed, terminating server process
`, `timeout rank 1 1: NCCL's watchdog itself is stuck for 600 s: a CUDA or NCCL call does not return
exception - 1: a worker died with exit code -6 (aborted)
crash - 1: its engine failed, and the server ends`},
		{"nobody caught what a rank raised, behind a progress bar, and a class is called as no other", `[2026-04-13 10:11:03 TP1] Load weight end. type=A, dtype=torch.bfloat16, avail mem=63.72 GB
Processed prompts:   0%|      | 0/4 [00:00<?, ?it/s][rank1]: Traceback (most recent call last):
[rank1]:   File "/x/vllm/loader.py", line 3, in load_weights
[rank1]:     param = params[name]
[rank1]: KeyError: 'layers.0.mlp'
[rank3]: Traceback (most recent call last):
[rank3]:   File "/x/triton/compiler.py", line 5, in run
[rank3]: triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 9, Hardware limit: 8
`, `start TP1 1: has its weights
exception rank 1 1: KeyError: 'layers.0.mlp' in load_weights (loader.py:3)
exception rank 3 1: triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 9, Hardware limit: 8 in run (compiler.py:5)`},
		{"each line of a traceback has a stamp", `[2026-04-13 10:11:03] Traceback (most recent call last):
[2026-04-13 10:11:03]   File "/x/sglang/parser.py", line 3, in structure_info
[2026-04-13 10:11:03]     raise NotImplementedError()
[2026-04-13 10:11:03] NotImplementedError
`, `traceback - 1: NotImplementedError in structure_info (parser.py:3)`},
		{"exceptions come as a group, and Ray prints that of a task behind that of who waits for it", `(ServeReplica:a:b pid=14) ERROR 2026-05-23 00:42:04,876 a_b r1 700823bf -- Exception in ASGI application
  + Exception Group Traceback (most recent call last):
  |   File "/x/starlette/_utils.py", line 8, in collapse
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/x/vllm/protocol.py", line 5, in check
    | AttributeError: 'bytes' object has no attribute 'get'
    +------------------------------------
Traceback (most recent call last):
  File "/x/ray/worker.py", line 2, in get
    raise value.as_instanceof_cause()
ray.exceptions.RayTaskError(ValueError): ray::init() (pid=9, ip=10.0.0.1)
  File "/x/vllm/ray_utils.py", line 3, in load_model
    raise ValueError(
ValueError: Current node has no TPU
`, `complaint - 1: an error: Exception in ASGI application
traceback - 1: AttributeError: 'bytes' object has no attribute 'get' in check (protocol.py:5)
traceback - 1: ValueError: Current node has no TPU in load_model (ray_utils.py:3)`},
		{"vLLM only advises what to do without memory, quotes a prompt, and PyTorch cut off why it ends a process", `INFO 08-29 19:17:16 model_runner.py:12] CUDA graphs take more. If you are running out of memory, consider to enforce eager mode.
ERROR 08-29 19:17:17 [core.py:5] RuntimeError: Failed to apply AProcessor on data={'text': 'CANARY'} with kwargs={}
[rank6]:[E829 19:18:36.730311765 ProcessGroupNCCL.cpp:616] [Rank 6] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600050 milliseconds before timing out.
[rank6]:[E829 19:18:36.732277782 ProcessGroupNCCL.cpp:1595] [PG ID 0 PG GUID 0(default_pg) Rank 6] Process group watchdog thread terminated with exception: [Rank 6] W
`, `traceback - 1: RuntimeError: Failed to apply AProcessor
timeout rank 6 1: a collective timed out: ALLREDUCE number 2`},
		{"Ray says why an actor is dead", `(Handler pid=97598) ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.
(Handler pid=97598) The actor is dead because it was killed by ` + "`ray.kill`" + `.
(ServeController pid=97521) 2022-05-03 02:02:01,531     INFO deployment_state.py:1211 -- Adding 1 replicas to deployment 'LongCall'.
`, "traceback - 1: ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task\nexception - 1: an actor of Ray is dead: it was killed by `ray.kill`"},
		{"only Ray tells of a worker", `(EngineCore pid=1879) INFO 03-29 12:59:40 [ray_utils.py:402] Creating a new placement group.
(EngineCore pid=1879) (raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker. Worker IP address: 10.0.13.226 Worker port: 10002 Worker PID: 442 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.
(raylet, ip=10.0.13.227) A worker died or was killed while executing a task by an unexpected system error. Worker IP address: 10.0.13.227 Worker port: 10002 Worker PID: 443 Worker exit type: SYSTEM_ERROR
`, `exception - 1: Ray lost a worker, process 442 on 10.0.13.226: it was killed, or crashed
exception - 1: Ray lost a worker, process 443 on 10.0.13.227: it was killed, or crashed`},
		{"graphs do not fit, and the exception is of no type of its own", `[2025-06-19 15:12:27 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=2.85 GB
[2025-06-19 15:12:28 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl/srt/model_executor/cuda_graph_runner.py", line 342, in __init__
    raise Exception(
Exception: Capture CUDA graph failed: CUDA out of memory. Tried to allocate 448.00 MiB.
`, `start TP0 1: captures graphs
out of memory TP0 1: Scheduler: Exception: Capture CUDA graph failed: CUDA out of memory. Tried to allocate 448.00 MiB in __init__ (cuda_graph_runner.py:342)`},
		{"LMCache behind a syslog whose months are French", `déc. 19 02:07:16 n1 bash[22]: (EngineCore_DP0 pid=22) [2025-12-19 02:07:16,164] LMCache WARNING: The cache block is in the storage, but it can't be retrieved (cache_engine.py:1473:lmcache.v1.cache_engine)
déc. 19 02:07:16 n1 bash[22]: (EngineCore_DP0 pid=22) [2025-12-19 02:07:16,170] LMCache ERROR: Request chatcmpl-6bThe number of retrieved tokens is less than the expected number of tokens! This should not happen! (vllm_v1_adapter.py:1032:lmcache)
déc. 19 02:07:16 n1 bash[22]: (EngineCore_DP0 pid=22) [2025-12-19 02:07:16,170] LMCache ERROR: Num retrieved tokens: 0, num expected tokens: 16 (vllm_v1_adapter.py:1038:lmcache)
`, `transfer failed - 1: LMCache gave back less than it had said it holds`},
		{"Mooncake has only TCP, and the log no batch", `E0612 14:05:26.176716 1192408 tcp_transport.cpp:136] Session::writeBody failed. Error: Bad address (value: 14), total_transferred_bytes_: 0, current transferred_bytes: 0
[2025-06-12 14:05:26] Prefill transfer failed for request rank=0 req.rid='e3' req.bootstrap_room=88 with exception KVTransferError(bootstrap_room=88): Failed to send kv chunk of 88 to 10.0.0.78:41231
`, `transfer failed - 1: sending the KV cache failed: a part of it could not be sent
transfer failed - 1: sending over TCP failed: the kernel cannot read the memory, as it is with that of a device`},
		{"an exception of no scheduler", `[2026-08-02 10:15:03 TP0] Decode batch, #running-req: 1, #token: 9, token usage: 0.01, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0
Traceback (most recent call last):
  File "/sgl/srt/disaggregation/nixl/conn.py", line 1153, in transfer_worker
    handles = self.send(
  File "/sgl/srt/disaggregation/nixl/conn.py", line 2062, in send
    raise RuntimeError(
RuntimeError: both sides must have as many ranks.
[2026-08-02 10:15:04 TP0] Decode batch, #running-req: 1, #token: 9, token usage: 0.01, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0
`, `traceback TP0 1: RuntimeError: both sides must have as many ranks in send (conn.py:2062)`},
		{"an engine of vLLM, and who learns of it", `ERROR 07-20 13:02:07 [core.py:588] EngineCore encountered a fatal error.
ERROR 07-20 13:02:07 [core.py:588] Traceback (most recent call last):
ERROR 07-20 13:02:07 [core.py:588]   File "/vllm/v1/engine/core.py", line 579, in run_engine_core
ERROR 07-20 13:02:07 [core.py:588]     engine_core.run_busy_loop()
ERROR 07-20 13:02:07 [core.py:588] RuntimeError: CUDA error: device-side assert triggered
ERROR 07-20 13:02:08 [async_llm.py:420] AsyncLLM output_handler failed.
ERROR 07-20 13:02:08 [async_llm.py:420] Traceback (most recent call last):
ERROR 07-20 13:02:08 [async_llm.py:420]   File "/vllm/v1/engine/async_llm.py", line 379, in output_handler
ERROR 07-20 13:02:08 [async_llm.py:420] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.
INFO:     10.0.0.1:38700 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error
INFO:     10.0.0.1:38701 - "GET /health HTTP/1.1" 503 Service Unavailable
`, `crash - 1: its engine failed
traceback - 1: RuntimeError: CUDA error: device-side assert triggered in run_engine_core (core.py:579)
crash - 1: its engine is dead; see what happened before
crash - 1: its engine is dead; see what happened before
server errors 1`},
		{"processes of vLLM between each other", `(EngineCore pid=175) ERROR 05-04 14:59:18 [core.py:1150] EngineCore encountered a fatal error.
(EngineCore pid=175) ERROR 05-04 14:59:18 [core.py:1150] Traceback (most recent call last):
(APIServer pid=100) ERROR 05-04 14:59:18 [serving.py:1137] Traceback (most recent call last):
(EngineCore pid=175) ERROR 05-04 14:59:18 [core.py:1150]   File "/vllm/v1/engine/core.py", line 1140, in run_engine_core
(APIServer pid=100) ERROR 05-04 14:59:18 [serving.py:1137]   File "/vllm/serving.py", line 513, in stream
(EngineCore pid=175) ERROR 05-04 14:59:18 [core.py:1150] torch.AcceleratorError: CUDA error: an illegal memory access was encountered
(EngineCore pid=175) ERROR 05-04 14:59:18 [core.py:1150] CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
(APIServer pid=100) ERROR 05-04 14:59:18 [serving.py:1137] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.
`, `crash - 1: its engine failed
exception - 1: the engine: torch.AcceleratorError: CUDA error: an illegal memory access was encountered in run_engine_core (core.py:1140)
crash - 1: its engine is dead; see what happened before`},
		{"vLLM is stopped, behind Docker Compose", `vllm-1  | (EngineCore pid=501) INFO 06-22 11:29:08 [multiproc_executor.py:426] [shutdown] Executor: waiting for worker exit count=2
vllm-1  | (APIServer pid=1) ERROR 06-22 11:29:08 [async_llm.py:704] AsyncLLM output_handler failed.
vllm-1  | (APIServer pid=1) ERROR 06-22 11:29:08 [async_llm.py:704] Traceback (most recent call last):
vllm-1  | (APIServer pid=1) ERROR 06-22 11:29:08 [async_llm.py:704]   File "/vllm/v1/engine/async_llm.py", line 660, in output_handler
vllm-1  | (APIServer pid=1) ERROR 06-22 11:29:08 [async_llm.py:704] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.
`, `stop - 1: was told to shut down`},
		{"a transfer that another rank knows more of", `[2025-09-16 16:23:13 TP1] Decode transfer failed for request rank=1 decode_req.req.rid='a' decode_req.req.bootstrap_room=7 with exception KVTransferError(bootstrap_room=7): Failed due to an unknown reason from another rank
[2025-09-16 16:23:13 TP2] Decode transfer failed for request rank=2 decode_req.req.rid='a' decode_req.req.bootstrap_room=7 with exception KVTransferError(bootstrap_room=7): Failed due to an unknown reason from another rank
`, `transfer failed TP1 1: receiving the KV cache failed, and the line does not say why`},
		{"preemptions and transfers of vLLM's engines, as its statistics have them", `(APIServer pid=42) INFO 07-12 17:42:04 [loggers.py:271] Engine 001: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 5.0 tokens/s, Running: 3 reqs, Waiting: 1 reqs, Deferred: 1 reqs, Preemptions: 4, GPU KV cache usage: 99.5%, Prefix cache hit rate: 0.0%, External prefix cache hit rate: 90.0%
(APIServer pid=42) INFO 07-12 17:42:04 [metrics.py:101] KV Transfer metrics: Num successful transfers=4, Avg xfer time (ms)=1.3, P90 xfer time (ms)=2.6, Avg MB per transfer=2.25, Throughput (MB/s)=1629.5, Num failed transfers=2
(APIServer pid=42) INFO 07-12 17:42:14 [metrics.py:101] KV Transfer metrics: Num successful transfers=4, Avg xfer time (ms)=1.3, Num failed transfers=0
`, `retraction DP1 4: the KV cache is full: preempts requests
transfer failed DP1 2: transfers of KV caches failed, as its metrics say`},
		{"a worker of vLLM before V1", `(VllmWorkerProcess pid=73) ERROR 06-12 01:30:49 multiproc_worker_utils.py:225] Exception in worker VllmWorkerProcess while processing method start_worker_execution_loop: timed out, Traceback (most recent call last):
(VllmWorkerProcess pid=73) ERROR 06-12 01:30:49 multiproc_worker_utils.py:225]   File "/vllm/executor/multiproc_worker_utils.py", line 222, in _run_worker_process
(VllmWorkerProcess pid=73) ERROR 06-12 01:30:49 multiproc_worker_utils.py:225] RuntimeError: [unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete
`, `exception - 1: a worker: RuntimeError: [unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete in _run_worker_process (multiproc_worker_utils.py:222)`},
		{"a worker of vLLM before V1, in an excerpt", `(VllmWorkerProcess pid=73) ERROR 06-12 01:30:49 multiproc_worker_utils.py:226] Exception in worker VllmWorkerProcess while processing method init_device: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details), Traceback (most recent call last):
(VllmWorkerProcess pid=73) ERROR 06-12 01:30:49 multiproc_worker_utils.py:226]   File "/vllm/executor/multiproc_worker_utils.py", line 222, in _run_worker_process
`, `exception - 1: a worker: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details) in _run_worker_process (multiproc_worker_utils.py:222)`},
		{"vLLM under Dynamo and Slurm", `0: 2025-05-12T13:47:39.069Z  INFO metrics.log: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 30.0 tokens/s, Running: 8 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 1.4%, CPU KV cache usage: 0.0%.
`, ``},
		{"one TP rank knows why a KV cache did not arrive, and why is told once", `[2026-03-04 10:22:10 TP1] Decode transfer failed for request rank=1 decode_req.req.rid='a' decode_req.req.bootstrap_room=7 with exception KVTransferError(bootstrap_room=7): Failed due to an unknown reason from another rank
[2026-03-04 10:22:10 TP0] Decode transfer failed for request rank=0 decode_req.req.rid='a' decode_req.req.bootstrap_room=7 with exception KVTransferError(bootstrap_room=7): Failed to get kvcache from prefill instance, it might be dead
[2026-03-04 10:22:10 TP2] Decode transfer failed for request rank=2 decode_req.req.rid='a' decode_req.req.bootstrap_room=7 with exception KVTransferError(bootstrap_room=7): Failed due to an unknown reason from another rank
[2026-03-04 10:22:11 TP2] Decode transfer failed for request rank=2 decode_req.req.rid='b' decode_req.req.bootstrap_room=8 with exception KVTransferError(bootstrap_room=8): Failed due to an unknown reason from another rank
`, `transfer failed TP0 1: receiving the KV cache failed: the prefill server may be dead
transfer failed TP2 1: receiving the KV cache failed, and the line does not say why`},
		{"Mooncake's transfer engine, before the first stamp with a year", `E0304 10:22:09.551047  8274 worker_pool.cpp:294] Worker: Process failed for slice (opcode: 1, source_addr: 0x7e, length: 65536, local_nic: mlx5_9, peer_nic: 10.0.0.7:15867@mlx5_9, retry_cnt: 0): transport retry counter exceeded
W0304 10:22:09.554718  8274 worker_pool.cpp:308] Too many errors found in local RNIC 10.0.0.5:16077@mlx5_9, mark it inactive
E0304 10:22:09.563210  8274 rdma_context.cpp:319] Context is not active: mlx5_9
[2025-03-04 10:22:10 TP3] Session 10.0.0.7:15867 failed.
`, `transfer failed - 1: an RDMA transfer over mlx5_9 failed: transport retry counter exceeded
transfer failed - 1: the RDMA device mlx5_9 had too many errors and is used no longer
transfer failed TP3 1: the session of transfers to 10.0.0.7:15867 failed`},
		{"a request is aborted, as all its ranks say", `[2026-03-04 10:22:10 TP0] Decode transfer failed for request rank=0 decode_req.req.rid='a' decode_req.req.bootstrap_room=7 with exception KVTransferError(bootstrap_room=7): Aborted by AbortReq.
[2026-03-04 10:22:10 TP1] Decode transfer failed for request rank=1 decode_req.req.rid='a' decode_req.req.bootstrap_room=7 with exception KVTransferError(bootstrap_room=7): Aborted by AbortReq.
`, `client gone TP0 1: a request was aborted while it waited for its KV cache`},
		{"NCCL says why before the first stamp", `n5:240:240 [6] misc/socket.cc:533 NCCL WARN socketPollConnect: Connect to 10.0.0.4<56849> returned 113(No route to host) errno 115(Operation now in progress)
[2025-02-24 14:09:34 TP14] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl/pynccl_wrapper.py", line 243, in NCCL_CHECK
RuntimeError: NCCL error: unhandled system error
`, `communication - 1: NCCL warns: socketPollConnect: Connect to 10.0.0.4<56849> returned 113(No route to host) errno 115(Operation now in progress) (n5, GPU 6)
exception TP14 1: Scheduler: RuntimeError: NCCL error: unhandled system error in NCCL_CHECK (pynccl_wrapper.py:243)`},
		{"a transfer without a stamp", `Prefill bootstrap failed for request rank=2 req.rid='a' req.bootstrap_room=7 with exception KVTransferError(bootstrap_room=7): Request 7 timed out after 300.0s in KVPoll.Bootstrapping
`, `transfer failed - 1: a bootstrap failed: it timed out after 300 s in Bootstrapping`},
		{"an exporter of traces does not keep up", `[2026-11-04 10:22:10 TP0] ZMQ send buffer full, dropping 31 trace ops for 5e3f
`, `complaint TP0 1: a warning: its traces lack spans, as their exporter does not keep up`},
		{"weights leave nothing", `[2026-03-04 10:22:10 TP0] max_total_tokens=4096 is larger than the profiled value 2048. Use the profiled value instead.
[2026-03-04 10:22:10 TP1] max_total_tokens=4096 is larger than the profiled value -20. Use the profiled value instead.
`, `complaint TP1 1: a warning: no memory of the device is left for its KV cache, as its weights take that`},
		{"NCCL says why behind a stamp of its own", `[2026-03-04 10:22:10 TP0] Decode batch, #running-req: 1, #token: 9, token usage: 0.01, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0
[2026-03-04 10:22:12] n5:240:251 [6] ibvwrap.c:262 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_1:1
[2026-03-04 10:22:13] n5:240:251 [6] NCCL INFO transport/net.cc:1298 -> 6
`, `communication - 1: NCCL warns: Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_1:1 (n5, GPU 6)`},
		{"C++ ends a process, and Python tells of it", `[2026-03-04 10:22:10 TP0] Decode batch, #running-req: 1, #token: 9, token usage: 0.01, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0
[rank1]:[E304 10:22:12.020753201 ProcessGroupNCCL.cpp:1895] [PG ID 2 PG GUID 3 Rank 1] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 2 PG GUID 3 Rank 1] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered
Fatal Python error: Aborted
[2026-03-04 10:22:14] Subprocess scheduler_0 (pid=4451) crashed with exit code -6. Triggering SIGQUIT for cleanup...
`, `exception rank 1 1: PyTorch ends it: CUDA error: an illegal memory access was encountered
crash - 1: an uncaught C++ exception ended it: c10::DistBackendError
crash - 1: Python ended at once
crash - 1: scheduler_ crashed with exit code -6 (aborted)`},
		{"a scheduler is killed", `[2026-03-04 10:22:10 TP0] Init torch distributed ends.
[2026-03-04 10:23:40] Rank 0 scheduler is dead. Please check if there are relevant logs.
[2026-03-04 10:23:42] Exit code: -9
Killed
`, `crash - 1: a scheduler died
crash - 1: a process ended with exit code -9 (killed, often because the host ran out of memory)
crash - 1: was killed`},
		{"a worker of vLLM that died, and what its engine needs to start", `(EngineCore pid=271) ERROR 03-04 10:22:13 [multiproc_executor.py:230] Worker proc VllmWorker-3 died unexpectedly, shutting down executor.
(EngineCore pid=271) ERROR 03-04 10:22:13 [core.py:708] Traceback (most recent call last):
(EngineCore pid=271) ERROR 03-04 10:22:13 [core.py:708]   File "/vllm/v1/core/kv_cache_utils.py", line 716, in check
(EngineCore pid=271) ERROR 03-04 10:22:13 [core.py:708] ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed).
Bus error (core dumped)
`, `exception - 1: worker VllmWorker-3 died
exception - 1: the engine: ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed) in check (kv_cache_utils.py:716)
exception - 1: a bus error: shared memory (/dev/shm) may be too small`},
		{"stamps are cut off", `[ TP2] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl/srt/managers/scheduler.py", line 423, in __init__
AssertionError
[TP2] Received sigquit from a child proces. It usually means the child failed.
`, `exception TP2 1: Scheduler: AssertionError in __init__ (scheduler.py:423)
crash TP2 1: a process of the server failed, and all end`},
		{"an event loop of TensorRT-LLM", `[12/02/2025-09:12:02] [TRT-LLM] [E] Error in event loop: No free slots
[12/02/2025-09:12:02] [TRT-LLM] [E] Traceback (most recent call last):
  File "/t/resource_manager.py", line 742, in add_slot
    raise ValueError("No free slots")
ValueError: No free slots
`, `exception - 1: the event loop: ValueError: No free slots in add_slot (resource_manager.py:742)`},
		{"an executor of TensorRT-LLM hangs", `[12/02/2025-09:12:02] [TRT-LLM] [RANK 1] [E] Hang detected on rank 1 in PyExecutor.
[12/02/2025-09:12:03] [TRT-LLM] [RANK 1] [E] Encountered an error in forward function: Hang detected on rank 1 in PyExecutor.
`, `timeout - 1: its executor loop did not return, says its hang detector`},
		{"a journal has the lines of the kernel, too", `Mar 04 10:22:49 n7 kernel: NVRM: Xid (PCI:0000:4e:00): 79, pid=1, name=x, GPU has fallen off the bus.
Mar 04 10:22:49 n7 kernel: audit: type=1400 failed
Mar 04 10:22:51 n7 docker[2211]: [2026-03-04 10:22:51 TP4] Received sigquit from a child process. It usually means the child failed.
`, `hardware - 1: Xid 79 of GPU 0000:4e:00: GPU has fallen off the bus
crash TP4 1: a process of the server failed, and all end`},
		{"a prefill server is lost", `[2026-03-04 10:22:51 TP0] Decode transfer failed for request rank=0 decode_req.req.rid='a' decode_req.req.bootstrap_room=7 with exception KVTransferError(bootstrap_room=7): Losing connection with prefill instance (bootstrap_addr: 10.0.0.1:8998)
`, `transfer failed TP0 1: receiving the KV cache failed: the connection to the prefill server was lost`},
		{"a KV cache without room is no device without memory", `[2026-01-05 06:12:41] Prefill batch. #new-seq: 1, #new-token: 1024, #cached-token: 0, token usage: 0.98, #running-req: 7, #queue-req: 8,
[2026-01-05 06:12:41] Decode out of memory. Try to lower your batch size.
Try to allocate 8 tokens.
[2026-01-05 06:12:41] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl/srt/managers/scheduler.py", line 490, in event_loop_overlap
RuntimeError: Decode out of memory. Try to lower your batch size.
`, `exception - 1: its KV cache has no room for the next tokens of its batch
exception - 1: Scheduler: RuntimeError: Decode out of memory. Try to lower your batch size in event_loop_overlap (scheduler.py:490)`},
		{"a decode server does not get at a prefill server", `[2026-03-04 10:22:51 TP0] Error fetching prefill parallel info from bootstrap: HTTPConnectionPool(host='p', port=1): Max retries exceeded with url: /route?engine_rank=-1 (Caused by ConnectTimeoutError(<urllib3.connection.HTTPConnection object at 0x7>, 'Connection to p timed out. (connect timeout=None)'))
[2026-03-04 10:22:52 TP0] Some requests fail to receive KV Cache transfer done signal after bootstrapping. If a greater mean TTFT is acceptable, you can relax the timeout condition.
`, `peer lost TP0 1: a prefill server does not tell where it takes transfers: timed out`},
		{"a worker of vLLM goes on after a transfer that failed", `(Worker_TP0 pid=8) ERROR 05-01 15:00:23 [nixl_connector.py:1263] NIXL transfer failure: handshake_setup_failed | Context: {'request_id': None}
(Worker_TP0 pid=8) ERROR 05-01 15:00:23 [nixl_connector.py:1263] Traceback (most recent call last):
(Worker_TP0 pid=8) ERROR 05-01 15:00:23 [nixl_connector.py:1263]   File "/vllm/nixl_connector.py", line 1261, in done_callback
(Worker_TP0 pid=8) ERROR 05-01 15:00:23 [nixl_connector.py:1263] zmq.error.Again: Resource temporarily unavailable
(Worker_TP0 pid=8) ERROR 05-01 15:00:29 [mooncake_connector.py:547] Mooncake transfer failed for request chatcmpl-1
`, `transfer failed TP0 1: a NIXL transfer failed: handshake setup failed
traceback TP0 1: a worker: zmq.error.Again in done_callback (nixl_connector.py:1261)
transfer failed TP0 1: a Mooncake transfer failed`},
		{"an engine of vLLM dies without a word", `(APIServer pid=4) ERROR 10-14 13:42:23 [core_client.py:564] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.
`, `exception - 1: its engine EngineCore_DP0 died`},
		{"engines of vLLM before V1 die", `ERROR 12-01 13:05:02 client.py:282] RuntimeError('Engine process (pid 76) died.')
ERROR 12-01 13:06:02 client.py:250] RuntimeError('Engine loop has died')
ERROR 12-01 13:07:02 async_llm_engine.py:56] Engine background task failed
INFO:     Finished server process [1]
`, `crash - 1: its engine process died
crash - 1: its engine loop died; see what happened before
crash - 1: its engine failed
stop - 1: its HTTP server has ended`},
		{"an exception without a message", `ERROR 06-15 13:57:57 [core.py:517] Traceback (most recent call last):
ERROR 06-15 13:57:57 [core.py:517]   File "/vllm/shm_broadcast.py", line 401, in dequeue
ERROR 06-15 13:57:57 [core.py:517] TimeoutError
`, `traceback - 1: TimeoutError in dequeue (shm_broadcast.py:401)`},
		{"PyTorch's watchdog meets a failure, and one that it told of", `[2026-03-04 10:22:10 TP0] Decode batch, #running-req: 1, #token: 9, token usage: 0.01, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0
[rank1]:[E304 10:22:12.126335825 ProcessGroupNCCL.cpp:2252] [PG ID 2 PG GUID 3 Rank 1]  failure detected by watchdog at work sequence id: 40231 PG status: last enqueued work: 40267, last completed work: 40230
[rank2]:[E304 10:22:13.061727749 ProcessGroupNCCL.cpp:683] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=78, OpType=BROADCAST, NumelIn=80, NumelOut=80, Timeout(ms)=600000) ran for 600096 milliseconds before timing out.
[rank2]:[E304 10:22:13.126335825 ProcessGroupNCCL.cpp:2252] [PG ID 2 PG GUID 3 Rank 2]  failure detected by watchdog at work sequence id: 78 PG status: last enqueued work: 78, last completed work: 77
`, `communication rank 1 1: PyTorch's watchdog met a failure in collective 40231
timeout rank 2 1: a collective timed out: BROADCAST number 78`},
		{"Ray kills workers, or tells that it did not", `(raylet) [2026-04-02 15:02:00,117 E 1 1] (raylet) node_manager.cc:3069: 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 3, IP: 10.0.0.6) over the last time period.
(raylet) [2026-04-02 15:03:00,117 E 1 1] (raylet) node_manager.cc:3069: 0 Workers (tasks / actors) killed due to memory pressure (OOM), 1 Workers crashed due to other reasons at node (ID: 3, IP: 10.0.0.6) over the last time period.
`, `exception - 2: Ray killed 2 of its workers, because the host ran out of memory`},
		{"Ray Serve loses replicas", `2026-03-10T11:14:57-06:00 INFO 2026-03-10 09:14:57,180 controller 979 deployment_state.py:625 - Actor for replica A#x crashed, marking it unhealthy immediately.
2026-03-10 09:15:57,187 WARNING controller 979 deployment_state.py:1506 - Replica(id='c2', deployment='A', app='default') failed health check, stopping it.
(ServeController pid=77) ERROR 2026-03-10 09:16:16,631 controller 77 -- Exception in Replica(id='0m', deployment='A', app='default'), the replica will be stopped.
`, "exception - 1: Ray Serve's replica A#x crashed\ncrash - 1: Ray Serve's replica c2 is stopped, as its health check failed\nexception - 1: Ray Serve's replica 0m raised an exception, and is stopped"},
		{"an exception of TensorRT-LLM in C++", `[2026-03-04 10:22:10 TP0] Decode batch, #running-req: 1, #token: 9, token usage: 0.01, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0
terminate called after throwing an instance of 'tensorrt_llm::common::TllmException'
  what():  [TensorRT-LLM][ERROR] Assertion failed: no room (/x/mpiUtils.cpp:211)
`, "crash - 1: an uncaught C++ exception ended it: tensorrt_llm::common::TllmException: Assertion failed: no room"},
		{"an exception of LMDeploy in C++, twice", `2026-03-04 07:05:16,356 - lmdeploy - WARNING - x
[TM][ERROR] CUDA runtime error: an illegal memory access was encountered /x/core/stream.h:27
terminate called after throwing an instance of 'std::runtime_error'
  what():  [TM][ERROR] CUDA runtime error: an illegal memory access was encountered /x/utils/allocator.h:231
`, `exception - 1: CUDA error: an illegal memory access was encountered
crash - 1: an uncaught C++ exception ended it: std::runtime_error: CUDA runtime error: an illegal memory access was encountered`},
		{"nobody answers c10d", `INFO 10-25 03:11:02 [core.py:69] Initializing
[E1025 03:41:03.442281910 socket.cpp:1011] [c10d] The client network socket has timed out after 600000ms while trying to connect to (10.1.2.3, 41233).
[E1025 03:41:03.442480512 TCPStore.cpp:331] [c10d] TCP client failed to connect/validate to host 10.1.2.3:41233 - timed out (try=0, timeout=600000ms): x
Traceback (most recent call last):
  File "/x/torch/distributed/rendezvous.py", line 174, in create
torch.distributed.DistNetworkError: The client socket has timed out after 1800s while trying to connect to (10.1.2.3, 41233).
`, `communication - 1: no connection to 10.1.2.3:41233 within 600 s: the address is wrong, or something between blocks it, or nobody listens there
exception - 1: no connection to 10.1.2.3:41233 within 1800 s: the address is wrong, or something between blocks it, or nobody listens there in create (rendezvous.py:174)`},
		{"Slurm tells of memory, and of a task", `slurmstepd: error: Detected 2 oom_kill events in StepId=71.4. Some of the step tasks have been OOM Killed.
slurmstepd: error: Detected 1 oom-kill event(s) in step 72.batch cgroup.
srun: error: n3: task 0: Out Of Memory
`, `exception - 2: Slurm's step 71.4 ran out of memory, and the kernel killed 2 of its processes
exception - 1: Slurm's step 72.batch ran out of memory, and the kernel killed 1 of its processes
complaint - 1: an error: srun: error: n3: task 0: Out Of Memory`},
		{"Slurm ends a job, for several reasons", `INFO 03-04 10:22:10 [core.py:69] Initializing
slurmstepd: error: *** JOB 71 ON n3 CANCELLED AT 2026-03-04T18:22:10 DUE TO TIME LIMIT ***
slurmstepd: error: *** STEP 72.0 ON n3 CANCELLED AT 2026-03-04T18:22:10 DUE TO PREEMPTION ***
slurmstepd: error: *** JOB 73 ON n3 CANCELLED AT 2026-03-04T18:22:10 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***
slurmstepd: error: *** JOB 74 ON n3 CANCELLED AT 2026-03-04T18:22:10 ***
`, `stop - 1: Slurm ended its job at the time limit, after its last line
stop - 1: Slurm ended its job for one of higher priority (preemption), after its last line
crash - 1: Slurm ended its job, as a node failed, after its last line
stop - 1: its Slurm job was canceled, after its last line`},
		{"vLLM starts, is told to shut down in many words, and starts again, where an error is one again", `(EngineCore pid=5) INFO 03-04 10:21:00 [gpu_model_runner.py:41] Starting to load model /m...
(EngineCore pid=5) INFO 03-04 10:21:20 [gpu_model_runner.py:44] Model loading took 14.99 GiB memory and 18.2 seconds
(EngineCore pid=5) INFO 03-04 10:21:30 [backends.py:11] Dynamo bytecode transform time: 5.6 s
(EngineCore pid=5) INFO 03-04 10:21:50 [monitor.py:5] torch.compile took 30.6 s in total
(EngineCore pid=5) INFO 03-04 10:22:00 [gpu_model_runner.py:91] Graph capturing finished in 9 secs, took 0.4 GiB
(EngineCore pid=5) INFO 03-04 10:22:01 [core.py:21] init engine (profile, create kv cache, warmup model) took 60.2 s
(APIServer pid=4) INFO:     Application startup complete.
(EngineCore pid=5) INFO 03-04 10:30:00 [core.py:12] [shutdown] EngineCore: trigger received signal=SIGTERM
(APIServer pid=4) INFO 03-04 10:30:00 [launcher.py:10] [shutdown] API server: shutdown triggered
(APIServer pid=4) ERROR 03-04 10:30:00 [launcher.py:10] what goes wrong then does not matter
(EngineCore pid=6) INFO 03-04 10:31:00 [gpu_model_runner.py:41] Starting to load model /m...
(APIServer pid=7) ERROR 03-04 10:32:00 [launcher.py:10] no such adapter
(APIServer pid=7) INFO 03-04 10:33:00 [launcher.py:10] Shutting down FastAPI HTTP server.
`, `start - 1: loads weights
start - 1: has its weights, after 18 s (15 GB)
start - 1: compiles its model
start - 1: has compiled its model
start - 1: has its graphs
start - 1: has its engine
ready - 1: is ready
stop - 1: was told to shut down
start - 1: loads weights
complaint - 1: an error: no such adapter
stop - 1: was told to shut down`},
		{"an exception that Python ignores", `INFO 03-04 10:22:10 [core.py:69] Initializing
Exception ignored in: <function Socket.__del__ at 0x14b>
Traceback (most recent call last):
  File "/x/vllm/engine.py", line 351, in signal_handler
    raise KeyboardInterrupt("ends")
KeyboardInterrupt: ends
`, ``},
		{"experts are moved, and a connection ends", `[2026-04-10 15:39:20 TP0 EP0] [EPLBManager] rebalance start
[2026-04-10 15:39:21 TP0 EP0] [EPLBManager] rebalance end time=1.2s
E0410 15:39:26.325699  5796 tcp_transport.cpp:172] Session::readBody failed. Error: End of file (value: 2), total_transferred_bytes_: 0
`, `halt TP0 EP0 1: begins to move experts between its devices (EPLB)
halt TP0 EP0 1: has moved experts between its devices (EPLB)
transfer failed - 1: receiving over TCP failed: the other side closed the connection`},
		{"a piece of py-spy's dump, which is no traceback", `    run (threading.py:1012)
    _bootstrap (threading.py:1032)
[2026-10-29 11:25:58 TP3] Watchdog timeout (self.watchdog_timeout=300)
`, `timeout TP3 1: Scheduler did not return for 300 to 450 s, says its watchdog`},
		{"torchrun tells who failed first", `Root Cause (first observed failure):
[0]:
  time      : 2026-06-03_22:45:01
  host      : n1
  rank      : 4 (local_rank: 0)
  exitcode  : -9 (pid: 194)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 194
`, `crash rank 4 1: its process ended with exit code -9 (killed, often because the host ran out of memory), says torchrun`},
		{"a prefill server that tells of no running requests", `[2026-06-18 18:11:03] Prefill batch. #new-seq: 14, #new-token: 8192, #cached-token: 0, token usage: 0.92, #unbootstrapped-req: 0, #queue-req: 105, #transferring-req: 990, input throughput (token/s): 9.08
`, ``},
		{"weights, and adapters", `[2026-03-04 10:22:10 TP0] Load weight end. elapsed=240.31 s, type=X, avail mem=107.42 GB, mem usage=30.64 GB.
[2026-03-04 10:23:10 TP0] LoRA adapter loading starts: LoRARef(lora_id=4, lora_name=a). avail mem=5.12 GB
[2026-03-04 10:23:11 TP0] LoRA adapter loading completes: LoRARef(lora_id=4, lora_name=a). avail mem=5.02 GB
`, `start TP0 1: has its weights, after 240 s (30.6 GB)
halt TP0 1: a LoRA adapter is loaded`},
		{"requests that are too many", `[2026-03-04 10:22:10 TP0] Decode batch, #running-req: 1, #token: 9, token usage: 0.01, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0
[2026-03-04 10:22:11] INFO:     10.0.0.1:1 - "POST /generate HTTP/1.1" 429 Too Many Requests
[2026-03-04 10:22:12] INFO:     10.0.0.1:1 - "POST /generate HTTP/1.1" 503 Service Unavailable
[2026-03-04 10:22:12] INFO:     10.0.0.1:1 - "POST /generate HTTP/1.1" 429 Too Many Requests
[2026-03-04 10:22:13] INFO:     10.0.0.1:1 - "POST /generate HTTP/1.1" 400 Bad Request
`, `server errors 1
refused 2`},
		{"vLLM preempts, as it was worded in 2024-09", `WARNING 09-11 17:21:29 scheduler.py:1242] Sequence group cmpl-1 is preempted in PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. total_num_cumulative_preemption=1
`, `retraction - 1: the KV cache is full: preempts requests`},
		{"requests come, and no batch", `[2026-03-04 10:22:10 TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.01, #running-req: 0, #queue-req: 1
[2026-03-04 10:22:11] INFO:     10.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK
[2026-03-04 10:24:11] INFO:     10.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK
[2026-03-04 10:25:11] INFO:     10.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK
`, `note TP0 2: takes requests, and logs no batch any more`},
		{"requests come, and a health check makes a token", `[2026-03-04 10:22:10 TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.01, #running-req: 0, #queue-req: 1
[2026-03-04 10:24:11] INFO:     10.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK
[2026-03-04 10:25:11] INFO:     10.0.0.1:1 - "GET /health_generate HTTP/1.1" 200 OK
`, ``},
		{"requests come, and batches", `[2026-03-04 10:22:10 TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.01, #running-req: 0, #queue-req: 1
[2026-03-04 10:24:11] INFO:     10.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK
[2026-03-04 10:24:12 TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.01, #running-req: 0, #queue-req: 1
`, ``},
		{"an adapter that the engine does not take", `(EngineCore pid=8) ERROR 06-01 13:18:12 [core.py:1341]   File "/x/vllm/lora/worker_manager.py", line 122, in _load_adapter
(EngineCore pid=8) ERROR 06-01 13:18:12 [core.py:1341]     helper.validate_legal(self.config)
(EngineCore pid=8) ERROR 06-01 13:18:12 [core.py:1341] ValueError: LoRA rank 8 is greater than max_lora_rank 4.
`, `exception - 1: the engine: ValueError: LoRA rank 8 is greater than max_lora_rank 4 in _load_adapter (worker_manager.py:122)`},
		{"an iteration of vLLM's V0", `ERROR 08-29 02:12:22 async_llm_engine.py:658] Engine iteration timed out. This should never happen!
`, `timeout - 1: an iteration of its engine did not return in time`},
		{"Triton does not load a model, and one that needs it", `I0617 07:26:20.000001 24 backend.cpp:12] Loading
E0617 07:26:21.000001 24 model_repository_manager.cc:563] Invalid argument: ensemble 'all' depends on 'llm' which has no loaded version. Model 'llm' loading failed with error: version 1 is at UNAVAILABLE state: Internal: no such engine;
`, `exception - 1: its model llm did not load: Internal: no such engine`},
		{"Triton's backend for Python, which quotes", `E0617 07:26:20.000001 24 pb_stub.cc:72] "Failed to process the request(s) for model 'pre_0_0', message: ValueError: what a client asked\n\nAt:\n  /m/pre/1/model.py(2): execute\n"
E0617 07:26:21.000001 24 model_lifecycle.cc:65] "failed to load 'pre' version 1: Internal: ModuleNotFoundError: No module named 'x'\n\nAt:\n  /m/pre/1/model.py(3): <module>\n"
`, `traceback - 1: its model pre_0_0 fails requests: ValueError
exception - 1: its model pre did not load: Internal: ModuleNotFoundError: No module named 'x'`},
		{"requests of LMDeploy", `2026-07-07 09:01:18,519 - lmdeploy - ERROR - async_engine.py:791 - session 1 finished, reason "error"
2026-07-07 09:01:18,520 - lmdeploy - ERROR - async_engine.py:791 - session 2 finished, reason "error"
`, `complaint - 1: an error: a request failed in its engine
complaint - 1: an error: a request failed in its engine`},
		{"a loop of LMDeploy", `2026-04-21 10:43:58,013 - lmdeploy - ERROR - engine.py:781 - Task <EngineMainLoop> failed
Traceback (most recent call last):
  File "/x/lmdeploy/pytorch/engine/engine.py", line 827, in async_loop
    await self.run()
RuntimeError: no more blocks
`, `exception - 1: task EngineMainLoop: RuntimeError: no more blocks in async_loop (engine.py:827)`},
		{"nobody takes what TensorRT-LLM sends", `[03/18/2026-09:12:01] [TRT-LLM] [I] begins
[TensorRT-LLM][WARNING] Timed out waiting for context KV cache transfer after 1000 milliseconds.
[TensorRT-LLM][WARNING] Something else.
`, `complaint - 1: a warning: no generation server takes the KV cache of a prompt in time`},
		{"faulthandler tells of a server that was aborted", `Fatal Python error: Aborted

Thread 0x00007ee43dfff640 (most recent call first):
  File "/x/sglang/srt/managers/scheduler.py", line 14 in watchdog_thread
`, `crash - 1: Python ended at once`},
		{"a thread in Rust", `[2026-03-04 10:22:10 TP0] Decode batch, #running-req: 1, #token: 9, token usage: 0.01, cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0
thread 'tokio-runtime-worker' panicked at lib/runtime/src/pipe.rs:41:13:
thread 'main' panicked at src/main.rs:7:5:
thread 'main' panicked at 'what a client asked', src/main.rs:7:5
`, `traceback - 1: a thread of it panicked at lib/runtime/src/pipe.rs:41:13
exception - 1: panicked at src/main.rs:7:5
1 unknown lines from line 4 on`},
		{"an engine of TensorRT-LLM in C++", `[TensorRT-LLM][INFO] MPI size: 4, MPI local size: 4, rank: 2
[TensorRT-LLM][ERROR] Encountered an error in forwardAsync function: [TensorRT-LLM][ERROR] Assertion failed: blocks.empty() (/src/kvCacheManager.cpp:256)
`, `exception - 1: its forward pass failed: Assertion failed: blocks.empty()`},
	} {
		if text := told(t, test.name, test.text); text != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, text, test.want)
		}
	}
}
