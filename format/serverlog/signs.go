package serverlog

import (
	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/series"
)

// A sign is a text that identifies a kind of line.
type sign struct {
	text string
	kind series.InstantKind
	// says is the text of the instant; "" only marks the line as known.
	says string
	// reads returns the text of the instant from the line alone, sets may also change the instant, and more uses the rest of the log, too; "" drops it.
	reads func(b []byte) string
	sets  func(b []byte, x *series.Instant) string
	more  func(r *reader, b []byte, x *series.Instant) string
}

// signs are the lines that are events, as written by SGLang, vLLM, and TensorRT-LLM. The first one in a line counts.
var signs = []sign{
	{text: "server_args=ServerArgs(", more: (*reader).arguments},
	{text: "ServerArgs(", more: (*reader).arguments},
	{text: "The server is fired up and ready to roll!", kind: series.Ready, says: "is ready"},
	{text: "Init torch distributed begin", kind: series.Starting, says: "sets up communication"},
	{text: "Init torch distributed ends"},
	{text: "is using nccl==", kind: series.Starting, says: "sets up communication"}, // of SGLang and vLLM, and so on
	{text: "Custom allreduce is disabled because", kind: series.Starting, says: "sets up communication"},
	{text: "generating GPU P2P access cache in", kind: series.Starting, says: "tries which GPUs reach each other"},
	{text: "Load weight begin", kind: series.Starting, says: "loads weights"},
	{text: "Load weight end", kind: series.Starting, reads: errortext.Weights},
	{text: "KV Cache is allocated", kind: series.Starting, reads: errortext.PoolSize},
	{text: "ZMQ send buffer full, dropping", kind: series.Complaint, says: series.Warns + "its traces lack spans, as their exporter does not keep up"}, // with SGLANG_TRACE_ASYNC=1
	{text: "is larger than the profiled value -", kind: series.Complaint, says: series.Warns + "no memory of the device is left for its KV cache, as its weights take that"},
	{text: "Memory pool end", kind: series.Starting, says: "has its KV cache"},
	{text: "Capture cuda graph begin", kind: series.Starting, says: "captures graphs"},
	{text: "Capture cuda graph end", kind: series.Starting, says: "has its graphs"},
	{text: "CUDA graph begin", kind: series.Starting, says: "captures graphs"},
	{text: "CUDA graph end", kind: series.Starting, says: "has its graphs"},
	{text: "Initializing an LLM engine", kind: series.Starting, says: "starts its engine"}, // of vLLM, and so on
	{text: "Initializing a V1 LLM engine", kind: series.Starting, says: "starts its engine"},
	{text: "Loading model weights took ", kind: series.Starting, reads: errortext.Weights}, // until 2025-02
	{text: "# CPU blocks: ", kind: series.Starting, says: "has its KV cache"},              // until 2025
	{text: "Starting to load model ", kind: series.Starting, says: "loads weights"},
	{text: "Model loading took ", kind: series.Starting, reads: errortext.Weights},
	{text: "Dynamo bytecode transform time", kind: series.Starting, says: "compiles its model"},
	{text: "torch.compile took ", kind: series.Starting, says: "has compiled its model"},
	{text: "torch.compile takes ", kind: series.Starting, says: "has compiled its model"}, // until 2026
	{text: "Initial profiling/warmup run took ", kind: series.Starting, says: "has warmed up"},
	{text: "Graph capturing finished in ", kind: series.Starting, says: "has its graphs"},
	{text: "init engine (profile, ", kind: series.Starting, says: "has its engine"},
	{text: "[Expert Balancedness]", more: (*reader).balancedness},
	{text: "Retract requests.", kind: series.Retraction, more: (*reader).retraction},
	{text: "Decode out of memory happened.", kind: series.Retraction, more: (*reader).retraction}, // until 2025-02
	{text: "Testing retraction"},
	{text: "Out of memory even after retracting", kind: series.OutOfMemory, says: "out of memory even after it retracted all other requests"},
	{text: "ecode out of memory. Try", kind: series.Exception, says: "its KV cache has no room for the next tokens of its batch"},
	{text: "refill out of memory. Try", kind: series.Exception, says: "its KV cache has no room for a prompt that it took in"},
	{text: "NaN in the logits", kind: series.Complaint, says: "an error: its logits are NaN: what it samples by them is of no use"},
	{text: "memory leak detected", kind: series.Exception, says: "reports a leak in its memory pool"},
	{text: "hit an exception", kind: series.Exception, more: (*reader).exception},
	{text: "Prefill bootstrap failed for request", kind: series.TransferFailed, more: failedTransfer("prefill", "a bootstrap")},
	{text: "Prefill transfer failed", kind: series.TransferFailed, more: failedTransfer("prefill", "sending the KV cache")},
	{text: "Decode handshake failed", kind: series.TransferFailed, more: failedTransfer("decode", "a handshake")},
	{text: "Decode transfer failed", kind: series.TransferFailed, more: failedTransfer("decode", "receiving the KV cache")},
	{text: "transfer worker error for room", kind: series.TransferFailed, says: "a worker for transfers failed"},
	{text: "Process failed for slice", kind: series.TransferFailed, reads: errortext.FailedSlice}, // Mooncake's transfer engine, and so on
	{text: "mark it inactive", kind: series.TransferFailed, reads: errortext.InactiveDevice},
	{text: "Context is not active"},
	{text: "Received context async event ", kind: series.TransferFailed, reads: errortext.AsyncEvent},
	{text: "Transfer Engine Return Error", kind: series.TransferFailed, says: "Mooncake's transfer engine failed"},
	{text: "Failed to connect to target: ", kind: series.TransferFailed, reads: errortext.Unconnected},
	{text: "Failed to connect to segment: "},
	{text: "Failed to retrieve segment descriptor, name ", kind: series.TransferFailed, reads: errortext.UnknownSegment},
	{text: "Unexpected code in http response, GET "}, // written before that
	{text: "TcpTransport: ASIO exception: ", kind: series.TransferFailed, reads: errortext.FailedTCP},
	{text: "encountered an ASIO exception", kind: series.TransferFailed, reads: errortext.FailedTCP}, // since 2025
	{text: "Transfer failed for task", kind: series.TransferFailed, says: "a Mooncake transfer failed"},
	{text: "Transfer incomplete, retrying"},
	{text: "Memory region not registered by any active device", kind: series.TransferFailed, says: "no RDMA device knows the memory of a KV cache: it was not registered"},
	{text: "ailed to receive handshake message", kind: series.TransferFailed, says: "a handshake of RDMA devices failed"},
	{text: "Session::writeBody failed", kind: series.TransferFailed, reads: errortext.FailedTCP},
	{text: "Session::readBody failed", kind: series.TransferFailed, reads: errortext.FailedTCP},
	{text: "Session ", kind: series.TransferFailed, reads: errortext.FailedSession},
	{text: "Failed to complete transfers after", kind: series.TransferFailed, reads: errortext.UnfinishedTransfers},
	{text: "Decode instance could be dead", kind: series.PeerLost, says: "a decode server may be dead"},
	{text: "Error fetching prefill parallel info from bootstrap", kind: series.PeerLost, more: (*reader).unreachable},
	{text: "Some requests fail to receive KV Cache transfer done signal", kind: series.TransferFailed, more: givenUp("decode", "did not get their KV cache in time")},
	{text: "Some requests timed out when bootstrapping", kind: series.TransferFailed, more: givenUp("prefill", "were not told in time where their KV cache goes")},
	{text: "NIXL transfer failure: ", kind: series.TransferFailed, more: (*reader).failedNIXL},
	{text: "Releasing expired KV blocks for request", kind: series.TransferFailed, more: unfetched},
	{text: "Potentially invalid KV blocks for unrecognized request", kind: series.TransferFailed, says: "a decode server fetched a KV cache that was given up before: its answer may be wrong"},
	{text: "marking blocks as invalid", kind: series.TransferFailed, says: "a NIXL transfer failed: handshake failed"},
	{text: "prepXferDlist: failed to prepare", kind: series.TransferFailed, says: "a NIXL transfer failed: no backend takes the memory of both sides"},
	{text: "Mooncake transfer failed for request", kind: series.TransferFailed, says: "a Mooncake transfer failed"},
	{text: "The number of retrieved tokens is less than the expected number", kind: series.TransferFailed, says: "LMCache gave back less than it had said it holds"},
	{text: "Num retrieved tokens: "},
	{text: "because no memory is available", kind: series.TransferFailed, says: "LMCache has no room in its own memory: what it should load or keep is lost"},
	{text: "Memory allocation failed during"},
	{text: "but it can't be retrieved"}, // follows it
	{text: "Sync batch data transfer timeout after", kind: series.TransferFailed, reads: errortext.SlowTransfer},
	{text: "Losing connection with prefill instance", kind: series.PeerLost, says: "lost the connection to a prefill server"},
	{text: "Lost connection with prefill instance", kind: series.PeerLost, sets: errortext.LostPeer},
	{text: "Attempting to reconnect to", kind: series.PeerLost, says: "tries to reconnect to a prefill server"},
	{text: "Profiling starts", kind: series.Note, says: "a profile is taken from here on"},
	{text: "Stop profiling", kind: series.Halt, says: "a profile is written"},
	{text: "Profiling done"},
	{text: "LONG GARBAGE COLLECTION DETECTED", kind: series.Halt, sets: errortext.GarbageCollection},
	{text: "slow scheduler pass: ", kind: series.Halt, more: slowPass},
	{text: "LoRA adapter loading starts", kind: series.Halt, says: "a LoRA adapter is loaded"},
	{text: "LoRA adapter loading completes"},
	{text: "Update engine weights online from", kind: series.Halt, says: "other weights are loaded"},
	{text: "Update weights end"},
	{text: "[EPLBManager] rebalance start", kind: series.Halt, says: "begins to move experts between its devices (EPLB)"},
	{text: "[EPLBManager] rebalance end", kind: series.Halt, says: "has moved experts between its devices (EPLB)"},
	{text: "Health check failed.", kind: series.Unhealthy, reads: errortext.Unhealthy},
	{text: "watchdog timeout (", kind: series.Timeout, reads: errortext.Watchdog},
	{text: "Watchdog timeout (", kind: series.Timeout, reads: errortext.Watchdog},
	{text: logline.TimedOut, kind: series.Timeout, says: logline.SaysTimedOut},
	{text: "Error in event loop", kind: series.Exception, more: (*reader).eventLoop},
	{text: "Timed out waiting for context KV cache transfer", kind: series.Complaint, says: series.Warns + "no generation server takes the KV cache of a prompt in time"},
	{text: "function: Hang detected on rank "},                                                                               // comes after the next one
	{text: "Hang detected on rank ", kind: series.Timeout, says: "its executor loop did not return, says its hang detector"}, // of TensorRT-LLM, since 2026-01
	{text: "Encountered an error in forward", kind: series.Exception, reads: errortext.FailedForward},
	{text: "TCP client failed to connect/validate to host"}, // follows the next one
	{text: "socket has timed out after ", kind: series.Communication, reads: errortext.NoPeer},
	{text: "Watchdog caught collective operation timeout", kind: series.Timeout, more: (*reader).collective},
	{text: logline.Failed, kind: series.Communication, more: (*reader).failedCollective},
	{text: "ProcessGroupNCCL's watchdog got stuck", kind: series.Timeout, reads: errortext.StuckWatchdog},
	{text: "Heartbeat monitor timed out!"},
	{text: "thread terminated with exception:", kind: series.Exception, more: ncclEnds},
	{text: "scheduler is dead. Please check", kind: series.Crash, says: "a scheduler died"},
	{text: "Exit code: ", kind: series.Crash, reads: errortext.Exited},
	{text: "error while attempting to bind on address", kind: series.Exception, says: "its port is in use"},
	{text: "The request queue is full", kind: series.Refusal, says: "refuses a request: its queue is full"},
	{text: "killed due to memory pressure (OOM)", kind: series.Exception, sets: errortext.KilledByRay},
	{text: "A worker died or was killed while executing a task", kind: series.Exception, reads: errortext.DeadRayWorker},
	{text: "Worker exit type: "}, // behind "died unexpectedly"
	{text: "The actor is dead because ", kind: series.Exception, reads: errortext.DeadActor},
	{text: "The actor died unexpectedly before finishing"},                                                              // before that
	{text: "Actor for replica ", kind: series.Exception, reads: errortext.LostReplica("Actor for replica ", "crashed")}, // of Ray Serve
	{text: "Actor for Replica(", kind: series.Exception, reads: errortext.LostReplica("Actor for Replica(id='", "crashed")},
	{text: "Exception in Replica(", kind: series.Exception, reads: errortext.LostReplica("Exception in Replica(id='", "raised an exception, and is stopped")},
	{text: "Didn't receive health check response for replica", kind: series.Unhealthy, reads: errortext.LostReplica("for replica", "does not answer health checks")},
	{text: "failed health check, stopping it", kind: series.Crash, reads: errortext.LostReplica("Replica", "is stopped, as its health check failed")},
	{text: "oom_kill event", kind: series.Exception, sets: errortext.KilledBySlurm},
	{text: "oom-kill event", kind: series.Exception, sets: errortext.KilledBySlurm}, // until 2022
	{text: " CANCELLED AT ", kind: series.Stopping, more: (*reader).endedBySlurm},
	{text: "died unexpectedly", kind: series.Exception, reads: errortext.DeadWorker},
	{text: " died, exit code: ", kind: series.Exception, reads: errortext.ExitedWorker}, // V0 of vLLM
	{text: "Executor loop crashed on this rank", kind: series.Crash, says: "its executor loop crashed, and ends all ranks"},
	{text: "Scheduler debug info:", kind: series.Timeout, says: "takes long for a batch, which its watchdog prints"},
	{text: "Pyspy dump for PID", more: (*reader).stacks},
	{text: "Pyspy failed"},
	{text: "All pyspy dump attempts failed"},
	{text: "Received sigquit from a child proces", kind: series.Crash, says: "a process of the server failed, and all end"},
	{text: "SIGQUIT received", kind: series.Crash, says: "a process of the server failed, and all end"}, // since 2026
	{text: "crashed with exit code", kind: series.Crash, reads: errortext.Crashed},
	{text: "kill_process_tree called"},
	{text: "Dumping requests before crash", kind: series.Note, says: "dumps its requests, as it crashes"},
	{text: "SIGTERM received", kind: series.Stopping, says: "was told to shut down (SIGTERM)"},
	{text: "Finished server process [", kind: series.Stopping, says: "its HTTP server has ended"},
	{text: "Received shutdown signal", kind: series.Stopping, more: (*reader).shutdown}, // of Dynamo
	{text: "Gracefully exiting", kind: series.Stopping, says: "shuts down, as it was told"},
	{text: "Request is disconnected from the client side", kind: series.ClientGone, says: "a client went away"},
	{text: "but the state was deleted"}, // a health check that took too long: harmless
	{text: "out of memory", kind: series.OutOfMemory, reads: errortext.OutOfMemory},

	{text: "Error with model object='error'"}, // a client named a model that does not exist
	{text: "EngineCore failed to start", kind: series.Crash, says: "its engine did not start"},
	{text: "EngineCore encountered a fatal error", kind: series.Crash, says: "its engine failed"},
	{text: "RuntimeError('Engine process (pid ", kind: series.Crash, says: "its engine process died"}, // V0, and so on
	{text: "RuntimeError('Engine loop has died')", kind: series.Crash, says: "its engine loop died; see what happened before"},
	{text: "Engine background task failed", kind: series.Crash, says: "its engine failed"},
	{text: "terminating server process", kind: series.Crash, says: "its engine failed, and the server ends"},
	{text: "Engine is already dead", kind: series.Crash, says: "its engine is dead; see what happened before"},
	{text: "No available block found in ", kind: series.Timeout, reads: errortext.SilentWorkers}, // until 2025-02
	{text: "No available shared memory broadcast block found in", kind: series.Timeout, reads: errortext.SilentWorkers},
	{text: "Engine iteration timed out", kind: series.Timeout, says: "an iteration of its engine did not return in time"}, // V0 of vLLM
	{text: "' loading failed with error: ", kind: series.Exception, more: unloaded},
	{text: "failed to load '", kind: series.Exception, more: unloaded},
	{text: "Failed to process the request(s) for model", kind: series.Traceback, reads: errortext.FailedModel},
	{text: "Task <", more: (*reader).failedTask},
	{text: `finished, reason "error"`, kind: series.Complaint, says: "an error: a request failed in its engine"}, // of LMDeploy
	{text: "failed (exitcode: ", kind: series.Crash, reads: errortext.FailedChild},
	{text: "waiting for baton release at ", kind: series.Halt, says: "waits until another process has built a kernel"}, // of AITER, and so on
	{text: "finish build [", kind: series.Halt, reads: errortext.BuiltKernel},
	{text: " seconds to fall asleep", kind: series.Note, says: series.Sleeps},
	{text: " seconds to wake up", kind: series.Note, says: series.Wakes},
	{text: "JIT compilation during inference", kind: series.Halt, says: "a kernel is compiled while it serves"},
	{text: "[shutdown]", kind: series.Stopping, more: (*reader).shutdown},
	{text: "Shutting down FastAPI HTTP server", kind: series.Stopping, more: (*reader).shutdown}, // of vLLM, at a signal
	{text: "EngineDeadError", more: (*reader).deadEngine},
	{text: "AsyncLLM output_handler failed", more: (*reader).deadEngine},
	{text: "failed (engine dead)"},
	{text: "Dumping scheduler stats"},
	{text: "Dumping input data"},
	{text: "is preempted by PreemptionMode", kind: series.Retraction, more: (*reader).preempted},
	{text: "is preempted in PreemptionMode", kind: series.Retraction, more: (*reader).preempted}, // in 2024-09
	{text: "Uncaught exception | <class '", kind: series.Exception, reads: errortext.Uncaught},
	{text: "list returning ", kind: series.Refusal, more: (*reader).discovered}, // of Dynamo
	{text: "Application startup complete", kind: series.Ready, says: "is ready"},
}

var eventWords = func() logline.WordList {
	var words []string
	for i := range signs {
		words = append(words, signs[i].text)
	}
	return logline.NewWordList(words...)
}()
