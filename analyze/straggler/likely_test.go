package straggler

import (
	"strings"
	"testing"
)

// A rank that costs the others time, which is too noisy or too short to be certain, is
// likely a straggler: that is said, with P. One that is certain is not told as likely.
func TestLikelyStragglers(t *testing.T) {
	const rank = 2
	likely, certain := 0, 0
	for seed := range uint64(60) {
		g := gathered(seed, 4, 60, noises["exponential"], func(r, _ int) float64 {
			if r == rank {
				return 0.07
			}
			return 0
		})
		found, suspects := g.Stragglers(), g.Likely()
		if len(found) > 0 && len(suspects) > 0 {
			t.Fatalf("seed %d: both %v and %v", seed, found, suspects)
		}
		certain += len(found)
		for _, s := range suspects {
			if s.Rank != rank || s.P <= ErrorLevel || s.P > LikelyLevel || s.LostShare < g.Share {
				t.Errorf("seed %d: rank %d with P = %v loses %v", seed, s.Rank, s.P, s.LostShare)
			}
			if text := s.LikelyText(); !strings.HasPrefix(text, "likely, not certain: TP2 ends last in ") || !strings.Contains(text, "; p = 0.0") {
				t.Error(text)
			}
			likely++
		}
	}
	if likely < 5 || certain < 5 {
		t.Errorf("of 60 runs %d are likely and %d certain, want some of each", likely, certain)
	}
}

// Ranks that are alike are hardly ever likely stragglers.
func TestUnlikelyStragglers(t *testing.T) {
	for name, n := range noises {
		wrong := 0
		const runs = 100
		for seed := range uint64(runs) {
			wrong += len(gathered(seed, 4, 200, n, func(int, int) float64 { return 0 }).Likely())
		}
		if wrong > runs*LikelyLevel+3 {
			t.Errorf("%s: %d of %d", name, wrong, runs)
		}
	}
}
