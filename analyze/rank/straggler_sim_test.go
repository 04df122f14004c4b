package rank

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// withStraggler is a calm deployment in which one of 2, 4, or 8 ranks is slow by a factor.
func withStraggler(seed uint64, factor float64, atOnset bool) simulator.Config {
	c := testset.Calm(seed)
	c.Mode = simulator.Mode(seed % 3)
	tp := 2 << (seed / 3 % 3)
	c.Decode.TP, c.Unified.TP = tp, tp
	c.Straggler = simulator.Straggler{TP: int(seed) % tp, DP: int(seed/7) % 2, Factor: factor, AtOnset: atOnset}
	if atOnset {
		c.Incident.Onset = 0.5
	}
	return c
}

// A planted straggler is found, with the right rank and the time at which it became slow.
func TestRateOfStragglers(t *testing.T) {
	seeds := testset.Seeds(t)
	for _, c := range []struct {
		factor  float64
		atOnset bool
	}{{1.06, false}, {1.1, true}, {1.5, false}, {1.5, true}} {
		what := fmt.Sprintf("a rank slower by %.0f %%", 100*(c.factor-1))
		if c.atOnset {
			what += " from the middle on"
		}
		t.Run(what, func(t *testing.T) {
			found := testset.CountSeeds(seeds, func(seed uint64) bool {
				s, truth := testset.Simulated(t, withStraggler(seed, c.factor, c.atOnset))
				return foundPlanted(t, seed, Measure(place.Of(s)).Stragglers(), truth, c.atOnset)
			})
			testset.Rate(t, what, found, len(seeds), 95)
		})
	}
}

// foundPlanted reports whether exactly the planted straggler was found.
func foundPlanted(t *testing.T, seed uint64, found []straggler.Straggler, truth *simulator.Truth, atOnset bool) bool {
	want := truth.Straggler
	ok := len(found) > 0 && !slices.ContainsFunc(found, func(s straggler.Straggler) bool {
		return s.Location.Rank != testset.Rank(t, want.Rank) || s.Location.Role.String() != want.Role
	})
	if ok && atOnset {
		const near = 1_500_000_000
		off := found[0].Since - trace.Time(want.OnsetNs)
		ok = max(off, -off) < near
	}
	if !ok {
		t.Logf("seed %d: want %s %s from %d on, last in %d of %d", seed, want.Role, want.Rank, want.OnsetNs, want.LastSteps, want.Steps)
		for i := range found {
			t.Logf("    found %s", found[i].Text())
		}
	}
	return ok
}

// Without a planted straggler, none is found, whatever else happens.
func TestRateOfNoStragglers(t *testing.T) {
	seeds := testset.Seeds(t)
	for name, base := range map[string]func(seed uint64) simulator.Config{
		"calm": testset.Calm,
		"incident": func(seed uint64) simulator.Config {
			c := simulator.DefaultConfig(seed)
			c.Straggler.Factor = 0
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			silent := testset.CountSeeds(seeds, func(seed uint64) bool {
				c := testset.Deployment(seed, base(seed))
				tp := 2 << (seed / 4 % 3)
				c.Decode.TP, c.Unified.TP = tp, tp
				s, _ := testset.Simulated(t, c)
				found := Measure(place.Of(s)).Stragglers()
				for i := range found {
					t.Logf("seed %d: %s", seed, found[i].Text())
				}
				return len(found) == 0
			})
			testset.Rate(t, "no straggler, "+name, silent, len(seeds), 98)
		})
	}
}
