package gpuloss

import (
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Runs on different days are judged separately: each has the findings that it has
// alone, at its share of the cost.
func TestEachRun(t *testing.T) {
	syms := trace.NewSymbols()
	const day = 86_400_000 * ms
	kernel, copying, launch := syms.Intern("gemm"), syms.Intern("Memcpy HtoD (Pageable -> Device)"), syms.Intern("cudaLaunchKernel")
	stream := func(rank int32, from int64, busy int64, name trace.Sym) *testset.RowStream {
		s := &testset.RowStream{}
		for i := range int64(100) {
			at := from + i*ms
			e := profile.Event{Rank: rank, Start: trace.Time(at), End: trace.Time(at + busy), Correlation: i + 1, Name: name}
			if name == copying {
				s.CopyRows = append(s.CopyRows, profile.Copy{Event: e, Bytes: 1000})
			} else {
				s.KernelRows = append(s.KernelRows, profile.Kernel{Event: e})
			}
			call := profile.Event{Rank: rank, Start: trace.Time(at - 100_000), End: trace.Time(at - 90_000), Correlation: i + 1, Name: launch}
			s.CallRows = append(s.CallRows, profile.Call{Event: call})
		}
		return s
	}
	ranks := []string{"TP0", "TP1", "desk"}
	idle, idleToo, copies := stream(0, 30_000*day, ms/2, kernel), stream(1, 30_000*day, ms/4, kernel), stream(2, 30_002*day, ms-1, copying)
	measure := func(streams ...profile.Stream) *gpu.GPUs {
		return gpu.Measure(testset.SetOf(syms, ranks, streams...), gpu.Options{})
	}
	together := measure(idle, idleToo, copies)
	for _, c := range []struct {
		when    string
		streams []profile.Stream
		find    func(*gpu.GPUs) ([]finding.Finding, finding.Check)
	}{
		{"the run of 2052-02-19 23:59:59", []profile.Stream{idle, idleToo}, func(g *gpu.GPUs) ([]finding.Finding, finding.Check) { return Idle(g, notPaused) }},
		{"the run of 2052-02-21 23:59:59", []profile.Stream{copies}, ExposedCopies},
	} {
		alone := measure(c.streams...)
		want, _ := c.find(alone)
		got, _ := together.EachRun(c.find)
		if len(got) != 1 || len(want) != 1 || !strings.Contains(got[0].Text, "in "+c.when) || !strings.HasSuffix(got[0].Text, want[0].Text) {
			t.Errorf("%s: %+v, want %+v", c.when, got, want)
			continue
		}
		cost := want[0].Cost * float64(alone.Length()) / float64(together.Length())
		if math.Abs(got[0].Cost-cost) > 1e-9 || got[0].Since != alone.Runs[0].From || len(got[0].Evidence) != len(want[0].Evidence) {
			t.Errorf("%s: %+v, want %+v at a cost of %g", c.when, got[0], want[0], cost)
		}
	}
	// A rank in both recordings keeps them together.
	again := measure(idle, idleToo, copies, stream(1, 30_002*day, ms/4, kernel))
	if again.Divided() || !together.Divided() {
		t.Errorf("divided: %t, want true; with a rank in both: %t, want false", together.Divided(), again.Divided())
	}
}
