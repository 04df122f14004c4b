package tail

import (
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

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
	if _, _, together := atOnce(random); together < 1.08 || together > 1.12 {
		t.Errorf("%.3f wait together by chance, want 1 + 0.1", together)
	}
	// The 20 requests wait for 2 s: 20 in the first 100 ms, 19 in the next.
	sum, squares := 0.0, 0.0
	for n := 20.0; n > 0; n-- {
		sum, squares = sum+n, squares+n*n
	}
	if most, at, together := atOnce(queue); most != 20 || at != 19*ms || together < 0.98*squares/sum || together > squares/sum {
		t.Errorf("%d wait at %d, together %.2f, want %.2f", most, at, together, squares/sum)
	}
	for name, c := range map[string]struct {
		ranks []SideRank
		want  bool
	}{
		"a few at random":  {[]SideRank{{Role: request.Decode, Busy: 0.3, Waiting: 0.1, together: 1.1}}, false},
		"they queue":       {[]SideRank{{Role: request.Decode, Busy: 0.3, Waiting: 0.1, together: 1.1}, {Role: request.Decode, Busy: 0.4, Waiting: 1, together: 13}}, true},
		"always full":      {[]SideRank{{Role: request.Decode, Busy: 0.9, Waiting: 20, together: 20}}, true},
		"of the other one": {[]SideRank{{Role: request.Prefill, Busy: 0.9, Waiting: 1, together: 13}}, false},
	} {
		d := Disaggregation{Ranks: c.ranks}
		if got := d.full(request.Decode); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
