package lifecycle

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// A DP rank that hangs is found, with its time and the requests in its batches.
func TestRateOfHungRanks(t *testing.T) {
	seeds := testset.Seeds(t)
	right := testset.CountSeeds(seeds, func(seed uint64) bool {
		c := hung(seed)
		s, truth := testset.Simulated(t, c)
		found := Find(s)
		h := truth.Hang
		if !isHung(found, h.DPRank, h.Role) {
			t.Logf("seed %d: found %+v, planted %+v", seed, found.Events, h)
			return false
		}
		x := &found.hangs[0]
		skew := int64(c.DecodeSkew.Abs()) + 1_000_000
		if d := int64(x.since) - h.LastNs; max(d, -d) > skew || len(x.inFlight) < h.Running {
			t.Logf("seed %d: %s; planted %+v", seed, found.hungAlone(x).Text, h)
			return false
		}
		return true
	})
	testset.Rate(t, "a rank that hangs", right, len(seeds), 99)
}

// hung configures a deployment in which a DP rank hangs halfway, while it has requests.
func hung(seed uint64) simulator.Config {
	c := testset.Calm(seed)
	c.Mode, c.Rate = testset.AllModes[seed%3], 12
	c.Output.Median, c.Output.Max = 40, 200
	c.Incident.Onset = 0.5
	c.Hang = simulator.Hang{AtOnset: true, DP: int(seed % 2)}
	return c
}

// A DP rank that hangs while it is idle is found by requests that arrive later. A
// rank that gets no more requests is not considered silent.
func TestRateOfIdleHungRanks(t *testing.T) {
	seeds := testset.Seeds(t)
	right := testset.CountSeeds(seeds, func(seed uint64) bool {
		c := hung(seed)
		c.Requests, c.Rate, c.Output.Median = 120, 2, 5
		s, truth := testset.Simulated(t, c)
		found := Find(s)
		h := truth.Hang
		if !isHung(found, h.DPRank, h.Role) || h.Running == 0 && len(found.hangs[0].requests()) < minWaiting {
			t.Logf("seed %d: found %+v, planted %+v", seed, found.Events, h)
			return false
		}
		c.Hang, c.Incident = simulator.Hang{}, simulator.Incident{Onset: 0.5, DPRank: int(seed % 2), DPShare: 1}
		s, _ = testset.Simulated(t, c)
		if found := Find(s); len(found.hangs)+len(found.deaths) > 0 {
			t.Logf("seed %d: a rank drained: %+v", seed, found.Events)
			return false
		}
		return true
	})
	testset.Rate(t, "a rank that hangs while it is idle, and none that drained", right, len(seeds), 98)
}

// isHung reports whether one DP rank hangs, and nothing else suffers.
func isHung(l *Lives, dp int, role string) bool {
	if len(l.hangs) != 1 || len(l.deaths) > 0 {
		return false
	}
	x := &l.hangs[0]
	return int(x.team.at.Rank.DP) == dp && x.life.server.role.String() == role
}

// No rank hangs or dies in a dump whose end is missing, as from a running server, nor in one that lost spans.
func TestRateOfNoHangs(t *testing.T) {
	seeds := testset.Seeds(t)
	for _, by := range testset.Losses {
		right := testset.CountSeeds(seeds, func(seed uint64) bool {
			const share = 0.05
			dump, _ := testinput.Simulate(t, testset.Deployment(seed, testset.Calm(seed)))
			dump = dump[:bytes.LastIndexByte(dump[:len(dump)/3*2], '\n')+1]
			for _, d := range [][]byte{dump, testset.Lose(dump, by, share, seed)} {
				if found := Find(testset.BuildSet(t, "running", bytes.NewReader(d))); len(found.Events) > 0 {
					t.Logf("seed %d: %+v", seed, found.Events)
					return false
				}
			}
			return true
		})
		testset.Rate(t, "nobody hangs or dies in a running server, or with spans lost "+by.String(), right, len(seeds), 98)
	}
}

// Servers of a role that hang at the same time are one finding; one that hangs later is another.
func TestServersThatHangTogether(t *testing.T) {
	s, _ := testset.Simulated(t, hung(1))
	found := Find(s)
	if len(found.hangs) != 1 {
		t.Fatalf("%d hangs", len(found.hangs))
	}
	for _, later := range []trace.Time{1e9, 60e9} {
		e := found.hangs[0]
		e.since, e.by = e.since+later, e.by+later
		found.hangs = append(found.hangs, e)
	}
	list := found.hung()
	if len(list) != 2 || !strings.Contains(list[0].Text, " have all hung since ") || strings.Contains(list[1].Text, " all hung") {
		t.Errorf("%+v", list)
	}
}
