package gaps

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
)

// Between steps, a host that waits for requests is no cause, whatever other threads do; one
// that waits for a thread that works is.
func TestCausesBetweenSteps(t *testing.T) {
	for _, c := range []struct {
		did   host.Did
		other string
		want  bool
	}{
		{host.Locked, "encode.py(1): encode", true}, {host.Locked, "", false}, {host.Sleeping, "encode.py(1): encode", false}, {host.Sleeping, "", false},
		{host.NotRecorded, "encode.py(1): encode", false}, {host.InPython, "", false}, {host.Collecting, "", true}, {host.CopyingPageable, "", true}, {host.OnDevice, "", false},
	} {
		cause := Cause{Reason: gpu.BetweenSteps, Did: c.did, Other: c.other}
		if cause.counts() != c.want {
			t.Errorf("%s, while %q: %v", c.did, c.other, cause.counts())
		}
	}
}
