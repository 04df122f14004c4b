package gaps

import (
	"fmt"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Twice as many recordings, each of its own rank, take twice as much memory: nothing
// is stored per pair of a recording and a rank of another.
func TestMemoryIsLinearInStreams(t *testing.T) {
	const few = 500
	once, twice := measuring(few), measuring(2*few)
	if twice > once*5/2 {
		t.Errorf("%d streams take %d kB, %d take %d kB", few, once>>10, 2*few, twice>>10)
	}
}

// measuring returns the total bytes that it takes to measure the devices and gaps of n streams.
func measuring(n int) int64 {
	syms := trace.NewSymbols()
	launch, kernel := syms.Intern("cudaLaunchKernel"), syms.Intern("gemm")
	set := &profile.Set{Syms: syms}
	for rank := range n {
		s := &testset.RowStream{}
		for i := range 3 {
			start := trace.Time(1_000_000 + 100_000*i)
			e := profile.Event{Start: start, End: start + 5_000, Correlation: int64(i + 1), Name: launch, Rank: int32(rank), PID: 7}
			s.CallRows = append(s.CallRows, profile.Call{Event: e, TID: 7})
			e.Start, e.End, e.Name = e.Start+6_000, e.End+20_000, kernel
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: e})
		}
		set.Ranks, set.GPUs = append(set.Ranks, fmt.Sprint("TP", rank)), append(set.GPUs, "")
		set.Streams = append(set.Streams, s)
	}
	return testinput.AllocatedBy(func() {
		c := Collect(set)
		gpu.Measure(set, gpu.Options{Gaps: c.Add})
		c.Measure(Options{Brief: true})
	})
}
