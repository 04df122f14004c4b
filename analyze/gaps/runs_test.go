package gaps

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Measures of what hosts did are separate for each of several runs, and also cover all of them together.
func TestGapsOfRuns(t *testing.T) {
	syms := trace.NewSymbols()
	var streams []profile.Stream
	for rank, did := range []string{"fopen", "fwrite"} {
		s, begin := &testset.RowStream{}, gpu.Absolute+trace.Time(rank)*86_400e9
		event := func(name string, from, to trace.Time, correlation int64) profile.Event {
			return profile.Event{Start: begin + from, End: begin + to, Name: syms.Intern(name), Correlation: correlation, Rank: int32(rank), PID: int32(rank) + 1}
		}
		for i, at := range []trace.Time{1000, 200_000} {
			s.CallRows = append(s.CallRows, profile.Call{Event: event("cudaLaunchKernel", at, at+1000, int64(i)+1), TID: 1})
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: event("k", at+2000, at+3000, int64(i)+1)})
		}
		s.FrameRows = append(s.FrameRows, profile.Frame{Event: event(did, 5000, 190_000, 0), TID: 1, Kind: profile.SystemFrame})
		streams = append(streams, s)
	}
	set := testset.SetOf(syms, []string{"a", "b"}, streams...)
	collector := Collect(set)
	gpus := gpu.Measure(set, gpu.Options{Gaps: collector.Add})
	runs := gpus.Parts
	if len(runs) != 2 {
		t.Fatalf("runs %v", runs)
	}
	g := collector.Measure(Options{Runs: runs})
	for rank, want := range []string{"fopen", "fwrite"} {
		of := g.Of(int32(rank))
		if of == g || of.Idle != 198_000 || of.Causes[0].Call != want || of.Causes[0].Time != 185_000 {
			t.Errorf("rank %d: %d ns idle, %+v", rank, of.Idle, of.Causes)
		}
	}
	if g.Idle != 2*198_000 {
		t.Errorf("%d ns idle in all", g.Idle)
	}
}
