package serverlog

import (
	"bytes"
	"strings"
	"time"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A deviceWord is the beginning of a line without a stamp in which the runtime of a device reports an error: ROCm, or CANN
// of Ascend.
type deviceWord struct {
	begins string
	kind   series.InstantKind
	says   func(b []byte) string // formats the rest of the line; "" drops it
	amid   bool                  // may follow a progress bar without a newline
}

var deviceWords = []deviceWord{
	{":0:rocdevice.cpp", series.Exception, errortext.AbortedQueue, false},
	{"Memory access fault by GPU node-", series.Exception, func(b []byte) string { return "a memory access fault of GPU node " + logline.Beginning(b, "", 4) }, true},
	{"HW Exception by GPU node-", series.Exception, func(b []byte) string {
		return "a hardware exception of GPU node " + logline.Beginning(b, "", 4) + errortext.Because(b, "reason :")
	}, true},
	{ofNPU, series.Exception, func(b []byte) string { return "its NPU: " + logline.Message(bytes.TrimRight(b, ". ")) }, false},
	{"The error from device(", series.Timeout, errortext.StuckNotify, true}, // behind "EI9999: 2024-10-21-10:42:00.358.410  "
	{"EI0", series.Communication, errortext.FailedLink, false},
}

// ofNPU is the beginning of CANN's description of an error, after the Python exception that only has its number.
const ofNPU = "[Error]: "

// ofDevice reads such a line.
func (r *reader) ofDevice(b []byte) bool {
	if of, rest, ok := bytes.Cut(b, []byte("]: ")); ok && bytes.HasPrefix(of, []byte("[rank")) { // prefix of torchrun and others
		b = rest
	}
	for i := range deviceWords {
		w := &deviceWords[i]
		rest, ok := bytes.CutPrefix(b, []byte(w.begins))
		if i := bytes.Index(b, []byte(w.begins)); !ok && w.amid && i > 0 {
			rest, ok = b[i+len(w.begins):], true
		}
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
// following lines describe the error.
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
