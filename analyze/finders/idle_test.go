package finders

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gaps"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/host"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// Avoidable work of the host while its GPU is idle is part of the idle time and costs nothing extra. Between
// steps, which the finding about idle time does not cover, it is a finding of its own. It is in the sentence
// from a fifth of the idle time on, else in the evidence; without a finding about idle time, it stands alone.
func TestAvoidableIsIdleTime(t *testing.T) {
	const ms = 1_000_000
	for name, c := range map[string]struct {
		idle, copies, between int64 // ms of 1 s: of waiting for the host, of copies in it, and between steps
		cost                  []float64
		text                  string
		evidence              string // of the first finding
	}{
		"much":          {400, 90, 0, []float64{0.4}, "the GPU is idle 40 % of the time, because the host launches kernels too late; for 9 % of the time (90 ms) while the host copies pageable memory", "cudaMemcpyAsync: 90 ms in 40 gaps, the longest 45 ms"},
		"little":        {400, 30, 0, []float64{0.4}, "the GPU is idle 40 % of the time, because the host launches kernels too late", "of that, for 3 % of the time (30 ms) while the host copies pageable memory"},
		"between steps": {400, 30, 40, []float64{0.4, 0.04}, "the GPU is idle 40 % of the time in steps, because the host launches kernels too late", "of that, for 3 % of the time (30 ms) while the host copies pageable memory"},
		"alone":         {95, 20, 0, []float64{0.02}, "the GPU is idle for 2 % of the time (20 ms) while the host copies pageable memory", "cudaMemcpyAsync: 20 ms in 40 gaps, the longest 10 ms"},
	} {
		device := gpu.GPU{Rank: "TP0", Last: 1000 * ms, Rows: 1000, Kernels: 1000}
		device.Waits.Time[gpu.HostWork], device.Waits.Time[gpu.BetweenSteps] = c.idle*ms, c.between*ms
		device.Running[1<<kernelname.ClassCompute] = (1000 - c.idle - c.between) * ms
		cause := func(r gpu.Reason, did host.Activity, n int64) gaps.Cause {
			return gaps.Cause{Reason: r, Activity: did, Call: "cudaMemcpyAsync", Time: n * ms, Gaps: 40, LongestPart: n * ms / 2}
		}
		all := []gaps.Cause{cause(gpu.HostWork, host.CopyingPageable, c.copies)}
		if c.between > 0 {
			all = append(all, cause(gpu.BetweenSteps, host.CopyingPageable, c.between))
		}
		for range 20 { // none of them is a fifth of the host's delay
			all = append(all, gaps.Cause{Reason: gpu.HostWork, Activity: host.InPython, Frame: "a.py(1): f", Time: (c.idle - c.copies) * ms / 20, Gaps: 40})
		}
		m := &Measured{GPUs: &gpu.GPUs{GPUs: []gpu.GPU{device}}, Gaps: &gaps.Gaps{Causes: all}}
		found, _ := idleGPUs(m)
		more, _ := pageableCopies(m)
		if found = append(found, more...); len(found) != len(c.cost) {
			t.Errorf("%s: %+v", name, found)
			continue
		}
		for i, f := range found {
			if f.Cost != c.cost[i] {
				t.Errorf("%s: costs %v, want %v", name, f.Cost, c.cost[i])
			}
		}
		if f := &found[0]; f.Text != c.text || !slices.Contains(finding.Sentences(f.Evidence), c.evidence) {
			t.Errorf("%s: %s, want %s\n%q", name, f.Text, c.text, finding.Sentences(f.Evidence))
		}
	}
}

// If the host spends most of the time between steps in one place, the finding says where. Several places are in the evidence.
func TestHostsBetweenSteps(t *testing.T) {
	const ms = 1_000_000
	device := gpu.GPU{Rank: "TP0", Last: 1000 * ms, Rows: 1000, Kernels: 1000}
	device.Waits.Time[gpu.BetweenSteps] = 600 * ms
	at := func(reason gpu.Reason, frame string, n int64) gaps.Cause {
		return gaps.Cause{Reason: reason, Activity: host.InPython, Frame: frame, Time: n * ms, Gaps: 40}
	}
	for prepare, want := range map[int64]string{
		590: "the GPU is idle 60 % of the time between steps: no batch to run, or a slow scheduler; for 98 % of that, hosts are in prepare() (a.py:1)",
		200: "the GPU is idle 60 % of the time between steps: no batch to run, or a slow scheduler",
	} {
		m := &Measured{GPUs: &gpu.GPUs{GPUs: []gpu.GPU{device}, Steps: make([]gpu.StepTime, 1)},
			Gaps: &gaps.Gaps{Causes: []gaps.Cause{at(gpu.BetweenSteps, "a.py(1): prepare", prepare), at(gpu.HostWork, "a.py(9): launch", 700)}}}
		found, _ := betweenSteps(m)
		if len(found) != 1 || found[0].Text != want {
			t.Errorf("%+v, want %s", found, want)
			continue
		}
		if told := slices.Contains(finding.Sentences(found[0].Evidence), "hosts are in prepare() (a.py:1) for 200 ms then"); told != (prepare == 200) {
			t.Errorf("%q", finding.Sentences(found[0].Evidence))
		}
	}
}
