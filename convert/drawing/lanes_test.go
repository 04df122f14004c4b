package drawing

import (
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// The first free lane is the one that a linear search finds.
func TestLaneEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var tree laneEnds
	var plain []trace.Time
	for range 5000 {
		if rng.IntN(8) == 0 || len(plain) == 0 {
			tree.add()
			plain = append(plain, 0)
			tree.set(len(plain)-1, 0)
		}
		lane, end := rng.IntN(len(plain)), trace.Time(rng.IntN(1000))
		tree.set(lane, end)
		plain[lane] = end
		from, most := rng.IntN(len(plain)+1), trace.Time(rng.IntN(1000)-5)
		want := from
		for want < len(plain) && plain[want] > most {
			want++
		}
		if got := tree.next(from, most); got != want {
			t.Fatalf("%d lanes: the first from %d on that ends by %d is %d, want %d", len(plain), from, most, got, want)
		}
	}
}

// Requests that all run at once get a lane each. A linear search for each would take minutes.
func TestPackOfManyAtOnce(t *testing.T) {
	const n = 200_000
	units := make([]unit, 0, 2*n)
	for round := range trace.Time(2) {
		for i := range trace.Time(n) {
			from := round*(n+1)*10_000 + i*10_000
			units = append(units, unit{from: from, to: from + n*10_000, request: int32(round*n + i)})
		}
	}
	lanes := pack(units)
	if len(lanes) != n {
		t.Fatalf("%d lanes, want %d", len(lanes), n)
	}
	for k, lane := range lanes {
		if len(lane) != 2 || lane[0].to > lane[1].from {
			t.Fatalf("lane %d has %v", k, lane)
		}
	}
}
