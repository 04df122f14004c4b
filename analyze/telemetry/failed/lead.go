package failed

import (
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// leading returns the event that best explains why processes ended.
func leading(group []*telemetry.Event) *telemetry.Event {
	best := group[0]
	learned := !slices.ContainsFunc(group, func(e *telemetry.Event) bool {
		return e.Kind == series.Exception && !follows(e.Text) && !strings.Contains(e.Text, "NCCL")
	})
	first := trace.Time(math.MaxInt64) // when the first process ended
	for _, e := range group {
		if ends(e) {
			first = min(first, e.First)
		}
	}
	rank := func(e *telemetry.Event) int {
		switch {
		case byKernel(e):
			return -1
		case e.Kind == series.OutOfMemory:
			return 0
		case e.Kind == series.Communication && learned && !isVictim(e.Text):
			return 0
		case e.Kind == series.Communication:
			return 9
		case e.Kind == series.Exception && strings.HasSuffix(e.Text, unended):
			return 6 // shows only where, not why
		case e.Kind == series.Exception && strings.HasSuffix(e.Text, " died"):
			return 7
		case e.Kind == series.Exception && !follows(e.Text):
			return 1
		case e.Kind == series.Exception && isVictim(e.Text):
			return 2
		case e.Kind == series.Exception:
			return 4
		case e.Kind == series.Traceback && follows(e.Text):
			return 8
		case e.Kind == series.Traceback:
			return 3
		case e.Kind == series.Crash && (strings.Contains(e.Text, "segmentation fault") || strings.Contains(e.Text, "bus error")):
			return 4 // its program prints no reason
		case e.Kind == series.Complaint && e.First > first+1e9:
			return 8 // a consequence
		case e.Kind == series.Complaint:
			return 5
		}
		return 7
	}
	for _, e := range group[1:] {
		if rank(e) < rank(best) || rank(e) == rank(best) && isBare(best.Text) && !isBare(e.Text) && e.First <= best.First+1e9 || rank(e) == rank(best) && len(e.Places) < len(best.Places) && e.First <= best.First+1e9 {
			best = e
		}
	}
	return best
}

// isBare reports whether a text has only the name of an exception.
func isBare(text string) bool {
	return strings.HasSuffix(text, "Error") || strings.HasSuffix(text, "Exception")
}

// follows reports whether an exception, or the way a process died, is a consequence of another failure.
func follows(text string) bool {
	return isVictim(text) || strings.Contains(text, "root cause") || strings.Contains(text, "raised in subprocess") || strings.Contains(text, "Error happened when batch testing") || slices.ContainsFunc(
		[]string{": worker died", " died with exit code 1", " died with exit code -15 (SIGTERM)", "KeyboardInterrupt", "CancelledError", "CalledProcessError"},
		func(end string) bool { return strings.HasSuffix(text, end) })
}

// isVictim reports whether an exception is how a process learns that another process failed.
func isVictim(text string) bool {
	if strings.HasSuffix(text, "TimeoutError") {
		return true
	}
	for _, sign := range [...]string{"onnection reset", "onnection closed", "roken pipe", "remote process exited", "EOFError", "without an end", "The process exits for this inner error", "EngineDead", "TimeoutError: RPC call to ", "losed by remote peer",
		"reset by peer", "recv failed", "Engine loop has died", "there are other ranks that didn't", "Failed to execute operation", "Error encountered progressing", "Failed to CUDA", "flushed, as",
		"process exited with code ", "DeepEP error: CPU recv timeout", "DeepEP error: timeout", "ChildFailedError", " clients joined"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
