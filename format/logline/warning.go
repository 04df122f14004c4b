package logline

import (
	"bytes"
	"fmt"

	"github.com/sgtrace/sgtrace/internal/lazyregexp"
)

// SaysNCCL is the prefix of reported warnings.
const SaysNCCL = "NCCL warns: "

// failures are parts of NCCL's warnings that show that communication failed. Other warnings are about settings,
// or about fallbacks.
var failures = [...][]byte{
	[]byte("ut of memory"), []byte("Cuda failure"), []byte("Failed to CUDA "), []byte("No route to host"), []byte("onnection refused"), []byte("onnection timed out"), []byte("onnection abort"),
	[]byte("onnection reset"), []byte("losed by remote peer"), []byte("roken pipe"), []byte("imeout"), []byte("recv failed"), []byte("Failed to execute operation"), []byte("Error encountered progressing"),
	[]byte("async event"), []byte("async error event"), []byte("nreachable"),
}

var (
	// device matches the writer of a line: host, process, thread, and the CUDA device.
	device = lazyregexp.New(`([^\s:\[\]]+):\d+:\d+ \[(\d+)\]`)
	// completion matches an RDMA warning: the peer, the status, and since NCCL 2.20 the local device.
	completion = lazyregexp.New(`Got completion from peer ([^\s<]+)\S* with (?:error |status=)(?:\w+\()?(\d+)(?:.* hca (\w+))?`)
)

// statuses are the informative statuses of verbs, by number.
var statuses = map[string]string{"1": "local length error", "2": "local QP operation error", "4": "local protection error", "5": "flushed, as the connection had failed before", "9": "remote invalid request",
	"10": "remote access error", "11": "remote operation error", "12": "retries exceeded: the other side, or a link to it, does not answer", "13": "retries exceeded: the other side is not ready to receive"}

// FailureOf returns the failure in a warning of a line of NCCL, "connection refused (node5, GPU 6)"; ok is
// false for warnings about anything else.
func FailureOf(line, warning []byte) (text string, ok bool) {
	text = Message(warning)
	if m := completion.FindSubmatch(warning); m != nil {
		status := statuses[string(m[2])]
		if status == "" {
			status = "status " + string(m[2])
		}
		text = "RDMA with " + string(m[1])
		if len(m[3]) > 0 {
			text += " over " + string(m[3])
		}
		text, ok = text+" failed: "+status, true
	}
	for _, sign := range failures {
		ok = ok || bytes.Contains(warning, sign) && !bytes.Contains(warning, []byte("port active")) // again
	}
	if m := device.FindSubmatch(line); m != nil {
		text += fmt.Sprintf(" (%s, GPU %s)", m[1], m[2])
	}
	return text, ok
}
