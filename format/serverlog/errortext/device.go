package errortext

import (
	"bytes"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
)

// Because returns the reason after a key in a message, ": GPU Hang".
func Because(b []byte, key string) string {
	if why := logline.Message(bytes.TrimRight(logline.Behind(b, key), ". ")); why != "" {
		return ": " + why
	}
	return ""
}

// AbortedQueue reads "Callback: Queue 0x7f35 aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted
// in a hardware exception. code: 0x1016".
func AbortedQueue(b []byte) string {
	why := logline.Behind(b, "borting with error : ")
	code, text, _ := bytes.Cut(why, []byte(": "))
	if len(code) == 0 || len(code) > 80 {
		return ""
	}
	text, _, _ = bytes.Cut(text, []byte(". "))
	return "a queue of its GPU was aborted: " + logline.Message(text) + " (" + string(code) + ")"
}

// StuckNotify reads "hccl fftsplus task timeout occurred during task execution, .., stuck notify num:1, timeout=1836s.": a
// rank waits for another rank.
func StuckNotify(b []byte) string {
	if !bytes.Contains(b, []byte("task timeout")) {
		return ""
	}
	for _, key := range [...]string{"timeout=", ", timeout:"} {
		if s := logline.Beginning(logline.Behind(b, key), "", 10); strings.HasSuffix(s, "min") {
			return "a collective of HCCL timed out after " + strings.TrimSuffix(s, "min") + " min"
		} else if s != "" {
			return "a collective of HCCL timed out after " + strings.TrimSuffix(s, "s") + " s"
		}
	}
	return "a collective of HCCL timed out"
}

// FailedLink reads an error of HCCL with the reason why ranks cannot communicate, "EI0009: [PID: 22]
// 2025-09-24-20:59:48.119.066 Transport init error. Reason: .. remote_ip_addr[172.16.0.114]".
func FailedLink(b []byte) string {
	text, _, ok := bytes.Cut(b, []byte(" Reason: "))
	if i := bytes.LastIndex(text, []byte("] 20")); ok && i >= 0 {
		_, text, _ = bytes.Cut(text[i+2:], []byte(" "))
	}
	if !ok || len(text) == 0 || len(text) > 80 {
		return ""
	}
	says := "HCCL: " + logline.Message(bytes.TrimRight(text, ". "))
	if to := logline.Beginning(logline.Behind(b, "remote_ip_addr["), ".:", 40); to != "" {
		says += ", to " + to
	}
	return says
}
