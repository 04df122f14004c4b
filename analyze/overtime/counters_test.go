package overtime

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Memory keeps its value until the next sample, and is weighted by time. Metrics are averaged over samples.
// The network card of a machine has the clock of its ranks.
func TestCounters(t *testing.T) {
	syms := trace.NewSymbols()
	sample := func(at trace.Time, rank int32, name string, kind profile.CounterKind, v float64) profile.CounterValue {
		return profile.CounterValue{Time: at, Rank: rank, Source: syms.Intern("s"), Name: syms.Intern(name), Kind: kind, Value: v}
	}
	s := &testset.RowStream{
		KernelRows: []profile.Kernel{{Event: profile.Event{Start: 1000, End: 1400, Name: syms.Intern("gemm")}}},
		CounterRows: []profile.CounterValue{
			sample(1225, 0, "memory", profile.MemoryCounter, 100), sample(1150, 0, "memory", profile.MemoryCounter, 20),
			sample(1010, -1, "metric", profile.DeviceCounter, 3), sample(1020, -1, "metric", profile.DeviceCounter, 5),
			sample(900, -1, "metric", profile.DeviceCounter, 9), sample(1399, -1, "card", profile.NetworkCounter, 7),
		},
	}
	set := testset.SetOf(syms, []string{"TP0"}, s)
	set.ClockOffsets = []int64{1000}
	got := timelineOf(set, Options{Bucket: 100, Everything: true})
	point := func(n int, mean, most float64) CounterPoint { return CounterPoint{Samples: n, Mean: mean, Most: most} }
	unknown := point(0, math.NaN(), math.NaN())
	want := map[string][]CounterPoint{
		"memory": {unknown, point(1, 20, 20), point(1, 80, 100), point(0, 100, 100)},
		"metric": {point(2, 4, 5), unknown, unknown, unknown},
		"card":   {unknown, unknown, unknown, point(1, 7, 7)},
	}
	if len(got.Counters) != len(want) {
		t.Fatalf("%+v", got.Counters)
	}
	for _, c := range got.Counters {
		for b, p := range c.Points {
			w := want[c.Name][b]
			if p.Samples != w.Samples || !same(p.Mean, w.Mean) || !same(p.Most, w.Most) {
				t.Errorf("%s in bucket %d: %+v, want %+v", c.Name, b, p, w)
			}
		}
	}
}

func same(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) }

// Without any recording, there are no buckets, and the notes say so.
func TestNothingRecorded(t *testing.T) {
	set := testset.SetOf(trace.NewSymbols(), []string{"TP0"}, &testset.RowStream{})
	got := timelineOf(set, Options{Everything: true, Requests: &request.Set{Requests: []request.Request{{Start: 1, End: 5}}}})
	if got.N() != 0 || len(got.Notes()) != 1 || got.Report().Len() != 0 || len(got.Changes) != 0 {
		t.Errorf("%d buckets, %q", got.N(), got.Notes())
	}
}
