package change

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/trace"
)

// A rank that is slow when another one stands still again and again does so with it, though its own times would not show when
// that is; one that is not is left out.
func TestFollowsPulses(t *testing.T) {
	for _, slow := range []bool{true, false} {
		r := rand.New(rand.NewPCG(5, 5))
		w := &observer{from: 0, to: 180e9}
		pulses := changepoint.Pulses{Every: 30, At: 10, Length: 1, Size: 0.9, Level: 1, Count: 6}
		var list []work.Piece
		for at := trace.Time(0); at < 175e9; at += trace.Time(2.5e9 + 2e9*r.Float64()) {
			x := work.Piece{From: at, To: at + 4e9, Units: 50, NS: 80e6 * math.Exp(0.05*r.NormFloat64()), Burden: work.Burden{1, 1}}
			if over := pulses.Over(w.seconds(x.From), w.seconds(x.To)); slow && over > 0 {
				x.NS *= 1.25
			}
			list = append(list, x)
		}
		p := work.NewPace(0, list, 0)
		if got := w.follows(&p, pulses, 0.001); (got != nil) != slow {
			t.Errorf("slow %v: %v", slow, got)
		}
	}
}
