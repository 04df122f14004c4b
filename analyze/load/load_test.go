package load

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// The maximum number of overlapping pieces equals a count at every instant.
func TestMostAtOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var list []request.Interval
		for range rng.IntN(12) {
			from := trace.Time(rng.IntN(30))
			list = append(list, request.Interval{From: from, To: from + trace.Time(rng.IntN(12)) - 2})
		}
		want := 0
		for at := range trace.Time(45) {
			n := 0
			for _, iv := range list {
				if iv.From <= at && at < iv.To {
					n++
				}
			}
			want = max(want, n)
		}
		if got := MostAtOnce(list); got != want {
			t.Fatalf("%v: %d at once, want %d", list, got, want)
		}
	}
}

// A server is busy if it runs all that it can. One request on a server that can run
// more is not its maximum, and reveals nothing about a server with an unknown maximum.
func TestBusy(t *testing.T) {
	for _, c := range []struct {
		role             request.Role
		running, covered float64
		most             int
		want             float64
	}{
		{request.Prefill, 3, 0.4, 7, 0.4}, {request.Decode, 1, 1, 8, 0.125}, {request.Unified, 6, 1, 8, 0.75}, {request.Decode, 1, 1, 1, math.NaN()},
	} {
		if got := Busy(c.role, c.running, c.covered, c.most); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
