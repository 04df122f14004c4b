package gpu

import (
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Some calls usually return at once. If they take long, they start CUDA or load code, and
// their time is part of a cold start. A free may start a library, but usually frees memory.
func TestSlowStarts(t *testing.T) {
	const ms = 1_000_000
	for _, c := range []struct {
		call string
		dur  int64
		want Reason
	}{
		{"cudaFree", 5000 * ms, Modules}, {"cudaFree", 20 * ms, Allocation}, {"cudaFreeHost", 5000 * ms, Allocation},
		{"cudaStreamCreateWithFlags", 400 * ms, Modules}, {"cudaStreamCreateWithFlags", ms / 2, HostWork},
		{"cuDevicePrimaryCtxRetain", 400 * ms, Modules}, {"hipGetDeviceProperties", 3 * ms, Modules},
		{"cudaFuncGetAttributes", 30 * ms, Modules}, {"cudaGraphGetNodes", 30 * ms, HostWork}, {"cudaMalloc", 30 * ms, Allocation},
	} {
		syms, s := trace.NewSymbols(), &testset.RowStream{}
		event := func(name string, from, to, correlation int64) profile.Event {
			return profile.Event{Start: trace.Time(from), End: trace.Time(to), Correlation: correlation, Name: syms.Intern(name), PID: 1}
		}
		launch := func(n, at int64) {
			s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", at, at+10, n), TID: 1})
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("gemm", at+20, at+1020, n)})
		}
		launch(1, 0)
		s.CallRows = append(s.CallRows, profile.Call{Event: event(c.call, 2000, 2000+c.dur, 0), TID: 1})
		launch(2, 3000+c.dur)
		g := Measure(testset.SetOf(syms, []string{"TP0"}, s), Options{})
		if got := g.GPUs[0].Waits.Time[c.want]; got < c.dur {
			t.Errorf("%s of %d ns: %d ns of %s, want %d", c.call, c.dur, got, ReasonWords[c.want], c.dur)
		}
		if cold := g.GPUs[0].Cold.Total() > 0; cold != c.want.Cold() && c.want != Allocation {
			t.Errorf("%s of %d ns: cold is %v", c.call, c.dur, cold)
		}
	}
}

// The first call creates the context, before anything runs.
func TestStartOfCUDA(t *testing.T) {
	for _, c := range []struct {
		name    string
		to, ran int64 // the end of the call, and the start of the kernel
		want    int64
	}{
		{"cudaMalloc", 2_000_000, 2_500_000, 2_000_000},
		{"cudaGetDeviceCount", 2_000_000, 2_500_000, 2_000_000},
		{"cudaMalloc", 2_000_000, 1_000_000, 0}, // another context existed already
		{"cudaMalloc", 20_000, 2_500_000, 0},
		{"cudaDeviceSynchronize", 2_000_000, 2_500_000, 0}, // it waits for work that was not recorded
	} {
		syms, s := trace.NewSymbols(), &testset.RowStream{}
		s.CallRows = []profile.Call{{Event: profile.Event{End: trace.Time(c.to), Name: syms.Intern(c.name)}}, {Event: profile.Event{Start: trace.Time(c.to), End: trace.Time(c.to + 10_000_000), Name: syms.Intern("cudaStreamCreate")}}}
		s.KernelRows = []profile.Kernel{{Event: profile.Event{Start: trace.Time(c.ran), End: trace.Time(c.ran + 1000), Name: syms.Intern("gemm")}}}
		g := Measure(testset.SetOf(syms, []string{"TP0"}, s), Options{})
		got := int64(0)
		for _, s := range g.Starts {
			got += s.Time
		}
		if got != c.want {
			t.Errorf("%s until %d, the first kernel at %d: starts for %d ns, want %d", c.name, c.to, c.ran, got, c.want)
		}
	}
}
