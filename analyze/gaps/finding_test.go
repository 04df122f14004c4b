package gaps

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/gpu"
)

// Between steps, a host that waits for requests is no cause, whatever other threads do; one
// that waits for a thread that works is.
func TestCausesBetweenSteps(t *testing.T) {
	for _, c := range []struct {
		did   Did
		other string
		want  bool
	}{
		{Locked, "encode.py(1): encode", true}, {Locked, "", false}, {Sleeping, "encode.py(1): encode", false}, {Sleeping, "", false},
		{NotRecorded, "encode.py(1): encode", false}, {InPython, "", false}, {Collecting, "", true}, {CopyingPageable, "", true}, {OnDevice, "", false},
	} {
		cause := Cause{Reason: gpu.BetweenSteps, Did: c.did, Other: c.other}
		if cause.counts() != c.want {
			t.Errorf("%s, while %q: %v", c.did, c.other, cause.counts())
		}
	}
}
