package overtime

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// TestGridHoldsRecordings: every moment of a recording is in the bucket that from returns, and
// there are 20 to 60 whole buckets for one recording of any length.
func TestGridHoldsRecordings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 20))
	for range 300 {
		var all []gpu.Run
		for range 1 + r.IntN(4) {
			from := trace.Time(r.Int64N(1_000_000_000))
			all = append(all, gpu.Run{From: from, To: from + trace.Time(1000+r.Int64N(int64(1)<<uint(1+r.IntN(30))))})
		}
		g := newGrid(append([]gpu.Run(nil), all...), 0)
		for b := range g.N() {
			if got := g.from(g.Start(b)); got != b {
				t.Fatalf("bucket %d begins in bucket %d: %+v", b, got, g)
			}
		}
		for _, run := range all {
			at := run.From + trace.Time(r.Int64N(int64(run.To-run.From)))
			if b := g.from(at); b >= g.N() || at < g.Start(b) || at >= g.Start(b)+trace.Time(g.Bucket) {
				t.Fatalf("%d of %+v is not in bucket %d: %+v", at, run, b, g)
			}
		}
		if n := int64(all[0].To-all[0].From) / newGrid(all[:1], 0).Bucket; int64(all[0].To-all[0].From) > 20_000 && (n < 20 || n > 60) {
			t.Fatalf("%+v has %d buckets", all[0], n)
		}
	}
}

// TestTimeBetweenRecordingsIsLeftOut: recordings an hour apart have a few buckets each.
func TestTimeBetweenRecordingsIsLeftOut(t *testing.T) {
	hour := trace.Time(time.Hour)
	g := newGrid([]gpu.Run{{From: hour, To: hour + 1_000_000}, {From: 5 * hour, To: 5*hour + 1_000_000}}, 0)
	if len(g.Spans) != 2 || g.N() > 60 || g.Start(g.Spans[1].First) != 5*hour {
		t.Errorf("%+v", g)
	}
}

// TestCounters: memory holds until the next sample, and is weighted by time; metrics are
// averaged over samples; a card of a machine has the clock of its ranks.
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
	set.Ahead = []int64{1000}
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

// TestNothingRecorded: without any recording there are no buckets, and the notes say so.
func TestNothingRecorded(t *testing.T) {
	set := testset.SetOf(trace.NewSymbols(), []string{"TP0"}, &testset.RowStream{})
	got := timelineOf(set, Options{Everything: true, Requests: &request.Set{Requests: []request.Request{{Start: 1, End: 5}}}})
	if got.N() != 0 || len(got.Notes()) != 1 || got.Report().Len() != 0 || len(got.Changes) != 0 {
		t.Errorf("%d buckets, %q", got.N(), got.Notes())
	}
}
