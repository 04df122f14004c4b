package work

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/trace"
)

// lockstepped plays four ranks that decode requests of 100 tokens, at 10 ms per token, as many at any time. In the second half, there are spells
// of 10 s in which rank 1 decodes a heavy request as well, which adds 5 ms to the steps of rank 1, or of all if they take steps together.
func lockstepped(together bool, slower float64) (ranks *place.RankSet, paces []Pace, planted float64, isHeavy func(int) float64) {
	r := rand.New(rand.NewPCG(7, 7))
	heavy := map[int]bool{}
	inSpell := func(at float64) bool { return at > 200 && math.Mod(at, 20) < 10 }
	ranks = &place.RankSet{}
	n := 0
	for rank := range 4 {
		ranks.Places = append(ranks.Places, place.Location{Scope: place.OneRank, Host: "a"})
		var list []Piece
		slow := together || rank == 1
		for slot := range 4 {
			for at := 0.3 * float64(slot); at < 400; {
				from, step := at, 0.0
				for range 100 {
					step = 0.010 * math.Exp(0.02*r.NormFloat64())
					if slow && inSpell(at) {
						step += slower
						planted += slower * 1e9
					}
					at += step
				}
				list = append(list, Piece{Request: n, From: trace.Time(from * 1e9), To: trace.Time(at * 1e9), Units: 100, NS: (at - from) * 1e9 / 100, Burden: Burden{4}})
				n++
			}
		}
		if rank == 1 {
			for at := 200.0; at < 400; at += 20 {
				units := 10 / (0.010 + slower)
				planted += units * slower * 1e9
				list, heavy[n] = append(list, Piece{Request: n, From: trace.Time(at * 1e9), To: trace.Time((at + 10) * 1e9), Units: units, NS: 10e9 / units, Burden: Burden{5}}), true
				n++
			}
		}
		paces = append(paces, Pace{Rank: int32(rank), Pieces: list})
	}
	return ranks, paces, planted, func(i int) float64 {
		if heavy[i] {
			return 14000
		}
		return 0
	}
}

// What heavy requests cost is what was planted, on the ranks that it was planted on.
func TestBesideHeavy(t *testing.T) {
	for _, together := range []bool{false, true} {
		ranks, paces, planted, heavy := lockstepped(together, 0.005)
		found := FindBeside(ranks, paces, heavy)
		if len(found) != 1 || found[0].Together != together || found[0].With < 14e6 || found[0].With > 15.5e6 || found[0].Without < 9.9e6 || found[0].Without > 10.5e6 {
			t.Fatalf("together %v: %+v", together, found)
		}
		sum := 0.0
		for _, ns := range found[0].Extra {
			sum += ns
		}
		if sum < 0.85*planted || sum > 1.15*planted {
			t.Errorf("together %v: %.1f s, planted %.1f s", together, sum/1e9, planted/1e9)
		}
	}
	ranks, paces, _, heavy := lockstepped(true, 0)
	if found := FindBeside(ranks, paces, heavy); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}
