package work

import (
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// A scheduler stands still from 10 to 22 s. It computes the backlog first, so that the
// requests that it held up see a longer stall; the backlog does not count.
func TestWhatPiledUpIsNoPartOfAStall(t *testing.T) {
	const second = trace.Time(1e9)
	ends := Ends{[]trace.Time{8 * second, 10 * second, 22 * second, 22300e6, 22600e6, 23 * second, 24 * second}, []trace.Time{8 * second, 10 * second, 23200e6, 24 * second}}
	for _, c := range []struct {
		ends        Ends
		first, last trace.Time
		want        int64
	}{
		{ends, 10 * second, 10100e6, 12e9},
		{Ends{all: []trace.Time{8 * second, 10 * second, 15 * second, 22 * second}}, 10 * second, 10100e6, 0},
		{Ends{ends.all, []trace.Time{8 * second, 10 * second, 22 * second, 22500e6}}, 10 * second, 10100e6, 0}, // it went on at once
		{ends, 10 * second, 24 * second, 0}, // the start is uncertain
	} {
		x := Stall{First: c.first, Last: c.last, Length: 13e9}
		if got := c.ends.StandStill(&x); got != (c.want > 0) || got && x.Length != c.want {
			t.Errorf("%v: %v, for %d", c.ends, got, x.Length)
		}
	}
}

// Six of 60 prefills take half a second longer than their tokens explain. Another prefill takes just as
// long, but has enough tokens to explain it.
func TestPrefillsThatStandStill(t *testing.T) {
	var list []Piece
	for i := range 60 {
		x := Piece{Request: i, From: trace.Time(i) * 1e9, NS: float64(40+10*(i%7)) * 1e6, Units: 1, Burden: Burden{float64(400 + 100*(i%7))}}
		switch {
		case i == 33:
			x.NS, x.Burden[0] = 600e6, 6000
		case i%10 == 5:
			x.NS += 500e6
		}
		x.To = x.From + trace.Time(x.NS)
		list = append(list, x)
	}
	p := NewPace(0, list, 2)
	got := p.PrefillStalls()
	if len(got) != 6 {
		t.Errorf("%d stalls, want 6", len(got))
	}
	for _, s := range got {
		if r := s.Held[0].Piece.Request; r%10 != 5 || s.Length < 450e6 || s.Length > 550e6 {
			t.Errorf("request %d stands still for %d ns", r, s.Length)
		}
	}
}
