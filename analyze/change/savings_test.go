package change

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/trace"
)

// Of two ranks, one yields fewer tokens per step in the second half, or both do. A change of one is said of that one.
func TestYieldOfOneRank(t *testing.T) {
	for _, both := range []bool{false, true} {
		r := rand.New(rand.NewPCG(1, 2))
		all := savings{metric: YieldChanged, at: make([]savings, 2)}
		for rank := range all.at {
			all.at[rank] = savings{metric: YieldChanged, place: place.Location{Scope: place.OneRank, Server: rank}}
		}
		for i := range 400 {
			rank := i % 2
			v := saving{at: trace.Time(i) * 1e9, until: trace.Time(i)*1e9 + 5e8, n: 280 + r.Int64N(40), all: 100}
			if i >= 200 && (both || rank == 1) {
				v.n = 100
			}
			all.values, all.at[rank].values = append(all.values, v), append(all.at[rank].values, v)
		}
		found := all.search(1e-6, 1e-6)
		if len(found) != 1 || (found[0].Location.Scope == place.OneRank) == both || !both && found[0].Location.Server != 1 {
			t.Errorf("both %v: %+v", both, found)
		}
	}
}

// Tokens per step fall from 3 to 1.4 between two times. That is one gradual change from the first of these on, and none if they stay.
func TestYieldThatFades(t *testing.T) {
	for _, fades := range []bool{true, false} {
		r, s := rand.New(rand.NewPCG(5, 6)), savings{metric: YieldChanged}
		for i := range 400 {
			v := saving{at: trace.Time(i) * 1e9, until: trace.Time(i)*1e9 + 5e8, n: 270 + r.Int64N(60), all: 100}
			if fades {
				v.n -= 160 * int64(min(max(i-100, 0), 200)) / 200
			}
			s.values = append(s.values, v)
		}
		found := s.search(1e-6, 1e-6)
		if want := map[bool]int{true: 1}[fades]; len(found) != want {
			t.Errorf("fades %v: %+v", fades, found)
		}
		for _, f := range found {
			if !isGradual(f.Shape) || f.Time < 85e9 || f.Time > 115e9 || f.Before.Rate < 2.9 || f.After.Rate > 1.5 {
				t.Errorf("%+v", f)
			}
		}
	}
}

// In the second half, 3 in 100 answers do not end before the limit of 2,000 tokens. That is fewer than are long anyway.
func TestFewRunawayAnswers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := savings{metric: OutputChanged}
	for i := range 1600 {
		v := saving{at: trace.Time(i) * 1e9, until: trace.Time(i) * 1e9, n: 20 + int64(60*r.ExpFloat64()), all: 1}
		if i >= 800 && i%33 == 0 {
			v.n = 2000
		}
		s.values = append(s.values, v)
	}
	found := s.search(1e-4, 1e-4)
	if len(found) != 1 || found[0].After.Rate < 1.4*found[0].Before.Rate || found[0].Time < 780e9 || found[0].Time > 870e9 || found[0].Limit < 100 {
		t.Errorf("%+v", found)
	}
}

// Requests that wait for 30 s have little time left before the files end, so that only those with short answers are in them. Answers that are
// really shorter from the middle on are found.
func TestAnswersCutOffByTheEnd(t *testing.T) {
	const second = trace.Time(1e9)
	for _, shorter := range []bool{false, true} {
		r, s := rand.New(rand.NewPCG(3, 4)), savings{metric: OutputChanged}
		for i := range 4000 {
			at := trace.Time(i) * second / 25
			wait := max(0, at-60*second) / 3
			n := int64(150 * math.Exp(0.7*r.NormFloat64()))
			if shorter {
				wait = 0
				if i >= 2000 {
					n = n * 2 / 3
				}
			}
			if until := at + wait + trace.Time(n)*second/10; n > 0 && until < 180*second {
				s.values = append(s.values, saving{at: at, first: at + wait, until: until, n: n, all: 1})
			}
		}
		if found := s.searchAll(1e-4, 1e-4); len(found) != 0 && !shorter || shorter && (len(found) == 0 || max(found[0].Time-80*second, 80*second-found[0].Time) > 5*second) {
			t.Errorf("shorter %v: %+v", shorter, found)
		}
	}
}
