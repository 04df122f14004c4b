package gpuloss

import (
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// If a launch loads code, that is the reason for the gap at the start; CUDA itself started before the device had any work.
// If no launch loads code, the start of CUDA is the reason. A reason for less than half of the time explains it only partly.
func TestColdStartSaysWhat(t *testing.T) {
	const ms = 1_000_000
	for name, c := range map[string]struct {
		loads, unseen int64 // ms
		want, not     string
	}{
		"a launch":        {48, 0, " of it in 1 gap at the start, while the host loads code; ", "cudaEventCreate"},
		"CUDA":            {0, 0, " of it in 1 gap at the start, while CUDA or one of its libraries starts; ", "loads code"},
		"mostly a launch": {48, 20, " of it in 1 gap at the start, mostly while the host loads code; ", "cudaEventCreate"},
		"partly a launch": {48, 60, " of it in 1 gap at the start, partly while the host loads code; ", "cudaEventCreate"},
	} {
		d := gpu.GPU{Rank: "TP0", Last: 200 * ms, Rows: 100, Kernels: 100}
		d.Cold.Time[gpu.Modules], d.Cold.Time[gpu.Unseen], d.Cold.Gaps = 48*ms, c.unseen*ms, 1
		if c.loads > 0 {
			d.Cold.Loads.N, d.Cold.Loads.Total, d.Cold.Loads.Longest = 1, c.loads*ms, c.loads*ms
		}
		d.Waits.Time[gpu.Modules], d.Waits.Time[gpu.Unseen] = 48*ms, c.unseen*ms
		d.Activity.Idle.Time[gpu.HostWait] = (48 + c.unseen) * ms
		d.Running[1<<kernelname.ClassCompute] = (152 - c.unseen) * ms
		g := &gpu.GPUs{GPUs: []gpu.GPU{d}, Calls: []gpu.CallTime{{Name: "cudaEventCreate", Reason: gpu.Modules, N: 1, Time: 248 * ms, Max: 248 * ms, Starts: true}}}
		all, _ := total(g, "idle time")
		found := coldStart(g, &all)
		if len(found) != 1 {
			t.Errorf("%s: %+v", name, found)
			continue
		}
		f := &found[0]
		told := append(finding.Sentences(f.Evidence), f.Text)
		if !strings.Contains(f.Text, c.want) || slices.ContainsFunc(told, func(text string) bool { return strings.Contains(text, c.not) }) {
			t.Errorf("%s: %q, want %q and no %q", name, told, c.want, c.not)
		}
	}
}
