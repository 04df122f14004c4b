package gpu

import (
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Of ten launches, seven have a kernel. If a graph was captured meanwhile, nothing is counted.
func TestLaunchesWithoutKernels(t *testing.T) {
	for _, capture := range []string{"", "cudaStreamBeginCapture", "cudaStreamBeginCapture_v10000", "cuStreamBeginCapture_v2_ptsz"} {
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
		if capture != "" {
			s.CallRows = append(s.CallRows, profile.Call{Event: event(capture, 7000, 0), TID: 1})
			want = Unran{}
		}
		if got := Measure(testset.SetOf(syms, []string{"TP0"}, s), Options{}).Unran; got != want {
			t.Errorf("capture by %q: %+v, want %+v", capture, got, want)
		}
	}
}

// A rank that lost at least a tenth of its launches is reported by name, unless many of its kernels lack a call.
func TestCutRanks(t *testing.T) {
	for _, c := range []struct {
		kernels, orphans int64 // of 20 launches of the second rank, those with a kernel; and kernels without a launch
		want             []Cut
	}{
		{20, 0, nil}, {19, 0, nil}, {18, 0, []Cut{{"TP1", Unran{20, 2}}}}, {8, 0, []Cut{{"TP1", Unran{20, 12}}}}, {8, 11, nil},
	} {
		syms, s := trace.NewSymbols(), &testset.RowStream{}
		event := func(name string, at, correlation int64, rank int32) profile.Event {
			return profile.Event{Start: trace.Time(at), End: trace.Time(at + 10), Correlation: correlation, Name: syms.Intern(name), Rank: rank, PID: rank}
		}
		for rank := range int32(2) {
			for i := range int64(20) {
				s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", 1000*i, i+1, rank), TID: 1})
				if rank == 0 || i < c.kernels {
					s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("gemm", 1000*i+50, i+1, rank)})
				}
			}
		}
		for i := range c.orphans {
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("gemm", 1000*i+100, 0, 1)})
		}
		if got := Measure(testset.SetOf(syms, []string{"TP0", "TP1"}, s), Options{}).Cuts; !slices.Equal(got, c.want) {
			t.Errorf("%d kernels, %d without a launch: %+v, want %+v", c.kernels, c.orphans, got, c.want)
		}
	}
}
