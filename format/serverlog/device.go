package serverlog

import (
	"bytes"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A deviceWord begins a line without a stamp in which the runtime of a device says what failed: ROCm, or CANN of Ascend.
type deviceWord struct {
	begins string
	kind   series.InstantKind
	says   func(b []byte) string // of what follows; "" keeps nothing
}

var deviceWords = []deviceWord{
	{":0:rocdevice.cpp", series.Exception, abortedQueue},
	{"Memory access fault by GPU node-", series.Exception, func(b []byte) string { return "a memory access fault of GPU node " + logline.Beginning(b, "", 4) }},
	{"HW Exception by GPU node-", series.Exception, func(b []byte) string {
		return "a hardware exception of GPU node " + logline.Beginning(b, "", 4) + because(b, "reason :")
	}},
	{ofNPU, series.Exception, func(b []byte) string { return "its NPU: " + logline.Message(bytes.TrimRight(b, ". ")) }},
	{"The error from device(", series.Timeout, stuckNotify},
	{"EI0", series.Communication, failedLink},
}

// ofNPU begins what CANN says of an error, behind the exception of Python that has only its number.
const ofNPU = "[Error]: "

// because is the reason that a message gives behind a key, ": GPU Hang".
func because(b []byte, key string) string {
	if why := logline.Message(bytes.TrimRight(behind(b, key), ". ")); why != "" {
		return ": " + why
	}
	return ""
}

// abortedQueue reads "Callback: Queue 0x7f35 aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a
// hardware exception. code: 0x1016".
func abortedQueue(b []byte) string {
	why := behind(b, "aborting with error : ")
	code, text, _ := bytes.Cut(why, []byte(": "))
	if len(code) == 0 || len(code) > 80 {
		return ""
	}
	text, _, _ = bytes.Cut(text, []byte(". code"))
	return "a queue of its GPU was aborted: " + logline.Message(text) + " (" + string(code) + ")"
}

// stuckNotify reads "hccl fftsplus task timeout occurred during task execution, .., stuck notify num:1, timeout=1836s.": a rank
// waits for another one.
func stuckNotify(b []byte) string {
	if !bytes.Contains(b, []byte("task timeout")) {
		return ""
	}
	if s := logline.Beginning(behind(b, "timeout="), "", 10); s != "" {
		return "a collective of HCCL timed out after " + strings.TrimSuffix(s, "s") + " s"
	}
	return "a collective of HCCL timed out"
}

// failedLink reads an error of HCCL that says why ranks cannot talk, "EI0009: [PID: 22] 2025-09-24-20:59:48.119.066 Transport init
// error. Reason: .. remote_ip_addr[172.16.0.114]".
func failedLink(b []byte) string {
	text, _, ok := bytes.Cut(b, []byte(" Reason: "))
	if i := bytes.LastIndex(text, []byte("] 20")); ok && i >= 0 {
		_, text, _ = bytes.Cut(text[i+2:], []byte(" "))
	}
	if !ok || len(text) == 0 || len(text) > 80 {
		return ""
	}
	says := "HCCL: " + logline.Message(bytes.TrimRight(text, ". "))
	if to := logline.Beginning(behind(b, "remote_ip_addr["), ".:", 40); to != "" {
		says += ", to " + to
	}
	return says
}

// ofDevice reads such a line.
func (r *reader) ofDevice(b []byte) bool {
	if of, rest, ok := bytes.Cut(b, []byte("]: ")); ok && bytes.HasPrefix(of, []byte("[rank")) { // as torchrun, and others, put before it
		b = rest
	}
	for i := range deviceWords {
		w := &deviceWords[i]
		rest, ok := bytes.CutPrefix(b, []byte(w.begins))
		if !ok {
			continue
		}
		says := w.says(rest[:min(len(rest), lookedAt)])
		if says == "" {
			return false
		}
		if w.begins == ofNPU && r.f.Explain("NPU function error", strings.TrimPrefix(says, "its NPU: ")) {
			return true
		}
		r.f.Instant(series.Instant{Time: r.now, Kind: w.kind, Place: r.unranked(), Line: uint32(r.line), Count: 1}, says)
		return true
	}
	return false
}

// ofCANN reads the stamp of "[ERROR] 2025-12-12-12:10:10 (PID:402, Device:7, RankID:-1) ERR02005 DIST internal error": the
// lines that follow say what it is about.
func (r *reader) ofCANN(b []byte) bool {
	const head, stamp = "[ERROR] ", "2006-01-02-15:04:05"
	if !bytes.HasPrefix(b, []byte(head+"20")) || len(b) < len(head+stamp) {
		return false
	}
	t, err := time.Parse(stamp, string(b[len(head):len(head+stamp)]))
	if err != nil {
		return false
	}
	r.f.Within(1e9)
	r.now = r.place(trace.Time(t.UnixNano()), logline.Wrapping{}, 1e9)
	r.f.Saw(r.now)
	return true
}
