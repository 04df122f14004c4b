package collective

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// The steps without a slow rank that Play predicts take as long as in the same simulated run without it.
func TestRateOfSavedSteps(t *testing.T) {
	for _, c := range testset.TPServers {
		t.Run(c.Name, func(t *testing.T) {
			seeds := testset.Seeds(t)
			var right, quiet atomic.Int64
			testset.EachSeed(seeds, func(seed uint64) {
				s := c.TPServer
				s.Seed, s.Steps, s.Slow = seed, 40, int(seed)%s.Ranks
				slow := ReadChain(s.Play())
				s.Factor, s.Lag = 1, 1
				calm := ReadChain(s.Play())
				if slow.Refused != "" || calm.Refused != "" {
					t.Fatal(slow.Refused, calm.Refused)
				}
				change := &Change{Rank: s.Slow, Seed: seed}
				recorded, played, _ := slow.Play(change)
				truth, same, _ := calm.Play(change)
				is, would, want := float64(recorded.Total()), float64(played.Total()), float64(truth.Total())
				if saved := is - want; math.Abs(would-want) <= max(0.1*saved, 0.02*is) {
					right.Add(1)
				} else {
					t.Logf("seed %d: %.1f ms, played %.1f, want %.1f", seed, is/1e6, would/1e6, want/1e6)
				}
				if math.Abs(float64(same.Total())-want) <= 0.02*want {
					quiet.Add(1)
				} else {
					t.Logf("seed %d: healthy %.1f ms, played %.1f", seed, want/1e6, float64(same.Total())/1e6)
				}
			})
			testset.Rate(t, "steps without a slow rank: "+c.Name, int(right.Load()), len(seeds), 90)
			testset.Rate(t, "steps of healthy ranks: "+c.Name, int(quiet.Load()), len(seeds), 90)
		})
	}
}

// Without a change, Play reproduces the recorded times.
func TestUnchanged(t *testing.T) {
	for _, c := range testset.TPServers {
		for _, follow := range []bool{false, true} {
			s := c.TPServer
			s.Seed, s.Steps = 3, 20
			r := ReadChain(s.Play())
			if recorded, played, ranks := r.Play(&Change{Rank: -1, HostsFollow: follow}); recorded != played || recorded.Total() == 0 || len(ranks) != s.Ranks {
				t.Errorf("%s: recorded %v, played %v, %d ranks", c.Name, recorded, played, len(ranks))
			}
		}
	}
}

// If a slow rank were as fast as its peers until some time, the time saved by then would stay saved.
func TestSavedUntil(t *testing.T) {
	s := testset.TPServer{Seed: 2, Ranks: 4, Steps: 40, Segments: 24, Compute: 45e3, Noise: 0.03, Launch: 80e3, Transfer: 10e3, Factor: 1, Lag: 2, Slow: 1}
	r := ReadChain(s.Play())
	saved := func(until trace.Time) float64 {
		recorded, played, _ := r.Play(&Change{Rank: s.Slow, Until: until})
		return float64(recorded.Total() - played.Total())
	}
	from, to := r.arrivals[0].start, r.arrivals[len(r.arrivals)-1].end
	if all, part := saved(0), saved(from+(to-from)*3/4); all <= 0 || math.Abs(part/all-0.75) > 0.1 {
		t.Errorf("%.1f ms of %.1f are saved in three quarters of the time", part/1e6, all/1e6)
	}
}

// Chains that cannot be replayed are refused, with the reason.
func TestRefused(t *testing.T) {
	s := testset.TPServer{Seed: 1, Ranks: 2, Steps: 10, Segments: 10, Compute: 50e3, Launch: 9e3, Transfer: 8e3, Factor: 1, Lag: 1}
	for _, c := range []struct {
		why  string
		what func(set *profile.Set, m *testset.CollectiveMatches)
	}{
		{"2 of 4 ranks are not in the files, and nobody knows when these came", func(set *profile.Set, m *testset.CollectiveMatches) {
			set.MissingRanks = []profile.MissingRanks{{Seen: 2, Size: 4}}
		}},
		{"no collectives of several ranks were recorded at which all wait for the last one", func(set *profile.Set, m *testset.CollectiveMatches) { m.Points = nil }},
		{"no collectives of several ranks were recorded at which all wait for the last one", func(set *profile.Set, m *testset.CollectiveMatches) {
			for i := range m.Points {
				m.Points[i].GroupSize = 4
			}
		}},
		{"nobody knows when the collectives were", func(set *profile.Set, m *testset.CollectiveMatches) { m.Points[3].Blur = math.MaxInt64 }},
		{"40 collectives are too few to tell what is usual", func(set *profile.Set, m *testset.CollectiveMatches) { m.Points = m.Points[:40] }},
		{"collectives run beside others of the same rank, and which of them steps wait for is not known", func(set *profile.Set, m *testset.CollectiveMatches) {
			for i := range m.Points {
				m.Points[i].Arrivals[0].Start -= trace.Time(i%2) * 90e3
			}
		}},
		{"only 50 % of the time in collectives is in those at which all ranks were recorded and wait for the last one", func(set *profile.Set, m *testset.CollectiveMatches) {
			for i := range m.Points {
				m.Points[i].Sync = i%2 == 0
			}
		}},
	} {
		set := s.Play()
		c.what(set, set.Collectives.(*testset.CollectiveMatches))
		if got := ReadChain(set).Refused; got != c.why {
			t.Errorf("got %q, want %q", got, c.why)
		}
	}
}
