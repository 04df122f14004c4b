package gpuloss

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/trace"
)

// Kernels that a device holds back are a finding of their own, and not idle time of the host.
func TestWithheld(t *testing.T) {
	held := func(late int64, since trace.Time) gpu.GPU {
		g := gpuOf(0, 0, map[gpu.Reason]int64{gpu.HostWork: 30, gpu.Withheld: 24})
		g.Held = gpu.Held{N: 10, Late: late, Time: 24 * ms, Median: 2400_000, Starts: 900, Else: 2000, Since: since, SinceN: 9, SinceStarts: 300}
		return g
	}
	quiet := gpuOf(0, 0, nil)
	quiet.Held.Starts = 500
	for _, c := range []struct {
		name string
		gpus []gpu.GPU
		idle float64 // cost
		want string  // in the text; "" is no finding
	}{
		{"since", []gpu.GPU{held(10, gpu.Absolute+5*ms)}, 0.3, "since 01:46:40.005, 9 of 300 kernels that find the GPU idle start a median of 2.40 ms after their launch"},
		{"always", []gpu.GPU{held(5, 0)}, 0.3, "10 of 900 kernels that find the GPU idle start a median of 2.40 ms"},
		{"on one of two", []gpu.GPU{quiet, held(5, 0)}, 0.15, "on TP0, 10 of 900"},
		{"what was launched before may be work that is missing", []gpu.GPU{held(4, 0)}, 0.54, ""},
	} {
		g := &gpu.GPUs{GPUs: c.gpus}
		found, check := Withheld(g)
		idle, _ := Idle(g, notPaused)
		switch {
		case check.State() != finding.LookedAt || len(idle) != 1 || idle[0].Cost != c.idle:
			t.Errorf("%s: %v, idle %+v", c.name, check, idle)
		case (len(found) == 1) != (c.want != ""):
			t.Errorf("%s: %+v", c.name, found)
		case len(found) == 1 && (!strings.HasPrefix(found[0].Text, c.want) || found[0].Cost != 0.24/float64(len(c.gpus))):
			t.Errorf("%s: %+v", c.name, found[0])
		}
	}
}
