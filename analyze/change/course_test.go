package change

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change/work"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// Servers that are slow for the same time share one spell; a server that is slow at another time has its own.
func TestSpellsAtOneTime(t *testing.T) {
	const second = trace.Time(1e9)
	spell := func(host string, rank int32, from, until trace.Time) Shift {
		return Shift{Metric: PaceChanged, Shape: changepoint.Spell, Location: place.Location{Scope: place.OneRank, Role: request.Unified, Host: host}, Ranks: []int32{rank}, Peers: 3,
			Before: Level{P50: 16}, After: Level{P50: 48}, Time: from, First: from - second/5, Last: from + second/5, Until: until, Extra: map[int]float64{int(rank): 7}}
	}
	found := oneAfterAnother([]Shift{spell("a", 0, 40*second, 69*second), spell("b", 1, 40*second+second/10, 70*second), spell("c", 2, 75*second, 99*second)}, request.Unified)
	if len(found) != 2 || len(found[0].Ranks) != 2 || found[0].Location.Scope != place.WholeRole || found[0].rolls() || len(found[0].Extra) != 2 || found[1].Location.Host != "c" {
		t.Errorf("%+v", found)
	}
}

// A course that another rank has at the same time is the same; one at another time, or the other way, is not.
func TestCoursesMeet(t *testing.T) {
	step := func(first, last, size float64) changepoint.Course {
		return changepoint.Course{Shape: changepoint.Stepped, First: first, Last: last, Size: size}
	}
	sure := paceCourse{Course: step(86, 88, -0.9)}
	for _, c := range []struct {
		o    changepoint.Course
		want bool
	}{{step(80, 95, -0.8), true}, {step(100, 120, -0.8), false}, {step(80, 95, 0.8), false}} {
		if got := sure.meets(&c.o); got != c.want {
			t.Errorf("%+v: %v", c.o, got)
		}
	}
}

// Where fewer than two pieces begin on one side of a change, nothing tells how exact the change is.
func TestOffByWithoutPieces(t *testing.T) {
	w := observer{to: 100e9}
	p := &work.Pace{}
	for i := range 20 {
		p.Pieces = append(p.Pieces, work.Piece{From: trace.Time(i) * 1e9, To: 90e9, Ratio: 1 + float64(i%2)/10})
	}
	for at, known := range map[trace.Time]bool{10e9: true, 18e9: true, 19e9: false, 60e9: false} {
		if off := w.offBy(p, at, 0); math.IsInf(off, 1) == known || math.IsNaN(off) {
			t.Errorf("at %d: off by %v", at, off)
		}
	}
}

// A server that decodes half as fast for the first fifth of the time costs what that took longer; one that does so for most of it became faster.
func TestSlowAtFirst(t *testing.T) {
	const second, from, n = trace.Time(1e9), trace.Time(1000e9), 400
	for _, c := range []struct {
		until trace.Time
		costs bool
	}{{24 * second, true}, {80 * second, false}} {
		rnd := rand.New(rand.NewPCG(5, 5))
		w := &observer{from: from, to: from + 120*second, set: &request.Set{}}
		w.ranks = &place.RankSet{Places: []place.Location{{Scope: place.OneRank, Role: request.Unified, Host: "a"}}, Engine: []int32{0}, Leads: []bool{true}}
		p, planted := work.Pace{Usual: 20e6}, 0.0
		for i := range n {
			x := work.Piece{Request: i, From: from + trace.Time(i)*120*second/n, Units: 50, Ratio: math.Exp(0.03 * rnd.NormFloat64())}
			if x.From < from+c.until {
				planted += 20e6 * x.Units
				x.Ratio *= 2
			}
			x.NS = 20e6 * x.Ratio
			x.To = x.From + trace.Time(x.NS*x.Units)
			p.Pieces = append(p.Pieces, x)
		}
		found := w.coursesOf([]*work.Pace{&p}, request.Unified, 0.01)
		if len(found) != 1 {
			t.Fatalf("%+v", found)
		}
		f := &found[0]
		if f.rises() || f.costs() != c.costs || f.Time < from+c.until-second || f.Time > from+c.until+second {
			t.Errorf("%+v", f)
		}
		if extra := f.extraTime(); c.costs && math.Abs(extra/planted-1) > 0.1 {
			t.Errorf("costs %.1f s, planted %.1f s", extra/1e9, planted/1e9)
		}
	}
}

// Longer contexts of as many requests explain slower tokens. A server that became slower has more requests at a time, with more context
// in proportion, and that explains nothing.
func TestContextsExplainPaces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 6))
	for _, longer := range []bool{false, true} {
		p := &work.Pace{}
		for i := range 400 {
			grown := min(1, max(0, float64(i-200)/60)) // from 0 to 1 in the second half
			requests := 10 + 2*rnd.Float64()
			contexts := 1000 * requests
			x := work.Piece{Request: i, Units: 100, Ratio: (1 + 0.3*grown) * math.Exp(0.02*rnd.NormFloat64())}
			if longer {
				contexts *= 1 + 10*grown*(0.8+0.4*rnd.Float64())
			} else {
				requests, contexts = requests*(1+0.3*grown), contexts*(1+0.3*grown)
			}
			x.Burden = work.Burden{requests, contexts}
			p.Pieces = append(p.Pieces, x)
		}
		by := func(x *work.Piece) float64 { return map[bool]float64{true: 1/1.3 - 1}[x.Request >= 225] }
		if got := followsContext([]*work.Pace{p}, by); got != longer {
			t.Errorf("longer contexts %v: %v", longer, got)
		}
	}
}
