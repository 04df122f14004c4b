package straggler

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Spells are as planted, even if others come last in between, and their waits add up to the total.
func TestSpells(t *testing.T) {
	const n = 3000
	planted := func(i int) int {
		switch {
		case i < 1000:
			return 1
		case i < 2400:
			return 3
		}
		return 0
	}
	g := NewSyncSamples([]string{"a", "b", "c", "d"}, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	all := int64(0)
	for i := range n {
		arrivals := []int64{0, 0, 0, 0}
		late := planted(i)
		if rng.IntN(5) == 0 {
			late = rng.IntN(4)
		}
		arrivals[late] = 50 + rng.Int64N(100)
		all += 3 * arrivals[late]
		g.Meet(trace.Time(i*1000), arrivals, 1000)
	}
	spells := g.Spells()
	if len(spells) != 3 || spells[0].From != 0 || spells[2].To != 0 {
		t.Fatalf("%+v", spells)
	}
	sum, points := int64(0), 0
	for k, s := range spells {
		if s.Rank != []int{1, 3, 0}[k] {
			t.Errorf("spell %d: %+v", k, s)
		}
		sum, points = sum+s.All, points+s.SyncPoints
		if k > 0 {
			if at := int(s.From) / 1000; at < []int{0, 980, 2380}[k] || at > []int{0, 1020, 2420}[k] || spells[k-1].To != s.From {
				t.Errorf("spell %d begins at %d", k, at)
			}
		}
		if s.Bulk != (Bulk{}) {
			t.Errorf("spell %d: all waits are alike, and few of them are most: %+v", k, s)
		}
		if float64(s.Lost) < 0.8*float64(s.All) || s.Last < s.SyncPoints*4/5 {
			t.Errorf("spell %d: %+v", k, s)
		}
	}
	if sum != all || points != n {
		t.Errorf("%d of %d ns, %d of %d sync points", sum, all, points, n)
	}
	quiet := NewSyncSamples([]string{"a", "b"}, 0)
	quiet.Meet(0, []int64{5, 5}, 10)
	if got := quiet.Spells(); got != nil {
		t.Errorf("nobody waits: %+v", got)
	}
}

// A host stands still once, or several times, among waits of 10 to 20 ns: a few sync
// points make up most of the lost time, and are identified.
func TestBulk(t *testing.T) {
	for _, c := range []struct {
		stalls    map[int]int64
		low, high int64
	}{{map[int]int64{70: 9000}, 9000, 9000}, {map[int]int64{20: 800, 60: 900, 100: 850, 140: 1000}, 800, 1000}, {nil, 0, 0}} {
		g := NewSyncSamples([]string{"a", "b", "c"}, 0)
		all, lost, first, last := int64(0), int64(0), 200, 0
		for i := range 200 {
			late := 10 + int64(i%11)
			if stall := c.stalls[i]; stall > 0 {
				late, first, last = stall, min(first, i), i
				lost += 2 * stall
			}
			all += 2 * late
			g.Meet(trace.Time(i*1000), []int64{0, late, 0}, 1000)
		}
		want := Bulk{N: len(c.stalls), Lost: lost, Low: c.low, High: c.high}
		if len(c.stalls) > 0 {
			want.At, want.Last = trace.Time(first*1000), trace.Time(last*1000)
		}
		if got := g.Spells(); len(got) != 1 || got[0].Bulk != want || got[0].Lost != all {
			t.Errorf("%d stalls: %+v, want %+v of %d ns", len(c.stalls), got, want, all)
		}
		var moments []Moment
		for i := range 200 {
			if c.stalls[i] > 0 {
				moments = append(moments, Moment{trace.Time(i-1) * 1000, trace.Time(i) * 1000})
			}
		}
		if got := g.Spells()[0].Moments; !slices.Equal(got, moments) {
			t.Errorf("%d stalls: lost at %v, want %v", len(c.stalls), got, moments)
		}
		if got := g.bulk(1, 0, 200, nil); got != want {
			t.Errorf("%d stalls: of the rank %+v, want %+v", len(c.stalls), got, want)
		}
	}
}

// Rank c comes last at 200 sync points, except for one at which a stalls and three at which b does. These
// are waits for a and b, and all others are waits for c. A stall of c itself is part of its lateness.
func TestStallsAmidASpell(t *testing.T) {
	play := func(stalls map[int][2]int64) []Spell { // rank, ns
		g := NewSyncSamples([]string{"a", "b", "c"}, 0)
		for i := range 200 {
			arrivals := []int64{0, 0, 10 + int64(i%3)}
			if stall, ok := stalls[i]; ok {
				arrivals = []int64{0, 0, 0}
				arrivals[stall[0]] = stall[1]
			}
			g.Meet(trace.Time(i*1000), arrivals, 1000)
		}
		return g.Spells()
	}
	got := play(map[int][2]int64{50: {0, 9000}, 70: {1, 800}, 90: {1, 900}, 140: {1, 1000}})
	want := []Spell{
		{Rank: 0, Stalls: true, From: 49_000, To: 50_000, SyncPoints: 1, Lost: 18_000, Bulk: Bulk{N: 1, Lost: 18_000, Low: 9000, High: 9000, At: 50_000, Last: 50_000}},
		{Rank: 1, Stalls: true, From: 69_000, To: 140_000, SyncPoints: 3, Lost: 5400, Bulk: Bulk{N: 3, Lost: 5400, Low: 800, High: 1000, At: 70_000, Last: 140_000}},
		{Rank: 2, SyncPoints: 196, Lost: 4308},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for k, w := range want {
		s := got[k]
		if s.Rank != w.Rank || s.Stalls != w.Stalls || s.From != w.From || s.To != w.To || s.SyncPoints != w.SyncPoints || s.Last != s.SyncPoints || s.Lost != w.Lost || s.All != s.Lost || s.Bulk != w.Bulk || len(s.Moments) != w.Bulk.N {
			t.Errorf("%+v, want %+v", s, w)
		}
	}
	if text, want := got[1].Bulk.Alone("one collective", "collectives"), " (0.800 us to 1 us in each of 3 collectives, from 00:00:00.000 to 00:00:00.000)"; text != want {
		t.Errorf("%s, want %s", text, want)
	}
	own := play(map[int][2]int64{50: {2, 9000}})
	if len(own) != 1 || own[0].Stalls || own[0].SyncPoints != 200 || own[0].Bulk.N != 1 {
		t.Errorf("%+v", own)
	}
}

// If no other rank comes last in between, spells begin at the exact sync point.
func TestSpellsBeginExactly(t *testing.T) {
	for second := 40; second < 160; second += 7 {
		third := second + 50
		g := NewSyncSamples([]string{"a", "b", "c"}, 0)
		for i := range 250 {
			late := 0
			if i >= second {
				late = 1
			}
			if i >= third {
				late = 2
			}
			arrivals := []int64{0, 0, 0}
			arrivals[late] = 100
			g.Meet(trace.Time(i*1000), arrivals, 1000)
		}
		s := g.Spells()
		if len(s) != 3 || s[0].SyncPoints != second || s[1].SyncPoints != third-second || s[0].Lost != int64(second)*200 {
			t.Errorf("spells at %d and %d: %+v", second, third, s)
		}
	}
}
