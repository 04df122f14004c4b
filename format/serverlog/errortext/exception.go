package errortext

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/series"
)

// IsTraceback reports whether b announces a traceback.
func IsTraceback(b []byte) bool {
	const text = "Traceback (most recent call last)"
	return bytes.HasPrefix(b, []byte(text)) || bytes.HasSuffix(b, []byte(text+":"))
}

// ExceptionName returns the name of the exception at the beginning of a line, "" if there is none.
func ExceptionName(b []byte) string {
	name := dotted(b)
	if rest := b[min(len(b), len(name)):]; len(rest) > 0 && rest[0] != ':' {
		return ""
	}
	for _, end := range [...]string{"Error", "Exception", "Interrupt", "Timeout", "Exit"} {
		if strings.HasSuffix(name, end) {
			return name
		}
	}
	if strings.Contains(name, ".error.") { // zmq.error.Again
		return name
	}
	return ""
}

// RaisedName returns the name of the exception in the last line of a traceback. Since no other line can be there, the class
// may have any name, "triton.runtime.errors.OutOfResources: ..".
func RaisedName(b []byte) string {
	name := dotted(b)
	class, rest := name[strings.LastIndexByte(name, '.')+1:], b[min(len(b), len(name)):]
	if len(class) < len(name) && class[0] >= 'A' && class[0] <= 'Z' && (len(rest) == 0 || bytes.HasPrefix(rest, []byte(": "))) {
		return name
	}
	return ExceptionName(b)
}

// CutGroupBar returns the text after the bar in a line of an exception group, "  |   File ..", nothing for a separator, and
// whether the line belongs to a group.
func CutGroupBar(b []byte) ([]byte, bool) {
	line := bytes.TrimLeft(b, " ")
	rest, ok := bytes.CutPrefix(line, []byte("| "))
	switch {
	case len(line) == len(b):
		return b, false
	case ok:
		return rest, true
	case bytes.HasPrefix(line, []byte("+ Exception Group ")), bytes.HasPrefix(line, []byte("+-")):
		return nil, true
	}
	return b, false
}

// dotted returns the name at the beginning of b, of letters, digits, and dots, "vllm.v1.engine.exceptions.EngineDeadError".
func dotted(b []byte) string {
	if name := logline.Beginning(b, "._", 120); name != "" && (name[0] < '0' || name[0] > '9') && name[0] != '.' {
		return strings.TrimRight(name, ".")
	}
	return ""
}

// FrameOf returns "run_batch (scheduler.py:3232)" for `  File "/x/scheduler.py", line 3232, in run_batch`.
func FrameOf(b []byte) string {
	_, rest, ok := bytes.Cut(b, []byte(`File "`))
	path, rest, ok2 := bytes.Cut(rest, []byte(`", line `))
	number, function, ok3 := bytes.Cut(rest, []byte(", in "))
	if !ok || !ok2 || !ok3 || len(number) > 8 {
		return ""
	}
	return strings.Trim(logline.Word(bytes.Trim(function, "<>")), ".") + " (" + string(path[bytes.LastIndexByte(path, '/')+1:]) + ":" + string(number) + ")"
}

// ExceptionText returns the name of the exception in a line, and its message if that never quotes a request.
func ExceptionText(name string, b []byte) string {
	_, message, _ := bytes.Cut(b, []byte(": "))
	message, _, _ = bytes.Cut(message, []byte(" on data={")) // the request follows: "Failed to apply Qwen2AudioProcessor on data={'text': .."
	quotesNothing := slices.ContainsFunc(plain, func(known string) bool { return bytes.Contains(message, []byte(known)) }) ||
		len(message) > 0 && slices.ContainsFunc(harmless, func(end string) bool { return strings.HasSuffix(name, end) })
	if !quotesNothing {
		return name
	}
	if inner, ok := bytes.CutPrefix(message, []byte(workerFailed+"NCCL error in: ")); ok { // a later line has the error itself
		_, inner, _ = bytes.Cut(inner, []byte(", "))
		inner, _, _ = bytes.Cut(inner, []byte(" (run with"))
		return "a worker failed: NCCL error: " + logline.Message(inner)
	}
	if inner, _, ok := bytes.Cut(bytes.TrimPrefix(message, []byte(workerFailed)), []byte("', please check the stack trace")); ok && bytes.HasPrefix(message, []byte(workerFailed)) {
		return "a worker failed: " + logline.Message(inner)
	}
	return name + ": " + logline.Message(message)
}

// workerFailed is the prefix of an exception from a worker in vLLM's engine.
const workerFailed = "Worker failed with error '"

// harmless are exceptions whose messages are about the machine, and never quote a request.
var harmless = []string{"RuntimeError", "OutOfMemoryError", "MemoryError", "OSError", "ConnectionError", "ConnectionResetError", "ConnectionRefusedError", "BrokenPipeError",
	"TimeoutError", "ActorDiedError", "RayActorError", "AcceleratorError", "ImportError", "ModuleNotFoundError", "FileNotFoundError", "PermissionError",
	"AttributeError", "NameError", "TypeError", "NotImplementedError", "ZMQError", "CompilationError", "InductorError", "BackendCompilerFailed", "DistBackendError", "DistNetworkError", "DistStoreError", "ChildProcessError", "nixlBackendError", "OutOfResources"}

// plain are parts of messages about the machine or its settings, for exceptions of other types.
var plain = []string{"No free slots", "memory leak detected", "To serve at least one request with", "The model's max seq len (", "No available memory for the cache blocks",
	"User-specified max_model_len", "Free memory on device", "has no vLLM implementation", "onnect to etcd", "onnect to NATS", "Not enough host memory", "could finish the model loading, but there are other ranks", "Capture cuda graph failed", "Capture CUDA graph failed", "process exited with code ", "Out of range float values are not JSON compliant"}

// starting are functions that run before any request, and those that load an adapter: exceptions in them quote no request.
var starting = []string{"load_model", "load_weights", "init_device", "init_worker", "create_engine_config", "from_engine_args", "from_vllm_config", "build_async_engine_client", "build_async_engine_client_from_engine_args",
	"determine_available_memory", "determine_num_available_blocks", "initialize_from_config", "initialize_cache", "initialize_kv_cache", "_initialize_kv_caches", "compile_or_warm_up_model", "capture_model", "profile_run",
	"launch_core_engines", "wait_for_engine_startup", "create_weights", "weight_loader", "process_weights_after_loading", "get_model", "init_model_worker", "init_torch_distributed", "init_memory_pool", "init_cuda_graphs", "init_attention_backend", "_launch_subprocesses", "launch_subprocesses",
	"prepare_server_args", "__post_init__", "_build_model", "_start_executor_workers", "_start_engine", "init_tp_model_worker", "init_weights", "initialize_model",
	"add_lora", "_load_adapter", "validate_legal", "load_lora_adapter", "load_lora_adapter_from_tensors", "validate_new_adapter"}

// StartsUp reports whether a stack is from the start of a server.
func StartsUp(frames []string) bool {
	return slices.ContainsFunc(frames, func(frame string) bool {
		name, _, _ := strings.Cut(frame, " (")
		return slices.Contains(starting, name)
	})
}

// ChecksItself reports whether an exception is a failed assertion about the program's own state. In code that does not
// handle the text of requests, its message quotes none.
func ChecksItself(name string, frames []string) bool {
	return name == "AssertionError" && len(frames) > 0 && !slices.ContainsFunc(frames, func(frame string) bool {
		return slices.ContainsFunc(ofRequests, func(of string) bool { return strings.Contains(frame, of) })
	})
}

// stepping are functions in which a model computes: they see token counts, and no text.
var stepping = []string{"execute_model", "_execute_model", "forward", "_call_impl", "forward_batch_generation", "forward_extend", "forward_decode", "forward_thread_func_", "_dummy_run", "profile_run"}

// InStep reports whether an exception was raised in a step of a model, in code that sees no text, so that its message
// quotes no request. A missing key may be from a request.
func InStep(name string, frames []string) bool {
	if strings.HasSuffix(name, "KeyError") {
		return false
	}
	from := slices.IndexFunc(frames, func(frame string) bool { // the outermost one
		function, _, _ := strings.Cut(frame, " (")
		return slices.Contains(stepping, function)
	})
	return from >= 0 && !slices.ContainsFunc(frames[from:], func(frame string) bool {
		return strings.Contains(frame, "logit") || strings.Contains(frame, "guided") || slices.ContainsFunc(ofRequests, func(of string) bool { return strings.Contains(frame, of) })
	})
}

// Chains reports whether a line connects an exception to the next one.
func Chains(b []byte) bool {
	return bytes.HasPrefix(b, []byte("During handling of the above exception, ")) || bytes.HasPrefix(b, []byte("The above exception was the direct cause "))
}

// ExceptionMeaning returns the meaning of an exception about another process, and the kind of event; "" for others. In vLLM's
// engine, "RPC call to execute_model timed out."; in Ray, the end of a worker that was killed.
func ExceptionMeaning(name string, message []byte) (series.InstantKind, string) {
	call, rest, ok := bytes.Cut(logline.Behind(message, "RPC call to "), []byte(" timed out"))
	switch {
	case ok && len(rest) <= 2 && len(call) > 0 && len(call) <= 60:
		return series.Timeout, "its workers did not return from " + logline.Word(call) + " in time"
	case strings.HasSuffix(name, "DistNetworkError"):
		return series.Exception, NoPeer(message)
	case name == "ray.exceptions.OutOfMemoryError":
		return series.Exception, "Ray killed a worker, because its host ran out of memory"
	}
	return 0, ""
}

// Panic parses the message of Go or Rust about a panic. The kind shows whether it ends the program: in Rust, only a panic
// of the main thread does. Of Go's own reasons, it returns everything; others may quote a request.
func Panic(b []byte) (text string, kind series.InstantKind) {
	if why, ok := bytes.CutPrefix(b, []byte("panic: ")); ok {
		if bytes.HasPrefix(why, []byte("runtime error: ")) {
			return "panicked: " + logline.Message(why), series.Exception
		}
		return "panicked", series.Exception
	}
	_, rest, _ := bytes.Cut(b, []byte("thread '"))
	thread, at, ok := bytes.Cut(rest, []byte("' panicked at "))
	if !ok || bytes.HasPrefix(at, []byte("'")) || bytes.ContainsAny(thread, "' ") { // until 1.72, the message came first
		return "", 0
	}
	where, _, _ := bytes.Cut(at, []byte(": "))
	if text = "a thread of it panicked at " + strings.TrimSuffix(string(where), ":"); string(thread) == "main" {
		return "panicked at " + strings.TrimSuffix(string(where), ":"), series.Exception
	}
	return text, series.Traceback
}

// Uncaught reads an exception as RunPod's worker reports it, "Uncaught exception | <class 'KeyError'>; 'x'; <traceback object at 0x7f5b>;".
func Uncaught(b []byte) string {
	name, said, ok := bytes.Cut(logline.Behind(b, "<class '"), []byte("'>; "))
	if !ok || len(name) > 100 {
		return ""
	}
	if i := bytes.Index(said, []byte("; <traceback object")); i >= 0 {
		said = said[:i]
	}
	return strings.TrimSuffix(ExceptionText(string(name), slices.Concat(name, []byte(": "), said)), ".")
}

// InMethod reads why a worker of vLLM before V1 failed while it started, "Exception in worker VllmWorkerProcess while
// processing method init_device: NCCL error: unhandled system error, Traceback (most recent call last):". It is "" for
// other lines, and for methods that serve requests, which messages may quote.
func InMethod(b []byte) string {
	_, said, _ := bytes.Cut(b, []byte(" while processing method "))
	method, said, _ := bytes.Cut(said, []byte(": "))
	said, _, whole := bytes.Cut(said, []byte(", Traceback (most recent call last):"))
	if !whole || !slices.Contains(starting, string(method)) {
		return ""
	}
	return logline.Message(said)
}
