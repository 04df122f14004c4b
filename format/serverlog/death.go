package serverlog

import (
	"bytes"
	"strings"

	"github.com/sgtrace/sgtrace/format/logline"
	"github.com/sgtrace/sgtrace/format/serverlog/errortext"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// died reads what a process prints as it ends.
func (r *reader) died(b []byte) bool {
	if says, kind := errortext.LastWord(b[:min(len(b), lookedAt)]); says != "" {
		r.f.Instant(series.Instant{Time: r.now, Kind: kind, Place: r.unranked(), Line: uint32(r.line), Count: 1}, says)
		return true
	}
	what, ok := bytes.CutPrefix(b, []byte("  what():  "))
	if ok && !bytes.Contains(what, []byte("terminated with exception:")) { // which PyTorch also logs
		r.f.Explain(errortext.UncaughtEnd, errortext.What(what[:min(len(what), lookedAt)]))
	}
	return ok
}

// A launched is a process started by torchrun, in its report of failures, field by field:
//
//	[1]:
//	  time      : 2026-06-03_22:45:52
//	  host      : n1
//	  rank      : 3 (local_rank: 3)
//	  exitcode  : -9 (pid: 19418)
//
// Times are local, and the first failure is separate from the others, after "Root Cause".
type launched struct {
	at   trace.Time
	rank int32
}

// failedOf reads a line of such a report. Its traceback field only explains how to enable tracebacks.
func (r *reader) failedOf(b []byte) bool {
	if bytes.HasPrefix(b, []byte("Root Cause (first observed failure):")) {
		return true
	}
	field, ok := bytes.CutPrefix(b, []byte("  "))
	name, value, found := bytes.Cut(field, []byte(": "))
	if !ok || !found || len(name) != len("exitcode  ") {
		return false
	}
	switch x := &r.launched; string(bytes.TrimRight(name, " ")) {
	case "time":
		*x = launched{rank: trace.NoRank.Global}
		if at, ok := r.stamps.Read(bytes.Replace(value, []byte("_"), []byte(" "), 1)); ok {
			x.at = at
			r.f.Within(1e9)
			r.f.Saw(at)
			r.f.Source().Zone.Local = true
		}
	case "rank":
		if n, ok := logline.After(b, ": "); ok && n >= 0 && n < 1<<20 {
			x.rank = int32(n)
		}
	case "exitcode":
		rank := trace.NoRank
		rank.Global = x.rank
		code := logline.Beginning(value, "-", 8)
		server := r.f.Set.Places[r.unranked()].Server
		r.f.Instant(series.Instant{Time: x.at, Kind: series.Crash, Place: r.f.Place(series.Place{Server: server, Rank: rank, GPU: series.NoGPU}), Line: uint32(r.line), Count: 1}, errortext.EndedChild(code))
	case "host", "error_file", "traceback":
	default:
		return false
	}
	return true
}

// unloaded returns why Triton did not load a model: "failed to load 'm' version 1: Internal: ..", or, for a model that
// needs it, "Model 'm' loading failed with error: version 1 is at UNAVAILABLE state: Internal: ..". A backend's error about
// a model quotes no request.
func unloaded(r *reader, b []byte, _ *series.Instant) string {
	before, why, ok := bytes.Cut(b, []byte("' loading failed with error: "))
	name := before[bytes.LastIndexByte(before, '\'')+1:]
	if _, reason, stated := bytes.Cut(why, []byte(" state: ")); stated {
		why = reason
	}
	if !ok {
		name, why, ok = bytes.Cut(logline.Behind(b, "failed to load '"), []byte("' version "))
		_, why, _ = bytes.Cut(why, colon)
	}
	if !ok {
		r.unknown(b)
		return ""
	}
	return "its model " + logline.Beginning(name, "._-", 80) + " did not load: " + strings.TrimRight(logline.Message(why), ";. ")
}

// ncclEnds returns why PyTorch's watchdog ends a process: messages of CUDA and NCCL quote no requests. A timeout of a
// collective is reported separately.
func ncclEnds(r *reader, b []byte, _ *series.Instant) string {
	why := bytes.TrimLeft(logline.Behind(b, "thread terminated with exception:"), " ")
	switch {
	case bytes.Contains(why, []byte("Watchdog caught collective")), r.timedOut && bytes.HasPrefix(why, []byte("[Rank ")): // reported separately, or cut off
		return ""
	case bytes.HasPrefix(why, []byte("CUDA error: ")), bytes.HasPrefix(why, []byte("NCCL error")):
		return "PyTorch ends it: " + logline.Message(why)
	}
	return "PyTorch ends it, as its watchdog met an exception"
}
