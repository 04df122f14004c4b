package straggler

import (
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// A rank that is late in the second half shows as late in these parts, and in no others.
func TestCourse(t *testing.T) {
	const steps, step, late = 400, 1_000_000, 200_000
	g := NewSyncSamples([]string{"TP0", "TP1", "TP2"}, 0)
	for i := range steps {
		at := int64(i) * step
		arrivals := []int64{at, at, at}
		if i >= steps/2 {
			arrivals[1] += late
		}
		if i%4 == 0 {
			arrivals[2] = NoArrival
		}
		g.Meet(trace.Time(at), arrivals, step)
	}
	c := g.History(8)
	if c.From != 0 || c.To != (steps-1)*step {
		t.Errorf("from %d to %d", c.From, c.To)
	}
	n := [3]int{}
	for p := range 8 {
		for rank := range n {
			piece := c.Late[rank][p]
			n[rank] += piece.N
			want := int64(0)
			switch {
			case rank == 1 && p >= 4:
				want = late
			case rank != 1 && p >= 4: // if another one is absent, the remaining one is early
				if piece.Mean > 0 || piece.Mean < -late/2 {
					t.Errorf("rank %d, part %d: %d", rank, p, piece.Mean)
				}
				continue
			}
			if piece.Mean != want || piece.Part != float64(want)/step {
				t.Errorf("rank %d, part %d: %+v, want %d", rank, p, piece, want)
			}
		}
	}
	if n != [3]int{steps, steps, steps * 3 / 4} {
		t.Errorf("the pieces have %v steps", n)
	}
	if got := NewSyncSamples([]string{"a", "b"}, 0).History(4); got.Late[0] != nil {
		t.Errorf("no sync points make %v", got.Late)
	}
}

// A rank that is slightly late at first, and much later from some point on, is a straggler since
// then: the two are separate states.
func TestMuchLaterSince(t *testing.T) {
	const n, from = 80, 40
	g := NewSyncSamples([]string{"TP0", "TP1", "TP2", "TP3"}, 50)
	g.What, g.Verb, g.Group = "collectives", "arrives", "all"
	rng := rand.New(rand.NewPCG(3, 1))
	for i := range n {
		arrivals := make([]int64, 4)
		for r := range arrivals {
			arrivals[r] = int64(10_000*i + rng.IntN(300))
		}
		if arrivals[1] += 400; i >= from {
			arrivals[1] += 4000 + int64(rng.IntN(2000))
		}
		g.Meet(trace.Time(10_000*i), arrivals, 10_000)
	}
	found := g.Stragglers()
	if len(found) != 1 || found[0].Name != "TP1" || found[0].SyncPoints < n-from-2 || found[0].SyncPoints > n-from+2 {
		t.Fatalf("%+v", found)
	}
	if since := int(found[0].Since) / 10_000; since < from-2 || since > from+2 {
		t.Errorf("since sync point %d, not %d", since, from)
	}
}
