package load

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// The maximum number of overlapping pieces equals a count at every instant.
func TestAtOnce(t *testing.T) {
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
		if got, _, _ := AtOnce(list); got != want {
			t.Fatalf("%v: %d at once, want %d", list, got, want)
		}
	}
}

// Requests that arrive at random each meet as many waiting ones as wait on average; those that queue for room wait together.
func TestTogether(t *testing.T) {
	const ms = trace.Time(1e6)
	rng := rand.New(rand.NewPCG(1, 2))
	var random, queue []request.Interval
	for range 5_000 {
		at := trace.Time(rng.Int64N(int64(500_000 * ms)))
		random = append(random, request.Interval{From: at, To: at + 10*ms})
	}
	for i := range trace.Time(20) { // room for one every 100 ms
		queue = append(queue, request.Interval{From: i * ms, To: 100 * (i + 1) * ms})
	}
	if _, _, together := AtOnce(random); together < 1.08 || together > 1.12 {
		t.Errorf("%.3f wait together by chance, want 1 + 0.1", together)
	}
	// The 20 requests wait for 2 s: 20 in the first 100 ms, 19 in the next.
	sum, squares := 0.0, 0.0
	for n := 20.0; n > 0; n-- {
		sum, squares = sum+n, squares+n*n
	}
	if most, at, together := AtOnce(queue); most != 20 || at != 19*ms || together < 0.98*squares/sum || together > squares/sum {
		t.Errorf("%d wait at %d, together %.2f, want %.2f", most, at, together, squares/sum)
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
