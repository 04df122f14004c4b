package request

import (
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// eachProc gives every proc its own clock.
func eachProc(proc int) int { return proc }

// Events in causal order contradict no bound, and each hop between two clocks has bounds in both
// directions.
func TestClockBoundsHold(t *testing.T) {
	s := planted(t, plant{requests: 5})
	directions := map[[2]int]int{}
	for _, b := range s.ClockBounds(eachProc) {
		if b.Hi < 0 {
			t.Errorf("an effect on clock %d comes %d ns before its cause on %d", b.B, -b.Hi, b.A)
		}
		directions[[2]int{b.A, b.B}]++
	}
	for _, hop := range [][2]int{{gatewayProc, prefillProc}, {gatewayProc, decodeProc}, {decodeProc, gatewayProc},
		{prefillProc, decodeProc}, {decodeProc, prefillProc}, {decodeProc, decodeProc1}} {
		if directions[hop] != 5 {
			t.Errorf("%d bounds from proc %d to %d of 5 requests", directions[hop], hop[0], hop[1])
		}
	}
	if bounds := s.ClockBounds(func(int) int { return 0 }); len(bounds) != 0 {
		t.Errorf("%d bounds between one clock and itself", len(bounds))
	}
}

// A bound grows by the amount that the clock of the effect is ahead.
func TestClockBoundsFollowClocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	plain := planted(t, plant{requests: 3}).ClockBounds(eachProc)
	for range 20 {
		p := plant{requests: 3}
		for proc := range p.shift {
			p.shift[proc] = trace.Time(rng.Int64N(2e9) - 1e9)
		}
		// Whether the gateway's own instant counts does not depend on clocks.
		for i, b := range planted(t, p).ClockBounds(eachProc) {
			if want := plain[i].Hi + int64(p.shift[b.B]-p.shift[b.A]); b.A != plain[i].A || b.B != plain[i].B || b.Hi != want {
				t.Fatalf("bound %d is %+v, want Hi %d", i, b, want)
			}
		}
	}
}

// Unfinished requests give no bounds, nor do times out of range, nor a gateway span shared by
// several requests.
func TestClockBoundsOfDoubtful(t *testing.T) {
	for name, change := range map[string]func(*Set, int, *Request){
		"aborted":  func(s *Set, r int, q *Request) { q.Status = Aborted },
		"far away": func(s *Set, r int, q *Request) { far(s) },
	} {
		s := planted(t, plant{requests: 2, change: change})
		if bounds := s.ClockBounds(eachProc); len(bounds) != 0 {
			t.Errorf("%s: %d bounds", name, len(bounds))
		}
	}
	s := planted(t, plant{requests: 2, change: func(s *Set, r int, q *Request) { q.Flags |= SharedGateway }})
	for _, b := range s.ClockBounds(eachProc) {
		if b.A == gatewayProc || b.B == gatewayProc {
			t.Errorf("%+v of a shared gateway", b)
		}
	}
}

// far moves all rows to times that no clock could show.
func far(s *Set) {
	for i := range s.Rows {
		s.Rows[i].Start |= 1 << 62
		s.Rows[i].End |= 1 << 62
	}
}

// Correct clocks are not adjusted. A host that is ahead by more than the duration of a request is
// corrected by that offset, as exactly as cause and effect allow.
func TestHostClocks(t *testing.T) {
	if c := planted(t, plant{requests: 5}).HostClocks(); c.Moves() || c.Shift(prefillProc) != 0 {
		t.Error("clocks that are right are moved")
	}
	const within = 500_000 // ns: longest time between a cause and its effect
	for _, ahead := range []trace.Time{-3_000_000_000, -20_000_000, 20_000_000, 3_000_000_000} {
		p := plant{requests: 20}
		p.shift[prefillProc] = ahead
		s := planted(t, p)
		c := s.HostClocks()
		got := c.Shift(prefillProc) - c.Shift(decodeProc)
		if !c.Moves() || got+ahead < -within || got+ahead > within {
			t.Errorf("ahead by %d: moved %v by %d", ahead, c.Moves(), got)
		}
		if c.Drifted(prefillProc, decodeProc, s.Requests[10].Start) != 0 {
			t.Errorf("ahead by %d: drifts", ahead)
		}
		if n := contradictions(s, c); n != 0 {
			t.Errorf("ahead by %d: %d effects come before their causes after the clocks were put right", ahead, n)
		}
	}
}

// contradictions counts the bounds violated under the clocks c.
func contradictions(s *Set, c *HostClocks) (n int) {
	for i := range s.Rows {
		row := &s.Rows[i]
		d := c.Shift(int(row.Proc))
		row.Start, row.End = row.Start+d, row.End+d
	}
	for i := range s.Instants { // of the gateway, in request order
		s.Instants[i].Time += c.Shift(gatewayProc)
	}
	for _, b := range s.ClockBounds(eachProc) {
		if b.Hi < -ClockSlack {
			n++
		}
	}
	return n
}

// A drifting clock is corrected by its offset in the middle, and by the drift before and after it,
// at every instant.
func TestHostClocksThatDrift(t *testing.T) {
	const ppm, within = 20, 600_000 // ns: as above, plus some for the slope
	s := planted(t, plant{requests: 700, apart: 1_000_000})
	first, last, _ := s.Bounds()
	drift := func(t trace.Time) trace.Time { return t + (t-first)*ppm/1_000_000 }
	for i := range s.Rows {
		if row := &s.Rows[i]; row.Proc == prefillProc {
			row.Start, row.End = drift(row.Start), drift(row.End)
		}
	}
	c := s.HostClocks()
	for _, at := range []trace.Time{first, first + (last-first)/4, first + (last-first)/2, last} {
		shown := drift(at) + c.Shift(prefillProc)
		known := shown + c.Drifted(prefillProc, gatewayProc, shown)
		if d := known - at; max(d, -d) > within {
			t.Errorf("%d s after the first request: off by %d ns", (at-first)/1e9, d)
		}
		if d := c.Drifted(gatewayProc, prefillProc, shown) + c.Drifted(prefillProc, gatewayProc, shown); d != 0 {
			t.Errorf("there and back: %d ns", d)
		}
	}
	if d := drift(last) + c.Shift(prefillProc) - last; d < 5_000_000 {
		t.Errorf("one shift for all puts the end off by %d ns only: this tests no drift", d)
	}
}
