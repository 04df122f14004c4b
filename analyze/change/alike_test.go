package change

import "testing"

// Prefills that are faster while they are far smaller are not faster at the same load; nor does it matter how many
// others run where pieces have no size of their own.
func TestAlike(t *testing.T) {
	paceOf := func(sized bool, small, large float64) []*pace {
		p := &pace{sized: sized}
		for i := range 100 {
			size := small
			if i >= 50 {
				size = large
			}
			p.work = append(p.work, piece{from: 1, burden: burden{size + float64(i%50), 1}, shared: float64(i / 50)})
		}
		return []*pace{p}
	}
	first := func(x *piece) float64 { return 1 - x.shared } // the first half is faster
	for _, c := range []struct {
		of   []*pace
		want bool
	}{
		{paceOf(true, 100, 6000), false},
		{paceOf(true, 6000, 100), false},
		{paceOf(true, 100, 110), true},
		{paceOf(true, 100, 140), false}, // 124 is not among 142 to 187
		{paceOf(false, 100, 6000), true},
	} {
		if got := alike(c.of, first); got != c.want {
			t.Errorf("sizes from %v and %v: alike: %v", c.of[0].work[0].burden, c.of[0].work[99].burden, got)
		}
	}
}
