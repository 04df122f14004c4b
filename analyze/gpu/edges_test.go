package gpu

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A plantedCall launches a kernel. Times are in us.
type plantedCall struct {
	name         string
	start, end   int64
	kernel       string // "" launches nothing
	runs, runsTo int64
	open         bool // a range that was never closed
}

// measurePlanted measures a process with these calls and ranges.
func measurePlanted(calls []plantedCall, ranges ...plantedCall) *GPUs {
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	event := func(name string, from, to int64, correlation int) profile.Event {
		return profile.Event{Start: trace.Time(from * 1000), End: trace.Time(to * 1000), Correlation: int64(correlation), Name: syms.Intern(name), PID: 7}
	}
	for _, r := range ranges {
		s.RangeRows = append(s.RangeRows, profile.Range{Event: event(r.name, r.start, r.end, 0), TID: 1, Open: r.open})
	}
	for i, c := range calls {
		s.CallRows = append(s.CallRows, profile.Call{Event: event(c.name, c.start, c.end, i+1), TID: 1})
		switch {
		case strings.HasPrefix(c.kernel, "Memcpy"):
			s.CopyRows = append(s.CopyRows, profile.Copy{Event: event(c.kernel, c.runs, c.runsTo, i+1)})
		case c.kernel != "":
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event(c.kernel, c.runs, c.runsTo, i+1)})
		}
	}
	return Measure(testset.SetOf(syms, []string{"TP0"}, s), Options{})
}

// The time of a device covers the whole steps around its work, unless its first
// kernel waited for work from before the recording.
func TestEdgesOfSteps(t *testing.T) {
	step := plantedCall{name: "ProfilerStep#1", start: 1000, end: 401_000}
	for _, c := range []struct {
		name          string
		launch        int64 // of a kernel that runs for 100 ms from 270 ms on
		ranges        []plantedCall
		length, idle  int64 // ms
		between, host int64 // parts of idle, ms
	}{
		{"a step around", 269_990, []plantedCall{step}, 400, 300, 0, 300},
		{"no steps", 269_990, nil, 100, 0, 0, 0},
		{"launched long before", 20_000, []plantedCall{step}, 131, 31, 0, 31},
		{"a step that goes on", 269_990, []plantedCall{{name: "ProfilerStep#1", start: 1000, end: 401_000, open: true}}, 369, 269, 0, 269},
		{"two steps and a pause", 269_990, []plantedCall{{name: "ProfilerStep#1", start: 1000, end: 101_000}, {name: "ProfilerStep#2", start: 251_000, end: 381_000}}, 380, 280, 150, 130},
	} {
		g := &measurePlanted([]plantedCall{{name: "cudaLaunchKernel", start: c.launch, end: c.launch + 5, kernel: "gemm", runs: 270_000, runsTo: 370_000}}, c.ranges...).GPUs[0]
		const ms = 1_000_000
		if g.Length() != c.length*ms || g.Activity.Idle.Total() != c.idle*ms || g.Waits.Time[BetweenSteps] != c.between*ms || g.Waits.Time[HostWork] != c.host*ms || g.Cold.Total() != 0 {
			t.Errorf("%s: length %d, idle %d, by reason %v, cold %d", c.name, g.Length(), g.Activity.Idle.Total(), g.Waits.Time, g.Cold.Total())
		}
	}
}

// The start of a process is separated from later work by what its host does.
func TestColdStart(t *testing.T) {
	steady := func(from int64) (calls []plantedCall) {
		for at := from; at < from+100_000; at += 1000 {
			calls = append(calls, plantedCall{"cudaLaunchKernel", at - 10, at - 5, "gemm", at, at + 950, false})
		}
		return calls
	}
	first := plantedCall{"cudaMemcpyAsync", 0, 10, "fill", 20, 30, false}
	weights := plantedCall{"cudaMemcpyAsync", 0, 10, "Memcpy HtoD (Pageable -> Device)", 20, 30, false}
	for _, c := range []struct {
		name   string
		calls  []plantedCall
		ranges []plantedCall
		cold   int64 // us
		most   Reason
	}{
		{"a launch that loads a library", append([]plantedCall{first, {"cudaLaunchKernel", 60, 1_340_050, "load", 1_340_060, 1_340_070, false}}, steady(1_900_000)...), nil,
			1_340_030 + 559_930, Modules},
		{"the same launch later is late, and not cold", append(append([]plantedCall{first}, steady(1000)...), plantedCall{"cudaLaunchKernel", 200_000, 400_000, "gemm", 400_010, 401_000, false}), nil, 0, HostWork},
		{"a module that is loaded", append([]plantedCall{first, {name: "cuLibraryLoadData", start: 100, end: 500_100}}, steady(500_200)...), nil, 500_170, Modules},
		{"a graph that is recorded", append([]plantedCall{first, {name: "cudaStreamBeginCapture", start: 50, end: 60}, {name: "cudaStreamEndCapture", start: 300_000, end: 300_050}}, steady(300_100)...), nil, 300_070, Capturing},
		{"code that is compiled", append([]plantedCall{first}, steady(800_000)...), []plantedCall{{name: "entire_frame_compile (dynamo_timed)", start: 100, end: 700_100}}, 799_970, Compiling},
		{"a library that starts unseen before the first kernel", append([]plantedCall{weights, {name: "cuModuleLoadData", start: 100, end: 3100}}, steady(800_000)...), nil, 799_970, HostWork},
		{"a module behind the first kernel", append([]plantedCall{first, {name: "cuModuleLoadData", start: 100, end: 3100}}, steady(800_000)...), nil, 3000, HostWork},
		{"a host that is slow before the first kernel", append([]plantedCall{weights}, steady(800_000)...), nil, 0, HostWork},
		{"a host that is slow", append([]plantedCall{first}, steady(800_000)...), nil, 0, HostWork},
	} {
		g := &measurePlanted(c.calls, c.ranges...).GPUs[0]
		most := Reason(0)
		for reason, ns := range g.Waits.Time {
			if ns > g.Waits.Time[most] {
				most = Reason(reason)
			}
		}
		if g.Cold.Total() != c.cold*1000 || most != c.most {
			t.Errorf("%s: cold %d us by reason %v, idle by reason %v", c.name, g.Cold.Total()/1000, g.Cold.Time, g.Waits.Time)
		}
	}
}
