package gpuloss

import (
	"math"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A plantedStep begins with idle us in which the host launches nothing. Then kernels
// run for busy us; the last comm us of that are communication that nothing hides.
type plantedStep struct{ idle, busy, comm int64 }

// regimesOf measures 50 prefill steps, and then 50 decode steps.
func regimesOf(prefill, decode plantedStep) *gpu.GPUs {
	const us = 1000
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	now, correlation := int64(1000), int64(0)
	event := func(name string, from, to, correlation int64) profile.Event {
		return profile.Event{Start: trace.Time(from * us), End: trace.Time(to * us), Correlation: correlation, Name: syms.Intern(name), PID: 7}
	}
	kernel := func(name string, launch, from, to int64) {
		if correlation++; to > from {
			s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", launch, launch+1, correlation), TID: 1})
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event(name, from, to, correlation)})
		}
	}
	for i := range 100 {
		name, p := "step[EXTEND bs=1 toks=512]", prefill
		if i >= 50 {
			name, p = "step[DECODE bs=32]", decode
		}
		start, end := now+p.idle, now+p.idle+p.busy
		s.RangeRows = append(s.RangeRows, profile.Range{Event: event(name, now, end, 0), TID: 1})
		launch := start - min(1, p.idle)
		kernel("gemm", launch, start, end-p.comm)
		kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", launch, end-p.comm, end)
		now = end
	}
	return gpu.Measure(testset.SetOf(syms, []string{"TP0"}, s), gpu.Options{})
}

// A loss that is large in one kind of step is found there even if it is small
// overall. If it is large overall, evidence has its share in each kind.
func TestRegimes(t *testing.T) {
	const both = "in decode 41 %, in prefill 6 %"
	for _, c := range []struct {
		name            string
		prefill, decode plantedStep
		text, metric    string // of the only finding; "" is none
		cost            float64
		evidence        string
	}{
		{"idle in decode", plantedStep{120, 1880, 0}, plantedStep{410, 590, 0},
			"in decode, the GPU is idle 41 % of the time, because the host launches kernels too late", "idle time in decode", 0.41 / 3, both},
		{"idle in both", plantedStep{500, 500, 0}, plantedStep{300, 700, 0},
			"the GPU is idle 40 % of the time, because the host launches kernels too late", "idle time", 0.4, "in prefill 50 %, in decode 30 %"},
		{"communication in decode", plantedStep{0, 2000, 120}, plantedStep{0, 1000, 410},
			"in decode, the GPU spends 41 % of the time on exposed communication (not overlapped by compute)", "exposed communication in decode", 0.41 / 3, both},
		{"in few decode steps", plantedStep{0, 10000, 0}, plantedStep{410, 590, 0}, "", "", 0, ""},
		{"healthy", plantedStep{150, 1850, 200}, plantedStep{120, 880, 200}, "", "", 0, ""},
	} {
		found := all(regimesOf(c.prefill, c.decode))
		if c.text == "" {
			if len(found) > 0 {
				t.Errorf("%s: %+v", c.name, found)
			}
			continue
		}
		if len(found) != 1 {
			t.Errorf("%s: %+v", c.name, found)
			continue
		}
		f := found[0]
		if f.Text != c.text || f.Metric.Name != c.metric || math.Abs(f.Cost-c.cost) > 0.005 || !slices.Contains(finding.Sentences(f.Evidence), c.evidence) {
			t.Errorf("%s: %s\n%+v", c.name, f.Text, f)
		}
	}
}
