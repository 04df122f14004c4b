package straggler

import (
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// A rank that is late in the second half of the time is so there, and nowhere else.
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
			case rank != 1 && p >= 4: // where one of the others is not there, the other one is early
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
