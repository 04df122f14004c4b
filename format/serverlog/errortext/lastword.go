package errortext

import (
	"bytes"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/series"
)

// A lastWord is what the runtime of a process, or its shell, prints without a stamp as the process ends: at the beginning
// of a line, anywhere in it, or at its end.
type lastWord struct {
	begins, has, ends string
	kind              series.InstantKind
	says              string
	quotes            string // text before the quoted reason
}

// UncaughtEnd is the text about an exception of C++ that ended a process.
const UncaughtEnd = "an uncaught C++ exception ended it"

const busError = "a bus error: shared memory (/dev/shm) may be too small"

// lastWords are tried in this order. Those with a reason are exceptions; others only report the end.
var lastWords = []lastWord{
	{has: "] Caught signal 11 (Segmentation fault", kind: series.Exception, says: "a segmentation fault"}, // of UCX, "[node1:12796:1:13303] Caught"
	{has: "] Caught signal 7 (Bus error", kind: series.Exception, says: busError},
	{begins: "!!!!!!! Segfault encountered", kind: series.Exception, says: "a segmentation fault"},
	{begins: "Fatal Python error: Segmentation fault", kind: series.Exception, says: "a segmentation fault"},
	{begins: "Fatal Python error: Bus error", kind: series.Exception, says: busError},
	{begins: "Fatal Python error: ", kind: series.Crash, says: "Python ended at once"},
	{begins: "ERROR: Unexpected bus error encountered in worker", kind: series.Exception, says: busError},
	{begins: "terminate called ", kind: series.Crash, says: UncaughtEnd, quotes: "throwing an instance of '"},
	{begins: "Failed: Cuda error ", kind: series.Exception, says: "a failed CUDA call ended it", quotes: " '"}, // the all-reduce of SGLang and vLLM
	{begins: "Failed: HIP error ", kind: series.Exception, says: "a failed HIP call ended it", quotes: " '"},
	{ends: "Segmentation fault (core dumped)", kind: series.Exception, says: "a segmentation fault"},
	{ends: "Bus error (core dumped)", kind: series.Exception, says: busError},
	{ends: "Illegal instruction (core dumped)", kind: series.Exception, says: "an illegal instruction, which this processor does not have"},
	{ends: "Aborted (core dumped)", kind: series.Crash, says: "was aborted"},
	{begins: "INFO:     Finished server process [", kind: series.Stopping, says: "its HTTP server has ended"},
}

// alone are lines with nothing but the shell's word about a process.
var alone = map[string]lastWord{
	"Killed":              {kind: series.Crash, says: "was killed"}, // SGLang also kills itself after a failure
	"Segmentation fault":  {kind: series.Exception, says: "a segmentation fault"},
	"Bus error":           {kind: series.Exception, says: busError},
	"Illegal instruction": {kind: series.Exception, says: "an illegal instruction, which this processor does not have"},
	"Aborted":             {kind: series.Crash, says: "was aborted"},
}

// LastWord reads what a process, or its shell, prints as it ends; says is "" for any other line.
func LastWord(b []byte) (says string, kind series.InstantKind) {
	if text, kind := Panic(b); text != "" {
		return text, kind
	}
	if why := logline.Behind(b, "CUDA runtime error: "); why != nil && bytes.HasPrefix(b, ofTurboMind) {
		return "CUDA error: " + unplaced(why), series.Exception
	}
	trimmed := bytes.TrimSpace(b)
	if w, ok := alone[string(trimmed)]; ok && len(trimmed) > 0 && b[0] == trimmed[0] {
		return w.says, w.kind
	}
	for i := range lastWords {
		w := &lastWords[i]
		if !bytes.HasPrefix(b, []byte(w.begins)) || !bytes.Contains(b, []byte(w.has)) || !bytes.HasSuffix(trimmed, []byte(w.ends)) {
			continue
		}
		says := w.says
		if of, _, ok := bytes.Cut(logline.Behind(b, w.quotes), []byte("'")); w.quotes != "" && ok && len(of) < 80 {
			says += ": " + string(of)
		}
		return says, w.kind
	}
	return "", 0
}

// ofTurboMind is the beginning of an error of LMDeploy's engine.
var ofTurboMind = []byte("[TM][ERROR] ")

// What returns what an exception of C++ says that ended a process, without anything that it may quote.
func What(b []byte) string {
	for _, of := range [...]string{"[TensorRT-LLM][ERROR] ", "[TM][ERROR] "} {
		if why := logline.Behind(b, of); why != nil {
			return unplaced(why)
		}
	}
	return Said(b, "")
}

// unplaced returns a message of C++ without the place in the source that follows it, "too few (/src/a.h:7)".
func unplaced(b []byte) string {
	for _, from := range [...]string{" (/", " /"} {
		b, _, _ = bytes.Cut(b, []byte(from))
	}
	return logline.Message(b)
}
