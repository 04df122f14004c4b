package gpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

func TestReasonOfCall(t *testing.T) {
	for name, want := range map[string]Reason{
		"cudaStreamSynchronize": AfterSync, "cuCtxSynchronize": AfterSync, "hipDeviceSynchronize": AfterSync, "cudaEventSynchronize_v3020": AfterSync,
		"cudaMemcpy": BlockingCopy, "cuMemcpyDtoH_v2": BlockingCopy, "hipMemcpyWithStream": BlockingCopy,
		"cudaMemcpyAsync": NoReason, "cuMemcpyHtoDAsync_v2": NoReason, "cudaMemsetAsync": NoReason, "cudaMemset": NoReason,
		"cudaMalloc": Allocation, "cuMemAlloc_v2": Allocation, "cudaHostAlloc": Allocation, "cudaFree": Allocation, "hipHostMalloc": Allocation,
		"cudaMallocAsync": NoReason, "cudaFreeAsync": NoReason,
		"cuModuleLoadData": Modules, "cuLibraryLoadData": Modules, "cudaGraphInstantiate_v12000": Modules,
		"cudaLaunchKernel": NoReason, "cudaGraphLaunch": NoReason, "cudaStreamWaitEvent": NoReason, "cudaEventQuery": NoReason,
		"AscendCL@aclrtSynchronizeStreamWithTimeout": AfterSync, "AscendCL@aclrtMemcpy": BlockingCopy, "AscendCL@aclrtMemcpyAsync": NoReason,
		"AscendCL@aclrtMalloc": Allocation, "AscendCL@opCompile": Compiling, "AscendCL@aclopCompileAndExecute": NoReason, "AscendCL@aclnnMm": NoReason,
		"cudaGetDevice": NoReason, "ncclAllReduce": NoReason, "FreeMemory": NoReason, "": NoReason,
	} {
		if got := ReasonOf(name); got != want {
			t.Errorf("%s: %q, want %q", name, ReasonWords[got], ReasonWords[want])
		}
	}
}

// Each gap of a device gets the reason that was planted.
func TestWaitsOfPlantedGaps(t *testing.T) {
	const us = 1000
	type call struct {
		name     string
		from, to int64 // us after the end of the kernel before the gap
	}
	for _, test := range []struct {
		name     string
		gap      int64 // us
		calls    []call
		launch   int64 // us after the end of the previous kernel; -1 is not recorded
		took     int64 // duration of the launch, us; 0 means 1
		new      bool  // the first kernel of its name
		step     int64 // us of the gap that lie in a step, from its start; -1 is no step
		migrates bool
		want     map[Reason]int64 // us
	}{
		{name: "host work", gap: 500, launch: 490, step: -1, want: map[Reason]int64{HostWork: 500}},
		{name: "malloc", gap: 500, launch: 490, step: -1, calls: []call{{"cudaMalloc", 100, 400}}, want: map[Reason]int64{HostWork: 200, Allocation: 300}},
		{name: "loading wins over malloc", gap: 500, launch: 490, step: -1, calls: []call{{"cudaMalloc", 100, 400}, {"cuModuleLoadData", 50, 200}},
			want: map[Reason]int64{HostWork: 150, Allocation: 200, Modules: 150}},
		{name: "drained", gap: 90, launch: 80, step: -1, calls: []call{{"cudaStreamSynchronize", -900, 5}}, want: map[Reason]int64{AfterSync: 90}},
		{name: "a sync after the device is idle explains nothing", gap: 90, launch: 80, step: -1, calls: []call{{"cudaStreamSynchronize", 20, 30}},
			want: map[Reason]int64{HostWork: 90}},
		{name: "a sync elsewhere that goes on explains nothing", gap: 90, launch: 80, step: -1, calls: []call{{"cudaEventSynchronize", -900, 5000}},
			want: map[Reason]int64{HostWork: 90}},
		{name: "waits for what was not recorded", gap: 5000, launch: 4990, step: -1, calls: []call{{"cudaStreamSynchronize", -900, 4000}},
			want: map[Reason]int64{Unseen: 4000, AfterSync: 1000}},
		{name: "a copy that blocks", gap: 90, launch: 60, step: -1, calls: []call{{"cudaMemcpy", 50, 95}}, want: map[Reason]int64{HostWork: 50, BlockingCopy: 40}},
		{name: "between steps", gap: 500, launch: 490, step: 200, want: map[Reason]int64{HostWork: 200, BetweenSteps: 300}},
		{name: "behind another kernel", gap: 20, launch: -100, step: -1, want: map[Reason]int64{LaunchGap: 20}},
		{name: "waits for a value", gap: 200, launch: -100, step: -1, calls: []call{{"cuStreamWaitValue32_v2", -200, -199}}, want: map[Reason]int64{Dependency: 200}},
		{name: "held back", gap: 200, launch: -100, step: -1, want: map[Reason]int64{Withheld: 200}},
		{name: "held back behind a late launch", gap: 600, launch: 99, step: -1, want: map[Reason]int64{HostWork: 199, Withheld: 401}}, // the clocks may be 99 us apart
		{name: "held back, and the host waits for that", gap: 5000, launch: 99, step: -1, calls: []call{{"cudaStreamSynchronize", 110, 5010}}, want: map[Reason]int64{HostWork: 199, Withheld: 4801}},
		{name: "a start that takes a little", gap: 180, launch: 99, step: -1, want: map[Reason]int64{HostWork: 180}},
		{name: "behind a graph that was not recorded", gap: 600, launch: 99, step: -1, calls: []call{{"cudaGraphLaunch", 20, 30}}, want: map[Reason]int64{HostWork: 600}},
		{name: "a launch that loads code", gap: 5000, launch: 99, took: 4901, new: true, step: -1, want: map[Reason]int64{HostWork: 99, Modules: 4901}},
		{name: "a launch that loads code, under way before", gap: 5000, launch: -300, took: 5300, new: true, step: -1, want: map[Reason]int64{Modules: 5000}},
		{name: "a slow launch under way before", gap: 5000, launch: -300, took: 5300, step: -1, want: map[Reason]int64{HostWork: 5000}},
		{name: "a slow launch that ended before", gap: 20, launch: -5300, took: 5299, new: true, step: -1, want: map[Reason]int64{LaunchGap: 20}},
		{name: "held back behind a slow launch", gap: 9000, launch: -300, took: 5000, step: -1, want: map[Reason]int64{HostWork: 4799, Withheld: 4201}},
		{name: "a launch that takes a while, under way before", gap: 140, launch: -2, took: 141, step: -1, want: map[Reason]int64{HostWork: 140}},
		{name: "a launch that takes a while, and waits for a value", gap: 600, launch: -2, took: 52, step: -1, calls: []call{{"cuStreamWaitValue32_v2", -200, -199}},
			want: map[Reason]int64{HostWork: 50, Dependency: 550}},
		{name: "a launch under way for a moment", gap: 200, launch: -2, took: 12, step: -1, calls: []call{{"cuStreamWaitValue32_v2", -200, -199}}, want: map[Reason]int64{Dependency: 200}},
		{name: "no call", gap: 200, launch: -1, step: -1, want: map[Reason]int64{NotRecorded: 200}},
		{name: "no call, and no longer than behind another kernel", gap: 20, launch: -1, step: -1, want: map[Reason]int64{NotRecorded: 20}},
		{name: "unified memory, for short", gap: 20, launch: -1, step: -1, migrates: true, want: map[Reason]int64{Migration: 20}},
		{name: "unified memory", gap: 200, launch: -1, step: -1, migrates: true, want: map[Reason]int64{Migration: 200}},
	} {
		syms := trace.NewSymbols()
		s := &testset.RowStream{}
		const end = 10_000 * us // end of the kernel before the gap
		event := func(name string, from, to, correlation int64) profile.Event {
			return profile.Event{Start: trace.Time(from), End: trace.Time(to), Correlation: correlation, Name: syms.Intern(name), PID: 7}
		}
		s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", 0, us, 1), TID: 1})
		s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("gemm", 100*us, end, 1)})
		for _, c := range test.calls {
			s.CallRows = append(s.CallRows, profile.Call{Event: event(c.name, end+c.from*us, end+c.to*us, 0), TID: 1})
		}
		correlation := int64(0)
		if test.launch != -1 {
			correlation = 2
			s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", end+test.launch*us, end+(test.launch+max(test.took, 1))*us, 2), TID: 1})
		}
		start := end + test.gap*us
		if test.migrates {
			s.CopyRows = append(s.CopyRows, profile.Copy{Event: event("[CUDA memcpy Unified Host-to-Device]", start, start+us, 0)})
		} else {
			name := "gemm"
			if test.new {
				name = "softmax"
			}
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event(name, start, start+us, correlation)})
		}
		if test.step >= 0 {
			s.RangeRows = append(s.RangeRows, profile.Range{Event: event("step[DECODE bs=2]", 0, end+test.step*us, 0), TID: 1})
		}
		g := Measure(testset.SetOf(syms, []string{"TP0"}, s), Options{}).GPUs[0]
		for reason, got := range g.Waits.Time {
			if want := test.want[Reason(reason)] * us; got != want {
				t.Errorf("%s: %q %d ns, want %d", test.name, ReasonWords[reason], got, want)
			}
		}
	}
}

// The sweep over gaps gives the same result as a check of every nanosecond.
func TestWaitsMomentByMoment(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var host hostTimes
		for range r.IntN(12) {
			start := trace.Time(r.IntN(200))
			host.calls = append(host.calls, HostCall{Start: start, End: start + trace.Time(r.IntN(40)), reason: []Reason{Modules, Allocation, BlockingCopy, AfterSync}[r.IntN(4)]})
		}
		var steps []profilewalk.Step
		for range r.IntN(4) {
			start := trace.Time(r.IntN(200))
			steps = append(steps, profilewalk.Step{Start: start, End: start + trace.Time(r.IntN(60))})
		}
		host.order(steps, nil)
		var gap IdleGap
		sweep := waitSweep{host: &host, kernels: &kernelTimes{}, gaps: func(g *IdleGap) { gap = *g }}
		var got, want Waits
		for from := trace.Time(r.IntN(30)); from < 220; {
			to := from + 1 + trace.Time(r.IntN(60))
			row := gpuRow{start: to, flags: rowCalled, launch: from + 1 + trace.Time(r.IntN(int(to-from)))}
			lost := int64(0) // time in calls that waited
			for _, c := range host.calls {
				if c.reason == AfterSync && c.Start <= from && c.End > from && c.End <= row.launch {
					lost += int64(c.End - c.Start)
				}
			}
			sweep.add(&got, &row, from)
			now := from
			for _, part := range gap.Parts {
				for ; now < part.To && part.From <= now; now++ {
					reason := definedReason(&host, steps, now, from, row.launch)
					if reason == AfterSync {
						if lost--; lost < 0 {
							reason = HostWork
						}
					}
					want.Time[reason]++
					if part.Reason != reason || part.Called != (reason != HostWork && reason != BetweenSteps) {
						t.Fatalf("at %d a part of %v that %v explains, want %v", now, part, part.Reason, reason)
					}
				}
			}
			if now != to {
				t.Fatalf("the parts of the gap from %d to %d end at %d", from, to, now)
			}
			from = to + trace.Time(r.IntN(30))
		}
		if got.Time != want.Time {
			t.Fatalf("%v, want %v: %s", got.Time, want.Time, fmt.Sprint(host))
		}
	}
}

// definedReason returns the reason for a moment of a gap that began at from and that a launch ended.
func definedReason(host *hostTimes, steps []profilewalk.Step, now, from, launch trace.Time) Reason {
	best, drained := NumReasons, false
	for _, c := range host.calls {
		if c.reason == AfterSync {
			drained = drained || c.Start <= from && c.End > from && c.End <= launch
		} else if c.Start <= now && now < c.End {
			best = min(best, c.reason)
		}
	}
	if best != NumReasons {
		return best
	}
	inStep := len(steps) == 0
	for _, s := range steps {
		inStep = inStep || s.Start <= now && now < s.End
	}
	switch {
	case !inStep:
		return BetweenSteps
	case drained:
		return AfterSync
	}
	return HostWork
}
