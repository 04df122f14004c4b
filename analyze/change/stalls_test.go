package change

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// standing is a server that decodes answers of about a second each, and stands still for length at each of the given times.
func standing(rnd *rand.Rand, length trace.Time, at ...trace.Time) *observer {
	const answers, second = 400, trace.Time(1e9)
	w := &observer{from: 0, to: 120 * second, set: &request.Set{}, within: []*request.Request{}}
	w.ranks = &place.RankSet{Set: w.set, Places: []place.Location{{Scope: place.OneRank, Role: request.Unified, Host: "a"}}}
	p := work.Pace{}
	for i := range answers {
		from := trace.Time(i) * 120 * second / answers
		took := second + trace.Time(rnd.IntN(20_000_000))
		usual, to := float64(took), from+took
		for _, t := range at {
			switch {
			case from >= t && from < t+length: // it waits to start
				to += t + length - from
				from = t + length
			case from < t && to > t:
				to += length
			}
		}
		p.Pieces = append(p.Pieces, work.Piece{Request: i, From: from, To: to, Units: 50, NS: float64(to-from) / 50, Ratio: float64(to-from) / usual})
	}
	w.paces.Decode = []work.Pace{p}
	return w
}

// A server that stands still for half a second is reported if that happens at least
// three times, as one finding. Every process stands still briefly once or twice.
func TestServerStandsStillNowAndThen(t *testing.T) {
	const second = trace.Time(1e9)
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		length trace.Time
		at     []trace.Time
		want   []string
	}{
		{second / 2, []trace.Time{30 * second, 47 * second, 90 * second}, []string{"stood still 3 times for up to 50", "first at", "last at"}},
		{second / 2, []trace.Time{30 * second, 47 * second}, nil},
		{second / 5, []trace.Time{30 * second, 47 * second, 90 * second}, nil},
		{2 * second, []trace.Time{30 * second}, []string{"stood still for 2 s"}},
		{2 * second, []trace.Time{30 * second, 77 * second}, []string{"stood still 2 times for up to 2 s"}},
	} {
		got := standing(rnd, c.length, c.at...).findStallings()
		if len(got) != min(1, len(c.want)) {
			t.Errorf("%v at %v: %d stallings", c.length, c.at, len(got))
			continue
		}
		for _, want := range c.want {
			if text := got[0].sentence(); !strings.Contains(text, want) {
				t.Errorf("%v at %v: %q lacks %q", c.length, c.at, text, want)
			}
			if n := len(got[0].Times); n != len(c.at) {
				t.Errorf("%v at %v: %d times", c.length, c.at, n)
			}
		}
	}
}

// What a stall held up is as fast as the work around it once the stall is taken off, whatever that did to the usual pace.
func TestStallsLeaveThePaceAround(t *testing.T) {
	const usual, around, stall = 24e6, 20e6, 2e9 // ns per token
	p := work.Pace{Usual: usual}
	held := map[int]int64{}
	for i := range 40 {
		x := work.Piece{Request: i, Units: 100, NS: around}
		if i%10 == 5 {
			x.NS, held[i] = around+stall/x.Units, stall
		}
		x.Ratio = x.NS / usual
		p.Pieces = append(p.Pieces, x)
	}
	w := observer{paces: work.Paces{Decode: []work.Pace{p}}}
	w.takeStalls([]Stalling{{held: held, shift: Shift{Ranks: []int32{0}}}})
	for _, x := range p.Pieces {
		if math.Abs(x.NS/around-1) > 1e-9 || math.Abs(x.Ratio-around/usual) > 1e-9 {
			t.Errorf("request %d: %.1f ms per token, %.2f times the usual time", x.Request, x.NS/1e6, x.Ratio)
		}
	}
}
