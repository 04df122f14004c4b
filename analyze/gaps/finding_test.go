package gaps

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
)

// A host that waits for work that was not recorded is not late: the device was busy.
func TestUnrecordedWorkIsNoHostWait(t *testing.T) {
	for reason, want := range map[gpu.Reason]bool{gpu.Unseen: false, gpu.BlockingCopy: true, gpu.AfterSync: true} {
		cause := Cause{Reason: reason, Activity: host.Copying, Call: "hipMemcpyWithStream"}
		if cause.counts() != want {
			t.Errorf("%s: %v", gpu.ReasonWords[reason], cause.counts())
		}
	}
}

// Between steps, a host that waits for requests is no cause, whatever other threads do; one
// that waits for a thread that works is.
func TestCausesBetweenSteps(t *testing.T) {
	for _, c := range []struct {
		did   host.Activity
		other string
		want  bool
	}{
		{host.Locked, "encode.py(1): encode", true}, {host.Locked, "", false}, {host.Sleeping, "encode.py(1): encode", false}, {host.Sleeping, "", false},
		{host.NotRecorded, "encode.py(1): encode", false}, {host.InPython, "", false}, {host.Collecting, "", true}, {host.CopyingPageable, "", true}, {host.OnDevice, "", false},
	} {
		cause := Cause{Reason: gpu.BetweenSteps, Activity: c.did, Other: c.other}
		if cause.counts() != c.want {
			t.Errorf("%s, while %q: %v", c.did, c.other, cause.counts())
		}
	}
}

// A thread that waits for another one says so; only where there are Python frames, Python is at work.
func TestSentencesOfOtherThreads(t *testing.T) {
	for _, c := range []struct {
		cause Cause
		want  string
	}{
		{Cause{Activity: host.OtherThread, Call: "futex"}, "is waiting for another thread: futex"},
		{Cause{Activity: host.OtherThread, Frame: "scheduler.py(9): loop"}, "is Python in loop() (scheduler.py:9)"},
	} {
		if got := c.cause.sentence(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
