package gpuloss

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Failed calls are counted by name and error over all streams. Calls that libraries
// make only to test for a failure do not count, nor do calls outside of the window.
func TestFailedCalls(t *testing.T) {
	const outOfResources, noMemory, notReady, noSymbol = 701, 2, 600, 500
	syms := trace.NewSymbols()
	var streams [2]testset.RowStream
	add := func(n int, name string, result int32, at int64) {
		for i := range n {
			s := &streams[i%2]
			s.CallRows = append(s.CallRows, profile.Call{Result: result, TID: 1,
				Event: profile.Event{Start: trace.Time(at), End: trace.Time(at + 5), Name: syms.Intern(name), PID: 7}})
		}
	}
	measure := func() *gpu.GPUs {
		return gpu.Measure(testset.SetOf(syms, []string{"TP0"}, &streams[0], &streams[1]), gpu.Options{From: 100})
	}
	add(20, "cudaLaunchKernel_v7000", profile.UnknownResult, 200)
	if found, check := FailedCalls(measure()); found != nil || check.State() != finding.NotApplicable {
		t.Errorf("no results: %v, %s", found, check.State())
	}
	add(1990, "cudaLaunchKernel_v7000", 0, 200)
	add(9, "cuGetProcAddress", noSymbol, 200)
	add(9, "cudaStreamSynchronize", notReady, 200)
	add(5, "cudaLaunchKernel_v7000", outOfResources, 50) // before the window
	if found, check := FailedCalls(measure()); found != nil || check.State() != finding.LookedAt || check.N != 1999 {
		t.Errorf("none failed: %v, %+v", found, check)
	}
	add(10, "cudaLaunchKernel_v7000", outOfResources, 200)
	add(1, "cudaMalloc", noMemory, 200)
	found, _ := FailedCalls(measure())
	if len(found) != 1 || found[0].Cost != 11.0/2010 {
		t.Fatalf("%+v", found)
	}
	texts := append([]string{found[0].Text}, finding.Sentences(found[0].Evidence)...)
	for i, want := range []string{
		"10 of 2,000 cudaLaunchKernel_v7000 calls failed: cudaErrorLaunchOutOfResources (701)",
		"1 of 1 cudaMalloc calls failed: cudaErrorMemoryAllocation (2)",
	} {
		if texts[i] != want {
			t.Errorf("%q, want %q", texts[i], want)
		}
	}
	add(10, "cudaLaunchKernel_v7000", noMemory, 200)
	if found, _ = FailedCalls(measure()); found[0].Text != "20 of 2,010 cudaLaunchKernel_v7000 calls failed: 10 cudaErrorMemoryAllocation (2), 10 cudaErrorLaunchOutOfResources (701)" {
		t.Error(found[0].Text)
	}
}
