package host

import (
	"maps"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Samples show what a thread ran within a range or outside of all frames, for at most one sampling
// period, and not during a call. The stack of a call contains the call and the work that it launched.
func TestSamplesAndStacksOfCalls(t *testing.T) {
	syms := trace.NewSymbols()
	event := func(from, to trace.Time, name string) profile.Event {
		return profile.Event{Start: from, End: to, Name: syms.Intern(name), PID: 7}
	}
	var set profile.Stacks
	stack := func(functions ...string) (id profile.StackID) {
		for _, f := range functions {
			id = set.Push(profile.StackFrame{Caller: id, Function: syms.Intern(f), Module: syms.Intern("/srv/engine")})
		}
		return id
	}
	var s testset.RowStream
	sampled := func(at trace.Time, functions ...string) {
		s.SampleRows = append(s.SampleRows, profile.Sample{Event: event(at, at, ""), TID: 1, Stack: stack(functions...), Stacks: &set})
	}
	for at := trace.Time(0); at < 100; at += 10 { // the period is 10 ns
		sampled(at, "main", "loop")
	}
	sampled(205, "main", "step") // in a range, up to the call
	sampled(225, "main", "call") // in the call, which is more specific
	sampled(245, "main", "step") // after it, to the end of the range
	sampled(400, "main", "py::idle:/srv/scheduler.py")
	sampled(500, "[Unknown]") // adds nothing
	s.RangeRows = []profile.Range{{Event: event(200, 250, "run"), TID: 1}}
	launch := event(210, 230, "cudaLaunchKernel")
	launch.Correlation = 3
	s.CallRows = []profile.Call{{Event: launch, TID: 1}}
	s.TraceRows = []profile.Sample{{Event: event(210, 230, "cudaLaunchKernel"), TID: 1, Stack: stack("main", "forward"), Stacks: &set}}
	kernel := event(260, 290, "gemm")
	kernel.Correlation = 3
	s.KernelRows = []profile.Kernel{{Event: kernel}}

	sums := Sum(testset.SetOf(syms, []string{"TP0"}, &s), profilewalk.Options{}, nil)
	want := [numOf]map[string]int64{
		CPU: {"main();loop()": 100, "run": 20, "run;main();step()": 10, "run;main();forward();cudaLaunchKernel": 20, "main();idle() (scheduler.py)": 10},
		GPU: {"run;main();forward();cudaLaunchKernel;gemm": 30},
	}
	for of := range numOf {
		got := map[string]int64{}
		for row := range sums.Rows(of) {
			got[row.stack()] = row.self()
		}
		if !maps.Equal(got, want[of]) {
			t.Errorf("%s:\n got %v\nwant %v", names[of], got, want[of])
		}
	}
	if !sums.Threads.Samples || !sums.Threads.Backtraces || !sums.Threads.Python || sums.Threads.Runs {
		t.Errorf("seen: %+v", sums.Threads)
	}
}
