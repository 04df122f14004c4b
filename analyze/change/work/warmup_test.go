package work

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// A server that begins at 100 s takes three times as long for its first 16 pieces, one per second, or for all of them, or for none.
func TestWarmUp(t *testing.T) {
	const second = trace.Time(1e9)
	for slow, want := range map[int]bool{0: false, 16: true, 100: false} {
		r := rand.New(rand.NewPCG(7, 7))
		var p Pace
		for i := range 200 {
			x := Piece{Request: i, From: trace.Time(i) * second, Units: 10, Ratio: math.Exp(0.05 * r.NormFloat64())}
			if i >= 100 && i < 100+slow {
				x.Ratio *= 3
			}
			x.NS = 1e6 * x.Ratio
			p.Pieces = append(p.Pieces, x)
		}
		w := p.WarmUp(100 * second)
		if (w != nil) != want {
			t.Errorf("%d slow: %v", slow, w)
		}
		if w == nil {
			continue
		}
		sum := int64(0)
		for _, ns := range w.Extra {
			sum += ns
		}
		planted := float64(slow) * 10 * 2e6 // ns
		if w.Until != 116*second || math.Abs(w.Factor-3) > 0.2 || math.Abs(float64(sum)-planted) > 0.1*planted {
			t.Errorf("until %d s, factor %g, %d ns; want 116 s, 3, %g ns", w.Until/second, w.Factor, sum, planted)
		}
	}
}

// Batches hold as many requests as run, or four times as many, as the dump has one in four.
func TestUnseen(t *testing.T) {
	for batch, want := range map[float64]bool{0: false, 1: false, 4: true} {
		list := []Piece{{From: 0, To: 100, Units: 10, Batch: batch}, {From: 100, To: 200, Units: 10, Batch: batch}}
		if got := unseenIn(list, newLevelOver(list, one)); got != want {
			t.Errorf("batches of %g: %v, want %v", batch, got, want)
		}
	}
}
