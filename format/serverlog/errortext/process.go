package errortext

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
)

// exits are the causes of the end of a process, by its exit code.
var exits = map[string]string{"-4": "illegal instruction, which this processor does not have", "-6": "aborted", "-7": "bus error", "-9": "killed, often because the host ran out of memory", "-11": "segmentation fault", "-15": "SIGTERM"}

// Exited reads "Exit code: -9".
func Exited(b []byte) string {
	code := string(bytes.TrimSpace(logline.Behind(b, "Exit code: ")))
	if len(code) > 4 || strings.Trim(code, "-0123456789") != "" || code == "0" {
		return ""
	}
	return "a process ended with exit code " + code + ExitCodeMeaning(code)
}

// ExitCodeMeaning returns the meaning of an exit code.
func ExitCodeMeaning(code string) string {
	if text := exits[code]; text != "" {
		return " (" + text + ")"
	}
	return ""
}

// StuckWatchdog reads for how long PyTorch's watchdog of NCCL was stuck: it then ends its process.
func StuckWatchdog(b []byte) string {
	text := "NCCL's watchdog itself is stuck"
	if s, ok := logline.After(b, "stuck for "); ok {
		text += fmt.Sprintf(" for %g s", s)
	}
	return text + ": a CUDA or NCCL call does not return"
}

// SilentWorkers reads that no worker of vLLM took its engine's messages for some time.
func SilentWorkers(b []byte) string {
	if s, ok := logline.After(b, "found in "); ok {
		return fmt.Sprintf("its workers did not return for %g s", s)
	}
	return "its workers did not return"
}

// FailedChild reads torchrun's message about the end of a process: "failed (exitcode: -9) local_rank: 0 (pid: 77) of
// binary: python".
func FailedChild(b []byte) string {
	return EndedChild(logline.Beginning(logline.Behind(b, "(exitcode: "), "-", 8))
}

// EndedChild describes the end of a process that torchrun started. It omits the pid, which is of no use any more, and
// differs each time that a job restarts.
func EndedChild(code string) string {
	return "its process ended with exit code " + code + ExitCodeMeaning(code) + ", says torchrun"
}

// BuiltKernel reads how long AITER took to build kernels.
func BuiltKernel(b []byte) string {
	text := "has built a kernel"
	if s, ok := logline.After(b, "cost "); ok {
		text += fmt.Sprintf(", after %.0f s", s)
	}
	return text
}

// DeadRayWorker reads the host and the process of a worker that Ray lost. Ray does not know the reason.
func DeadRayWorker(b []byte) string {
	text := "Ray lost a worker"
	if n, ok := logline.After(b, "Worker PID: "); ok {
		text += fmt.Sprintf(", process %.0f", n)
	}
	if ip := logline.Beginning(logline.Behind(b, "Worker IP address: "), ".:", 40); ip != "" {
		text += " on " + ip
	}
	return text + ": it was killed, or crashed"
}

// DeadActor reads why an actor of Ray is dead: Ray's own words, up to the end of the sentence.
func DeadActor(b []byte) string {
	why, _, _ := bytes.Cut(logline.Behind(b, "The actor is dead because "), []byte(". "))
	return "an actor of Ray is dead: " + strings.TrimSuffix(logline.Message(why), ".")
}

// ExitedWorker reads "Worker VllmWorkerProcess pid 160 died, exit code: -6".
func ExitedWorker(b []byte) string {
	code, ok := logline.After(b, " died, exit code: ")
	if !ok {
		return "a worker died"
	}
	return "a worker died with exit code " + strconv.Itoa(int(code)) + ExitCodeMeaning(strconv.Itoa(int(code)))
}

// DeadWorker reads "Worker proc VllmWorker-3 died unexpectedly", or the same about "Engine core proc EngineCore_DP0".
func DeadWorker(b []byte) string {
	if name, _, ok := bytes.Cut(logline.Behind(b, "Engine core proc "), []byte(" ")); ok && len(name) < 60 {
		return "its engine " + string(name) + " died"
	}
	if name, _, ok := bytes.Cut(logline.Behind(b, "Worker proc "), []byte(" ")); ok && len(name) < 60 {
		return "worker " + string(name) + " died"
	}
	return "a worker died"
}

// FailedForward reads why a pass of TensorRT-LLM failed, "Encountered an error in forwardAsync function:
// [TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMalloc(ptr): no such device (/src/a.h:7)". This is a message of its
// code, and quotes no request.
func FailedForward(b []byte) string {
	why := bytes.TrimPrefix(logline.Behind(b, "function: "), []byte("[TensorRT-LLM][ERROR] "))
	if i := bytes.LastIndex(why, []byte(" (/")); i >= 0 {
		why = why[:i]
	}
	if len(why) == 0 {
		return "its forward pass failed"
	}
	return "its forward pass failed: " + logline.Message(why)
}

// FailedModel reads the exception of a Python model in Triton's backend: "Failed to process the request(s) for model
// 'm_0_0', message: ValueError: ..".
func FailedModel(b []byte) string {
	name := logline.Beginning(logline.Behind(b, "for model '"), "._-", 80)
	why := logline.Behind(b, "message: ")
	text := "its model " + name + " fails requests"
	if of := ExceptionName(why); of != "" {
		text += ": " + ExceptionText(of, why)
	}
	return text
}

// Collective reads which collective PyTorch's watchdog caught: "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7,
// OpType=ALLREDUCE, ..".
func Collective(b []byte) string {
	if !bytes.Contains(b, []byte("Watchdog caught collective operation timeout")) {
		return ""
	}
	text := "a collective timed out"
	if i := bytes.Index(b, []byte("OpType=")); i >= 0 {
		text += ": " + logline.Word(b[i+len("OpType="):])
	}
	if n, ok := logline.After(b, "SeqNum="); ok {
		text += fmt.Sprintf(" number %.0f", n)
	}
	return text
}

// NoPeer reads to whom a process did not get a connection: "[c10d] The client socket has timed out after 60s while trying to
// connect to (10.1.2.3, 29400).", or 600000ms since 2.4.
func NoPeer(b []byte) string {
	to := strings.Replace(logline.Beginning(logline.Behind(b, "trying to connect to ("), ".:-_, ", 80), ", ", ":", 1)
	n, ok := logline.After(b, "timed out after ")
	if to == "" || !ok {
		return ""
	}
	if bytes.Contains(b, []byte("ms while")) {
		n /= 1e3
	}
	return fmt.Sprintf("no connection to %s within %g s: the address is wrong, or something between blocks it, or nobody listens there", to, n)
}
