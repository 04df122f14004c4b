package straggler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/trace"
)

// lastInTurn returns samples in which the listed ranks come last, by late, out of a step of 100.
func lastInTurn(ranks int, last []int, late int64) *SyncSamples {
	names := make([]string, ranks)
	for r := range names {
		names[r] = fmt.Sprintf("TP%d", r)
	}
	g := NewSyncSamples(names, 5)
	g.What, g.Verb, g.Group = "collectives", "arrives", "all"
	for i, rank := range last {
		arrivals := make([]int64, ranks)
		for r := range arrivals {
			arrivals[r] = int64(1000*i + r%2)
		}
		arrivals[rank] += late
		g.Meet(trace.Time(1000*i), arrivals, 100)
	}
	return g
}

// A rank that is last too often in a few sync points is a likely straggler, and never a certain one.
func TestLikelyOfFew(t *testing.T) {
	for _, c := range []struct {
		name  string
		ranks int
		last  []int
		late  int64
		want  string
	}{
		{"5 of 8, of eight ranks", 8, []int{7, 7, 4, 7, 1, 7, 3, 7}, 40, "TP7"},
		{"4 of 8, of eight ranks", 8, []int{7, 7, 4, 7, 1, 7, 3, 2}, 40, ""},
		{"8 of 8, of two ranks", 2, []int{1, 1, 1, 1, 1, 1, 1, 1}, 40, "TP1"},
		{"7 of 8, of two ranks", 2, []int{1, 1, 1, 0, 1, 1, 1, 1}, 40, ""},
		{"late by less than clocks tell", 8, []int{7, 7, 7, 7, 7, 7, 7, 7}, 3, ""},
		{"late by what does not matter", 8, []int{7, 7, 7, 7, 7, 7, 7, 7}, 6, ""},
		{"hardly any", 8, []int{7, 7, 7, 7, 7, 7, 7}, 40, ""},
		{"enough for the judge", 8, slices.Repeat([]int{7}, FewestSyncPoints), 40, ""},
	} {
		found := lastInTurn(c.ranks, c.last, c.late).LikelyOfFew(1)
		if got := strings.Join(namesOf(found), ","); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		for i := range found {
			f := found[i].Finding(0.1)
			if text := found[i].LikelyText(); f.Confidence != finding.Likely || !strings.HasSuffix(text, "8 collectives are too few to be certain") {
				t.Errorf("%s: %s: %s", c.name, f.Confidence, text)
			}
		}
	}
	if found := lastInTurn(8, []int{7, 7, 4, 7, 1, 7, 3, 7}, 40).LikelyOfFew(2); found != nil {
		t.Errorf("of two groups, one that chance allows: %v", found)
	}
}

func namesOf(found []Straggler) (names []string) {
	for i := range found {
		names = append(names, found[i].Name)
	}
	return names
}

// P is the tail of a binomial distribution, here computed one sync point at a time.
func TestChanceToBeLast(t *testing.T) {
	for _, ranks := range []int{2, 3, 8, 64} {
		for _, n := range []int{8, 15, 39} {
			g := lastInTurn(ranks, make([]int, n), 40)
			g.settle()
			times := make([]float64, n+1) // the probability of each number of times last
			times[0] = 1
			for range n {
				for k := n; k >= 0; k-- {
					times[k] *= 1 - 1/float64(ranks)
					if k > 0 {
						times[k] += times[k-1] / float64(ranks)
					}
				}
			}
			for last := range n + 1 {
				want := 0.0
				for _, p := range times[last:] {
					want += p
				}
				if last == 0 {
					want /= float64(ranks) // being last at least 0 times is certain for every rank
				}
				if got := g.chanceToBeLast(last, n); math.Abs(got-want*float64(ranks)) > 1e-9 {
					t.Errorf("last in %d of %d, of %d ranks: %v, want %v", last, n, ranks, got, want*float64(ranks))
				}
			}
		}
	}
}

// Equal ranks are never found if they vary like healthy ones, by a tenth of the step
// time, and hardly ever if they vary by half of it.
func TestFewOfHealthyRanks(t *testing.T) {
	const runs = 200
	for _, c := range []struct {
		ranks, most int
		spread      float64 // standard deviation, of a step of 100
	}{{2, 0, 10}, {4, 0, 10}, {8, 0, 10}, {2, 5, 50}, {4, 5, 50}, {8, 5, 50}} {
		wrong, ranks := 0, c.ranks
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, uint64(ranks)))
			g := NewSyncSamples(make([]string, ranks), 5)
			for i := range MinCounted {
				arrivals := make([]int64, ranks)
				for r := range arrivals {
					arrivals[r] = int64(1000*float64(i) + c.spread*rng.ExpFloat64())
				}
				g.Meet(trace.Time(1000*i), arrivals, 100)
			}
			wrong += len(g.LikelyOfFew(1))
		}
		if wrong > c.most {
			t.Errorf("%d ranks that vary by %v %%: %d of %d healthy sets have a straggler", ranks, c.spread, wrong, runs)
		}
	}
}

// A rank that is slow from some sync point on is a likely straggler since then, even if there
// are too few sync points for certainty.
func TestLikelySince(t *testing.T) {
	turns := func(n, from, to int) []int {
		last := make([]int, n)
		for i := range last {
			if last[i] = i % 4; i >= from && i < to {
				last[i] = 3
			}
		}
		return last
	}
	for _, c := range []struct {
		name           string
		n, from, until int
		want           bool
	}{
		{"the second half of 60", 60, 30, 60, true},
		{"the first half of 60", 60, 0, 30, true},
		{"the end is a start", 60, 50, 60, false},
		{"a spell of many", 400, 200, 230, false},
		{"nobody", 60, 60, 60, false},
	} {
		g := lastInTurn(4, turns(c.n, c.from, c.until), 40)
		found := g.LikelyOfFew(1)
		if (len(found) > 0) != c.want || len(found) > 0 && found[0].Name != "TP3" {
			t.Errorf("%s: %+v", c.name, found)
			continue
		}
		if c.want {
			s := &found[0]
			if since, until := int(s.Since)/1000, int(s.Until)/1000; max(since-c.from, c.from-since) > 2 || c.until < c.n && max(until-c.until, c.until-until) > 2 || !s.Counted {
				t.Errorf("%s: since %d until %d: %s", c.name, since, until, s.LikelyText())
			}
		}
	}
}

// Equal ranks are hardly ever found to be slow from some point on, whatever their noise.
func TestLikelySinceOfHealthyRanks(t *testing.T) {
	const runs, most = 300, 3
	for name, n := range noises {
		wrong := 0
		for seed := range uint64(runs) {
			g := gathered(seed, 2<<(seed%3), 41+int(seed%110), n, nothing)
			if len(g.Stragglers()) == 0 && len(g.Likely()) == 0 && len(g.LikelyOfFew(1)) > 0 {
				wrong++
			}
		}
		if wrong > most {
			t.Errorf("%s: %d of %d runs have a rank that is likely late", name, wrong, runs)
		}
	}
}

// If steps are no longer when a rank begins them late, nobody waits: the devices still
// had work. If the rank is always late, that cannot be judged.
func TestLateWithoutWaits(t *testing.T) {
	const ms = 1_000_000
	for _, x := range []struct {
		every       int
		longer      bool
		want, slack bool
	}{{3, true, true, false}, {3, false, false, false}, {1, false, true, true}} {
		g := NewSyncSamples([]string{"a", "b", "c", "d"}, ms)
		for i := range 60 {
			late, took := int64(0), int64(20*ms+i%5*1000)
			if i%x.every == 0 {
				late = 6 * ms
				if x.longer {
					took += late
				}
			}
			g.Meet(trace.Time(i)*1e9, []int64{1000, 0, late, 2000}, took)
		}
		s := Straggler{Rank: 2, Lateness: Lateness{LastMean: 6 * ms}}
		if got := g.Lengthens(&s); got != x.want || s.Slack != x.slack {
			t.Errorf("late in one of %d, longer %v: lengthens %v, slack %v", x.every, x.longer, got, s.Slack)
		}
	}
}
