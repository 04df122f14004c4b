package overview

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// Lost spans only cause the finding about them: all others are found in the same run without loss.
func TestRateOfFindingsOfLostSpans(t *testing.T) {
	seeds, shares := testset.FirstSeeds(t, 2), []float64{0.005, 0.02, 0.05, 0.2}
	name := func(by testset.Loss, share float64) string { return fmt.Sprintf("%.1f %% lost %s", 100*share, by) }
	var mu sync.Mutex
	alarms := map[string]int{}
	testset.EachSeed(seeds, func(seed uint64) {
		whole, _ := testinput.Simulate(t, testset.Deployment(seed, testset.Calm(seed)))
		known := findingsOf(t, whole)
		for _, by := range testset.Losses {
			for _, share := range shares {
				found := findingsOf(t, testset.Lose(whole, by, share, seed))
				found = slices.DeleteFunc(found, func(f finding.Finding) bool {
					return f.Kind == finding.Loss || slices.ContainsFunc(known, func(k finding.Finding) bool { return k.ID() == f.ID() })
				})
				mu.Lock()
				for i := range found {
					t.Logf("%s, seed %d: %s: %s", name(by, share), seed, found[i].Kind, found[i].Text)
				}
				alarms[name(by, share)] += min(1, len(found))
				mu.Unlock()
			}
		}
	})
	for _, by := range testset.Losses {
		for _, share := range shares {
			testset.Rate(t, name(by, share)+": nothing else is found", len(seeds)-alarms[name(by, share)], len(seeds), 98)
		}
	}
}

// findingsOf returns the findings about the requests of a dump.
func findingsOf(t *testing.T, dump []byte) []finding.Finding {
	return New(Input{Requests: testset.BuildSet(t, "lost", bytes.NewReader(dump))}).Findings
}
