package gpu

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Recordings of one incident are one run, however often the profiler was started; those of
// other days are others.
func TestRuns(t *testing.T) {
	at := func(minutes int) trace.Time { return trace.Time(time.Duration(minutes) * time.Minute) }
	span := func(from, to int) recordedSpan { return recordedSpan{at(from), at(to)} }
	for _, c := range []struct {
		what string
		r    recordings
		want []request.Interval
	}{
		{"none", nil, nil},
		{"ranks at one time", recordings{span(10, 20), span(11, 19)}, []request.Interval{{From: at(10), To: at(20)}}},
		{"again and again", recordings{span(120, 121), span(10, 11), span(65, 66)}, []request.Interval{{From: at(10), To: at(121)}}},
		{"another day", recordings{span(2000, 2001), span(10, 20), span(2001, 2002), span(15, 30)}, []request.Interval{{From: at(10), To: at(30)}, {From: at(2000), To: at(2002)}}},
		{"an hour later", recordings{span(0, 10), span(70, 71)}, []request.Interval{{From: at(0), To: at(10)}, {From: at(70), To: at(71)}}},
		{"as far apart as times can be", recordings{{-1 << 63, -1<<63 + 1}, {1<<63 - 2, 1<<63 - 1}}, []request.Interval{{From: -1 << 63, To: -1<<63 + 1}, {From: 1<<63 - 2, To: 1<<63 - 1}}},
	} {
		if got := c.r.runs(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// Runs on different days are judged each by itself: what is found of one is what is found of
// it alone, at its part of the cost.
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
	measure := func(streams ...profile.Stream) *GPUs {
		return Measure(testset.SetOf(syms, ranks, streams...), Options{})
	}
	together := measure(idle, idleToo, copies)
	for _, c := range []struct {
		when    string
		streams []profile.Stream
		find    func(*GPUs) ([]finding.Finding, finding.Judged)
	}{
		{"the run of 2052-02-19 23:59:59", []profile.Stream{idle, idleToo}, (*GPUs).Idle},
		{"the run of 2052-02-21 23:59:59", []profile.Stream{copies}, (*GPUs).ExposedCopies},
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
	// A rank that is in both keeps them together.
	again := measure(idle, idleToo, copies, stream(1, 30_002*day, ms/4, kernel))
	if again.Divided() || !together.Divided() {
		t.Errorf("divided: %t, want true; with a rank in both: %t, want false", together.Divided(), again.Divided())
	}
}

// Runs belong together if a rank was recorded in both, whatever lies between them.
func TestGroupRuns(t *testing.T) {
	run := func(at trace.Time) request.Interval { return request.Interval{From: at, To: at + 1} }
	runs := []request.Interval{run(10), run(20), run(30), run(40)}
	recorded := func(at ...trace.Time) (r rankWork) {
		for _, from := range at {
			r.recorded = append(r.recorded, recordedSpan{from, from + 1})
		}
		return r
	}
	for _, c := range []struct {
		ranks []rankWork
		want  [][]request.Interval
	}{
		{[]rankWork{recorded(10), recorded(20), recorded(30), recorded(40)}, [][]request.Interval{{run(10)}, {run(20)}, {run(30)}, {run(40)}}},
		{[]rankWork{recorded(10, 30), recorded(20), recorded(40)}, [][]request.Interval{{run(10), run(30)}, {run(20)}, {run(40)}}},
		{[]rankWork{recorded(20, 40), recorded(30, 40), recorded(10)}, [][]request.Interval{{run(10)}, {run(20), run(30), run(40)}}},
		{[]rankWork{recorded(20, 30), recorded(10, 40), recorded(10, 20)}, [][]request.Interval{runs}},
	} {
		if got := groupRuns(runs, c.ranks); !slices.EqualFunc(got, c.want, slices.Equal[[]request.Interval]) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}
