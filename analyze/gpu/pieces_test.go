package gpu

import (
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// Pieces add up to the whole in every account, wherever the cuts are.
func TestPiecesAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 40 {
		syms := trace.NewSymbols()
		set := testset.SetOf(syms, []string{"a", "b"}, testset.RandomStream(r, syms))
		whole := Measure(set, Options{})
		from, to := whole.Bounds()
		var cuts []trace.Time
		for i := range trace.Time(1 + r.IntN(5)) {
			cuts = append(cuts, from+(to-from)*i/5)
		}
		divided := Measure(set, Options{Cuts: cuts})
		for i := range divided.GPUs {
			g := &divided.GPUs[i]
			if len(g.Pieces) != len(cuts)+1 {
				t.Fatalf("%d pieces of %d cuts", len(g.Pieces), len(cuts))
			}
			var sum Piece
			for k := range g.Pieces {
				sum.Activity.add(&g.Pieces[k].Activity)
			}
			if sum.Running != whole.GPUs[i].Running || sum.Waits.Time != whole.GPUs[i].Waits.Time {
				t.Fatalf("%v and %v, want %v and %v", sum.Running, sum.Waits.Time, whole.GPUs[i].Running, whole.GPUs[i].Waits.Time)
			}
			accounts := int64(0)
			for _, a := range sum.Times()[2:] {
				accounts += a.Time
			}
			if accounts != g.Length() {
				t.Fatalf("accounts add up to %d of %d", accounts, g.Length())
			}
		}
	}
}
