package profilewalk

import (
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Launches returns what was put in, before and after packing, in any order of lookups.
func TestLaunches(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 3))
	var l Launches
	want := map[int64]Launch{}
	ids := []int64{0, -1, -64, 7 << 40, 7<<40 + 63}
	for i := range int64(3 * openBlocks * launchBlockSize) {
		ids = append(ids, 5<<32+i+rng.Int64N(50))
	}
	for i, id := range ids {
		x := Launch{Start: trace.Time(int64(i)*1000 - rng.Int64N(5000)), Dur: rng.Int64N(1 << rng.IntN(40)), Step: rng.Int32N(1000) - 1,
			Known: true, Graph: rng.IntN(9) == 0, Asks: rng.IntN(9) == 0}
		put := l.Put(id)
		if *put != want[id] {
			t.Fatalf("%d was %+v, want %+v", id, *put, want[id])
		}
		*put, want[id] = x, x
		near := ids[max(0, i-rng.IntN(300))]
		if found := l.Find(near); found == nil || *found != want[near] {
			t.Fatalf("%d is %+v, want %+v", near, found, want[near])
		}
	}
	for range 20_000 {
		id := ids[rng.IntN(len(ids))] + rng.Int64N(20)
		x, known := want[id]
		if found := l.Find(id); (found != nil) != known || known && *found != x {
			t.Fatalf("%d is %+v, want %+v", id, found, x)
		}
	}
	if n := len(l.open); n > openBlocks {
		t.Errorf("%d blocks are open", n)
	}
}
