package gpu

import (
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
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

// Of a rank without kernels, only copies are known if calls launched some, or if the calls are missing as well.
func TestBlindRanks(t *testing.T) {
	for _, c := range []struct {
		name              string
		launches, kernels bool
		copyCalls         bool
		blind             bool
		uncalled          []string
	}{
		{"complete", true, true, true, false, nil},
		{"only copies", false, false, true, false, nil},
		{"kernels lost", true, false, true, true, nil},
		{"kernels and calls lost", false, false, false, true, []string{"TP0"}},
		{"calls lost", false, true, false, false, nil},
	} {
		syms, s := trace.NewSymbols(), &testset.RowStream{}
		event := func(name string, at, correlation int64) profile.Event {
			return profile.Event{Start: trace.Time(at), End: trace.Time(at + 10), Correlation: correlation, Name: syms.Intern(name)}
		}
		for i := range int64(20) {
			s.CopyRows = append(s.CopyRows, profile.Copy{Event: event("HtoD", 1000*i+50, i+1)})
			if c.copyCalls {
				s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaMemcpyAsync", 1000*i, i+1), TID: 1})
			}
			if c.launches {
				s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", 1000*i+20, i+101), TID: 1})
			}
			if c.kernels {
				s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("gemm", 1000*i+70, i+101)})
			}
		}
		g := Measure(testset.SetOf(syms, []string{"TP0"}, s), Options{})
		if got := g.GPUs[0].Blind; got != c.blind || !slices.Equal(g.Uncalled(), c.uncalled) {
			t.Errorf("%s: blind %v, uncalled %v", c.name, got, g.Uncalled())
		}
		if text := testset.Text(t, g.ShareReport("x"), table.FormatText, table.Style{}); strings.Contains(text, "left out: busy") != c.blind {
			t.Errorf("%s:\n%s", c.name, text)
		}
	}
}
