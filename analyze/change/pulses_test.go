package change

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/trace"
)

// A rank that is slow whenever another one stands still shares these pulses, even if they do not
// show in its own times. A rank that is not slow then is left out.
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

// A server runs at half speed for a tenth of the time. Without the pulses, the prefills that hold up a
// decoding request would take half the time each, and half as many would fit into its shorter decoding: a
// quarter of that time would remain, and three quarters are claimed.
func TestPrefillsInPulses(t *testing.T) {
	w := &observer{from: 0, to: 600e9}
	pulses := changepoint.Pulses{Every: 60, At: 10, Length: 10, Size: 0.5, Level: 1, Count: 10}
	prefill, decode := work.Pace{}, work.Pace{}
	for at := trace.Time(0); at < 600e9; at += 1e9 {
		x := work.Piece{From: at, To: at + 1e8, NS: 1e8, Units: 1, Ratio: 1}
		if pulses.Over(w.seconds(x.From), w.seconds(x.To)) > 0 {
			x.To, x.NS, x.Ratio = at+2e8, 2e8, 2
		}
		prefill.Pieces = append(prefill.Pieces, x)
	}
	// The first request is outside of all pulses. The second is inside of one: prefills take 2 s of its 5 s.
	decode.Pieces = []work.Piece{{Request: 1001, From: 0, To: 5e9, NS: 4e9, Units: 1, Ratio: 1}, {Request: 1002, From: 12e9, To: 17e9, NS: 3e9, Units: 1, Ratio: 2}}
	w.paces.Prefill = []work.Pace{prefill}
	for i := range decode.Pieces { // as pulsing does before it calls addPrefills
		x := &decode.Pieces[i]
		x.NS *= 1 + w.pulsed(x, &pulses)
	}
	s := Stalling{held: map[int]int64{}}
	w.addPrefills(&s, &decode, &pulses)
	if got := s.held[1001]; got != 0 {
		t.Errorf("outside of pulses: %d ns", got)
	}
	if got := s.held[1002]; got < 1_440_000_000 || got > 1_500_000_000 { // a piece counts as in a pulse for at most 95 % of its time
		t.Errorf("in a pulse: %d ns, want 1.5 s", got)
	}
	if got := s.held[0]; got < 9_000_000_000 || got > 11_000_000_000 { // 100 prefills
		t.Errorf("prefills: %d ns, want 10 s", got)
	}
}
