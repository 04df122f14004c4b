package collective_test

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/golden/torch"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// A late rank is found in logs of NCCL Inspector, whether they record the times of
// collectives or only durations. The start of its lateness is reported as precisely
// as it is known, and healthy ranks are not reported.
func TestRateOfLateRankInInspector(t *testing.T) {
	for _, x := range []struct {
		name string
		of   torch.InspectorConfig
	}{
		{"with times", torch.InspectorConfig{Verbose: true, Interval: 500}},
		{"between writes", torch.InspectorConfig{Interval: 200_000}},
		{"written at the end", torch.InspectorConfig{}},
	} {
		right, silent := 0, 0
		seeds := testset.FirstSeeds(t, 1)
		for _, seed := range seeds {
			c := x.of
			c.Seed, c.Ranks, c.Hosts, c.Collectives = seed, 8, 2, 1600
			c.Late, c.Lateness, c.Since = int(seed%8), 150, 500
			if inspected(t, c) {
				right++
			}
			if c.Late = -1; inspected(t, c) {
				silent++
			}
		}
		testset.Rate(t, "late rank in logs of NCCL Inspector, "+x.name, right, len(seeds), 95)
		testset.Rate(t, "healthy ranks in logs of NCCL Inspector, "+x.name, silent, len(seeds), 95)
	}
}

// inspected reports whether the logs of a run lead to the right result.
func inspected(t *testing.T, c torch.InspectorConfig) bool {
	t.Helper()
	dir := t.TempDir()
	truth, err := torch.WriteInspector(dir, c)
	if err != nil {
		t.Fatal(err)
	}
	found, _ := collective.Measure(readTraces(t, dir), 0, 0).Findings(nil)
	if c.Late < 0 {
		if len(found) > 0 {
			t.Logf("seed %d: %s", c.Seed, found[0].Text)
		}
		return len(found) == 0
	}
	if len(found) != 1 || found[0].At.Rank.Global != int32(c.Late) {
		t.Logf("seed %d, rank %d: %+v", c.Seed, c.Late, found)
		return false
	}
	begun := 1000 * truth.Begun
	switch off := int64(found[0].Since) - begun; {
	case c.Interval == 0 && !c.Verbose:
		return found[0].Since == 0
	case off > 100e6+1000*c.Interval || off < -100e6-1000*c.Interval:
		t.Logf("seed %d: since %d ns after that", c.Seed, off)
		return false
	}
	return true
}
