package gpu

import (
	"fmt"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A heldRun launches 3,000 kernels, one after the other: each 20 us after the previous one ended,
// in a call of 4 us, and it starts 2 us later. From first on, every 20th starts 2.4 ms later.
type heldRun struct {
	first  int
	launch string
	device func(i int) int32
	names  func(i int) string
	calls  []string // before the launch
	lose   int      // every n-th kernel is missing from the files
}

func (h *heldRun) measure() *GPU {
	const us = 1000
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	event := func(name string, from, to, correlation int64) profile.Event {
		return profile.Event{Start: trace.Time(from), End: trace.Time(to), Correlation: correlation, Name: syms.Intern(name), PID: 7}
	}
	at := int64(Absolute)
	for _, name := range h.calls {
		s.CallRows = append(s.CallRows, profile.Call{Event: event(name, at, at+us, 0), TID: 1})
	}
	for i := range 3000 {
		at += 20 * us
		n := int64(i + 1)
		s.CallRows = append(s.CallRows, profile.Call{Event: event(h.launch, at, at+4*us, n), TID: 1})
		at += 6 * us
		if i >= h.first && i%20 == 0 {
			at += 2398 * us
		}
		if h.lose == 0 || i%h.lose > 0 {
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event(h.names(i), at, at+5*us, n), Device: h.device(i)})
		}
		at += 5 * us
	}
	return &Measure(testset.SetOf(syms, []string{"TP0"}, s), Options{}).GPUs[0]
}

// A delay of the device is counted only if nothing else can explain it, and reported with its start.
func TestHeld(t *testing.T) {
	const us = 1000
	one := func(int) int32 { return 0 }
	gemm := func(int) string { return "gemm" }
	start := trace.Time(Absolute) + 1000*31*us + 24*us // when kernel 1,000 could start
	for _, c := range []struct {
		name  string
		run   heldRun
		n     int64
		since trace.Time
	}{
		{"from kernel 1,000 on", heldRun{1000, "cudaLaunchKernel", one, gemm, nil, 0}, 100, start},
		{"all the time", heldRun{1, "cudaLaunchKernel", one, gemm, nil, 0}, 149, 0},
		{"never", heldRun{3000, "cudaLaunchKernel", one, gemm, nil, 0}, 0, 0},
		{"kernels of a graph", heldRun{1000, "cudaGraphLaunch", one, gemm, nil, 0}, 0, 0},
		{"two devices of a process", heldRun{1000, "cudaLaunchKernel", func(i int) int32 { return int32(i % 2) }, gemm, nil, 0}, 0, 0},
		{"each kernel is the first of its name", heldRun{1000, "cudaLaunchKernel", one, func(i int) string { return fmt.Sprint("gemm", i) }, nil, 0}, 0, 0},
		{"they may wait for what the process draws", heldRun{1000, "cudaLaunchKernel", one, gemm, []string{"cudaGraphicsMapResources"}, 0}, 0, 0},
		{"they may wait for a value", heldRun{1000, "cudaLaunchKernel", one, gemm, []string{"cuStreamWaitValue32_v2"}, 0}, 0, 0},
		{"a graph that is not in the files", heldRun{1000, "cudaLaunchKernel", one, gemm, []string{"hipGraphLaunch"}, 0}, 0, 0},
		{"every tenth kernel is not in the files", heldRun{1000, "cudaLaunchKernel", one, gemm, nil, 10}, 0, 0},
	} {
		g := c.run.measure()
		// Clocks may be 2 us apart: no kernel starts sooner after its launch.
		want := Held{N: c.n, Late: c.n, Time: c.n * 2398 * us, Starts: g.Held.Starts}
		if c.n > 0 {
			want.Median = 2398 * us
		}
		if c.since != 0 {
			want.Since, want.SinceN, want.SinceStarts = c.since+2*us, c.n, 2000
		}
		if g.Held != want || g.Waits.Time[Withheld] != want.Time {
			t.Errorf("%s: %+v, want %+v; %d ns are held back", c.name, g.Held, want, g.Waits.Time[Withheld])
		}
	}
}
