package gpu

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// gpuSums returns the measures of a device that add up over recordings.
func gpuSums(g *GPU) map[string]int64 {
	sums := map[string]int64{
		"captured": g.Captured, "length": g.Length(), "busy": g.Busy(), "rows": g.Rows, "kernels": g.Kernels, "called": g.Called,
		"kernel time": g.KernelTime, "graph time": g.GraphTime, "delays": g.Delay.Total,
	}
	for c, ns := range g.Idle.Time {
		sums[fmt.Sprint("idle ", c)], sums[fmt.Sprint("gaps ", c)] = ns, g.Idle.Gaps[c]
	}
	for r, ns := range g.Running {
		sums[fmt.Sprint("running ", r)] = ns
	}
	for _, s := range g.Streams {
		key := fmt.Sprintf("stream %d ", s.Stream)
		sums[key+"length"], sums[key+"busy"], sums[key+"idle"] = s.Length(), s.Busy, s.Idle.Total()
	}
	return sums
}

// The measures of two recordings are the sums over both. The ten minutes between
// them are neither captured nor idle, and part of no length.
func TestRecordingsAddUp(t *testing.T) {
	const between = 600_000_000_000 // ns, longer than a random stream
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 8))
		syms := trace.NewSymbols()
		ranks := []string{"TP0", "TP1"}
		first, second := testset.RandomStream(r, syms), testset.RandomStream(r, syms)
		measure := func(streams ...profile.Stream) map[string]map[string]int64 {
			of := map[string]map[string]int64{}
			g := Measure(testset.SetOf(syms, ranks, streams...), Options{})
			for i := range g.GPUs {
				of[fmt.Sprint(g.GPUs[i].Rank, g.GPUs[i].Device)] = gpuSums(&g.GPUs[i])
			}
			return of
		}
		a, b := measure(first), measure(second)
		if len(a) != 4 || len(b) != 4 {
			continue // a device that was idle during a whole recording appears only in the other one
		}
		got := measure(second.Later(between), first)
		for gpu, sums := range a {
			for key, ns := range b[gpu] {
				sums[key] += ns
			}
			if !reflect.DeepEqual(got[gpu], sums) {
				t.Fatalf("seed %d, %s: %v\nwant %v", seed, gpu, got[gpu], sums)
			}
		}
	}
}

// Overlapping recordings are one, whichever of them a row is in.
func TestUnionOfRecordings(t *testing.T) {
	r := recordings(request.Union([]request.Interval{{From: 50, To: 60}, {From: 0, To: 10}, {From: 10, To: 20}, {From: 5, To: 8}, {From: 55, To: 70}, {From: 90, To: 95}}))
	if want := (recordings{{From: 0, To: 20}, {From: 50, To: 70}, {From: 90, To: 95}}); !reflect.DeepEqual(r, want) {
		t.Fatalf("%v, want %v", r, want)
	}
	if got := r.length(); got != 45 {
		t.Errorf("%d ns long, want 45", got)
	}
	for _, c := range []struct {
		from, to trace.Time
		want     bool
	}{{0, 20, false}, {5, 15, false}, {20, 50, true}, {12, 55, true}, {12, 94, true}, {51, 69, false}, {60, 90, true}, {70, 80, false}, {92, 200, false}} {
		if got := r.end(c.from, c.to); got != c.want {
			t.Errorf("a recording ends between %d and %d: %v", c.from, c.to, got)
		}
	}
}

// The mean number of waiting rows is an average over the time of the recordings: in
// each, one row waits for 50 of 100 ns from the first launch to the last start.
func TestQueueOfRecordings(t *testing.T) {
	syms := trace.NewSymbols()
	event := func(from, to trace.Time, correlation int64) profile.Event {
		return profile.Event{Start: from, End: to, Correlation: correlation, Name: syms.Intern("k")}
	}
	s := &testset.RowStream{
		CallRows:   []profile.Call{{Event: event(0, 1, 1)}, {Event: event(100, 101, 2)}},
		KernelRows: []profile.Kernel{{Event: event(50, 60, 1)}, {Event: event(100, 120, 2)}},
	}
	for _, set := range []*profile.Set{testset.SetOf(syms, []string{"TP0"}, s), testset.SetOf(syms, []string{"TP0"}, s, s.Later(1e9))} {
		if g := Measure(set, Options{}).GPUs[0]; g.Queue != 5 {
			t.Errorf("%d streams: %d tenths of a row wait, want 5", len(set.Streams), g.Queue)
		}
	}
}

// Ranks that were captured for different lengths of time are compared per time. Of three
// ranks with kernels of 10 ns in every 100, only the one with kernels of 12 ns has an excess.
func TestKernelsOfDifferentCaptures(t *testing.T) {
	syms := trace.NewSymbols()
	stream := func(rank int32, n, dur int) *testset.RowStream {
		s := &testset.RowStream{}
		for i := range n {
			at := trace.Time(100 * i)
			s.KernelRows = append(s.KernelRows, profile.Kernel{Event: profile.Event{Start: at, End: at + trace.Time(dur), Rank: rank, Name: syms.Intern("gemm")}})
		}
		s.RangeRows = []profile.Range{{Event: profile.Event{Start: 0, End: trace.Time(100 * n), Rank: rank, Name: syms.Intern("all")}}}
		return s
	}
	ranks := []string{"TP0", "TP1", "TP2"}
	g := Measure(testset.SetOf(syms, ranks, stream(0, 100, 10), stream(1, 50, 12), stream(2, 80, 10)), Options{})
	if !g.perSecond || len(g.Kernels) != 3 {
		t.Fatalf("%+v", g)
	}
	for i, want := range []RankKernel{{Rank: "TP1", Excess: 100, RelTotal: 1.2}, {Rank: "TP0", RelTotal: 1}, {Rank: "TP2", RelTotal: 1}} {
		if k := g.Kernels[i]; k.Rank != want.Rank || k.Excess != want.Excess || k.RelTotal != want.RelTotal {
			t.Errorf("%+v, want %+v", k, want)
		}
	}
	g = Measure(testset.SetOf(syms, ranks, stream(0, 100, 10), stream(1, 99, 10), stream(2, 99, 10)), Options{})
	if g.perSecond || g.Kernels[0].Excess != 10 {
		t.Errorf("captures of about one length: %+v", g.Kernels[0])
	}
}
