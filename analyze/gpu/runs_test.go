package gpu

import (
	"slices"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Recordings of one incident are one run, however often the profiler was started.
// Those of other days are other runs.
func TestRuns(t *testing.T) {
	at := func(minutes int) trace.Time { return trace.Time(time.Duration(minutes) * time.Minute) }
	span := func(from, to int) request.Interval { return request.Interval{From: at(from), To: at(to)} }
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
		{"as far apart as times can be", recordings{{From: -1 << 63, To: -1<<63 + 1}, {From: 1<<63 - 2, To: 1<<63 - 1}}, []request.Interval{{From: -1 << 63, To: -1<<63 + 1}, {From: 1<<63 - 2, To: 1<<63 - 1}}},
	} {
		if got := c.r.runs(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// Two runs belong together if any rank was recorded in both, whatever lies between them.
func TestGroupRuns(t *testing.T) {
	run := func(at trace.Time) request.Interval { return request.Interval{From: at, To: at + 1} }
	runs := []request.Interval{run(10), run(20), run(30), run(40)}
	recorded := func(at ...trace.Time) (r rankWork) {
		for _, from := range at {
			r.aligned = append(r.aligned, request.Interval{From: from, To: from + 1})
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

// Ranks whose clocks are related belong to one run, however large the offsets. A
// recording that ends early is found in the time of the reference clock.
func TestRunsByClocksOfHosts(t *testing.T) {
	const ms, hours = 1_000_000, 7_200_000_000_000
	syms := trace.NewSymbols()
	var streams []profile.Stream
	for rank, took := range []int64{100, 70, 100, 90} {
		s := &testset.RowStream{}
		for i := range took {
			at := trace.Time(int64(Absolute) + int64(rank)*hours + i*ms)
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: profile.Event{Rank: int32(rank), Start: at, End: at + ms, Name: syms.Intern("gemm")}})
		}
		streams = append(streams, s)
	}
	set := testset.SetOf(syms, []string{"TP0", "TP1", "TP2", "TP3"}, streams...)
	if g := Measure(set, Options{}); len(g.Runs) != 4 || !g.Divided() {
		t.Errorf("clocks are not related: %v", g.Runs)
	}
	set.ClockOffsets = []int64{0, hours, 2 * hours, 3 * hours}
	g := Measure(set, Options{})
	from, to := g.Bounds()
	if len(g.Runs) != 1 || g.Divided() || from != Absolute || to != Absolute+100*ms {
		t.Errorf("%v, from %d to %d", g.Runs, from, to)
	}
	if ranks, at, before := g.EndEarly(); !slices.Equal(ranks, []string{"TP1"}) || at != Absolute+70*ms || before != 30*ms {
		t.Errorf("%v ends at %d, %d ns before", ranks, at, before)
	}
}
