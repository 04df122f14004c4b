package gpu

import (
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Of ten launches, seven have a kernel; where a graph was recorded meanwhile, nothing is counted.
func TestLaunchesWithoutKernels(t *testing.T) {
	for _, capturing := range []bool{false, true} {
		syms, s := trace.NewSymbols(), &testset.RowStream{}
		event := func(name string, at, correlation int64) profile.Event {
			return profile.Event{Start: trace.Time(at), End: trace.Time(at + 10), Correlation: correlation, Name: syms.Intern(name)}
		}
		for i := range int64(10) {
			s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", 1000*i, i+1), TID: 1})
			if i < 7 {
				s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("gemm", 1000*i+50, i+1)})
			}
		}
		want := Unran{Launches: 10, Lost: 3}
		if capturing {
			s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaStreamBeginCapture", 7000, 0), TID: 1})
			want = Unran{}
		}
		if got := Measure(testset.SetOf(syms, []string{"TP0"}, s), Options{}).Unran; got != want {
			t.Errorf("capturing: %v: %+v, want %+v", capturing, got, want)
		}
	}
}
