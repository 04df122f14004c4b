package change

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change/work"
)

// Prefills that became faster and far smaller are not faster at the same load. If pieces
// have no size of their own, the number of others that run does not matter.
func TestAlike(t *testing.T) {
	paceOf := func(sized bool, small, large float64) []*work.Pace {
		p := &work.Pace{Sized: sized}
		for i := range 100 {
			size := small
			if i >= 50 {
				size = large
			}
			p.Pieces = append(p.Pieces, work.Piece{From: 1, Burden: work.Burden{size + float64(i%50), 1}, Shared: float64(i / 50)})
		}
		return []*work.Pace{p}
	}
	first := func(x *work.Piece) float64 { return 1 - x.Shared } // the first half is faster
	for _, c := range []struct {
		of   []*work.Pace
		want bool
	}{
		{paceOf(true, 100, 6000), false},
		{paceOf(true, 6000, 100), false},
		{paceOf(true, 100, 110), true},
		{paceOf(true, 100, 140), false}, // the mean size of 124 is not between 142 and 187
		{paceOf(false, 100, 6000), true},
	} {
		if got := alike(c.of, first); got != c.want {
			t.Errorf("sizes from %v and %v: alike: %v", c.of[0].Pieces[0].Burden, c.of[0].Pieces[99].Burden, got)
		}
	}
}
