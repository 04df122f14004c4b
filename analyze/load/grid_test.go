package load

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Every moment of a recording is in the bucket that from returns, and one recording
// of any length has 20 to 60 whole buckets.
func TestGridHoldsRecordings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 20))
	for range 300 {
		var all []request.Interval
		for range 1 + r.IntN(4) {
			from := trace.Time(r.Int64N(1_000_000_000))
			all = append(all, request.Interval{From: from, To: from + trace.Time(1000+r.Int64N(int64(1)<<uint(1+r.IntN(30))))})
		}
		g := NewGrid(append([]request.Interval(nil), all...), 0)
		for b := range g.N() {
			if got := g.Of(g.Start(b)); got != b {
				t.Fatalf("bucket %d begins in bucket %d: %+v", b, got, g)
			}
		}
		for _, run := range all {
			at := run.From + trace.Time(r.Int64N(int64(run.To-run.From)))
			if b := g.Of(at); b >= g.N() || at < g.Start(b) || at >= g.Start(b)+trace.Time(g.Bucket) {
				t.Fatalf("%d of %+v is not in bucket %d: %+v", at, run, b, g)
			}
		}
		if n := int64(all[0].To-all[0].From) / NewGrid(all[:1], 0).Bucket; int64(all[0].To-all[0].From) > 20_000 && (n < 20 || n > 60) {
			t.Fatalf("%+v has %d buckets", all[0], n)
		}
	}
}

// Recordings an hour apart have a few buckets each.
func TestTimeBetweenRecordingsIsLeftOut(t *testing.T) {
	hour := trace.Time(time.Hour)
	g := NewGrid([]request.Interval{{From: hour, To: hour + 1_000_000}, {From: 5 * hour, To: 5*hour + 1_000_000}}, 0)
	if len(g.Spans) != 2 || g.N() > 60 || g.Start(g.Spans[1].First) != 5*hour {
		t.Errorf("%+v", g)
	}
}

func TestChooseBucket(t *testing.T) {
	for _, c := range []struct{ extent, want time.Duration }{
		{0, time.Microsecond}, {600 * time.Millisecond, 10 * time.Millisecond}, {20 * time.Second, 500 * time.Millisecond}, {time.Minute, time.Second},
		{time.Minute + 1, 2 * time.Second}, {time.Hour, time.Minute}, {60 * 24 * time.Hour, 24 * time.Hour},
		{365 * 24 * time.Hour, 7 * 24 * time.Hour},
	} {
		if got := time.Duration(ChooseBucket(int64(c.extent))); got != c.want {
			t.Errorf("%v: buckets of %v, want %v", c.extent, got, c.want)
		}
	}
}
