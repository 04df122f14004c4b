package overview

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// A summary is an incident with one planted fault in an otherwise healthy
// deployment, and the kind of finding that must come first.
type summary struct {
	name  string
	modes []simulator.Mode
	plant func(c *simulator.Config)
	kind  finding.Kind
	is    func(f *finding.Finding) bool
}

var summaries = []summary{
	{"straggler", testset.AllModes, func(c *simulator.Config) {
		c.Straggler = simulator.Straggler{TP: 1, Factor: 1.2}
	}, finding.Straggler, slowRank},
	{"straggler from the onset on", testset.AllModes, func(c *simulator.Config) {
		c.Incident.Onset = 0.5
		c.Straggler = simulator.Straggler{TP: 1, Factor: 1.2, AtOnset: true}
	}, finding.Straggler, func(f *finding.Finding) bool { return slowRank(f) && f.Since != 0 }},
	{"straggler in some steps", testset.AllModes, func(c *simulator.Config) {
		c.Straggler = simulator.Straggler{TP: 1, Delay: 3 * time.Millisecond, Slow: simulator.SlowAtRandom, Share: 0.15}
	}, finding.Straggler, slowRank},
	{"burst on one DP rank", testset.AllModes, func(c *simulator.Config) {
		c.Incident = simulator.DefaultConfig(0).Incident
	}, finding.Load, func(f *finding.Finding) bool { return f.Since != 0 }},
	{"slow transfers", testset.DisaggregatedModes, func(c *simulator.Config) {
		c.SlowTransfers = 0.03
	}, finding.Transfer, nil},
	{"slow transfers from the onset on", testset.DisaggregatedModes, func(c *simulator.Config) {
		c.Incident.Onset = 0.5
		c.SlowTransfers, c.SlowTransfersAtOnset = 0.4, true
	}, finding.Transfer, func(f *finding.Finding) bool { return f.Since != 0 }},
	{"cache lost from the onset on", testset.AllModes, func(c *simulator.Config) {
		c.Incident.Onset = 0.5
		c.CachedShare, c.CacheLostAtOnset = 0.4, true
	}, finding.Change, isAbout("share of cached tokens")},
	{"drafts rejected from the onset on", testset.AllModes, func(c *simulator.Config) {
		c.Incident.Onset = 0.5
		c.AcceptedDrafts, c.DraftsLostAtOnset = 1.5, true
	}, finding.Change, isAbout("tokens per decode step")},
	{"one tenant held back", testset.AllModes, func(c *simulator.Config) {
		c.Tenants, c.TenantDelay = 12, 300*time.Millisecond
	}, finding.Common, isAbout("http.request.header.x-tenant-id tenant-00")},
	{"too few places in the batch", testset.AllModes, func(c *simulator.Config) {
		c.MaxRunning, c.MaxQueued, c.Rate, c.KVTokens = 4, 100, 10, 1<<16
		c.Prompt.Median, c.Output.Median = 100, 32
	}, finding.Limit, nil},
	{"transfers that share a link", testset.DisaggregatedModes, func(c *simulator.Config) {
		c.KVTokens, c.LinkTokens = 1<<16, 3000
	}, finding.Limit, nil},
	{"failed transfers", testset.DisaggregatedModes, func(c *simulator.Config) {
		c.FailedTransfers = 0.03
	}, finding.Errors, nil},
}

// slowRank reports whether f is about the planted slow rank.
func slowRank(f *finding.Finding) bool { return f.At.Rank.TP == 1 && f.At.Rank.DP == 0 }

// isAbout returns a test for findings with a subkind.
func isAbout(subkind string) func(f *finding.Finding) bool {
	return func(f *finding.Finding) bool { return f.Subkind == subkind }
}

// overviewFindings returns the findings about the requests of a simulated run.
func overviewFindings(t *testing.T, c simulator.Config) []finding.Finding {
	s, _ := testset.Simulated(t, c)
	return New(Input{Requests: s}).Findings
}

// planted caches the findings about runs, which two tests share.
var planted sync.Map

// findings returns the findings about a run with a seed, and the run's configuration.
func (p *summary) findings(t *testing.T, seed uint64) ([]finding.Finding, simulator.Config) {
	c := testset.Calm(seed)
	p.plant(&c)
	c.Mode = p.modes[seed%uint64(len(p.modes))]
	type key struct {
		name string
		seed uint64
	}
	find, _ := planted.LoadOrStore(key{p.name, seed}, sync.OnceValue(func() []finding.Finding { return overviewFindings(t, c) }))
	return find.(func() []finding.Finding)(), c
}

// The planted fault is the first finding in at least 95 of 100 runs.
func TestRateOfFirstFindings(t *testing.T) {
	seeds := testset.FirstSeeds(t, 3)
	for _, p := range summaries {
		t.Run(p.name, func(t *testing.T) {
			var mu sync.Mutex
			var missed []string
			testset.EachSeed(seeds, func(seed uint64) {
				found, _ := p.findings(t, seed)
				if len(found) > 0 && found[0].Kind == p.kind && (p.is == nil || p.is(&found[0])) {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				missed = append(missed, fmt.Sprintf("%d %v", seed, kindsOf(found)))
			})
			if len(missed) > 0 {
				slices.Sort(missed)
				t.Logf("not the first in seeds %q", missed)
			}
			testset.Rate(t, p.name+" is the first finding", len(seeds)-len(missed), len(seeds), 95)
		})
	}
}

func kindsOf(found []finding.Finding) (kinds []string) {
	for i := range found {
		kinds = append(kinds, string(found[i].Kind)+" "+found[i].At.String())
	}
	return kinds
}

// The three findings that the demo shows cover all of its planted faults: a slow
// rank, a burst that one DP rank gets, and transfers that are slow or fail.
func TestRateOfFindingsOfTheDemo(t *testing.T) {
	seeds := testset.Seeds(t)
	var mu sync.Mutex
	right := 0
	testset.EachSeed(seeds, func(seed uint64) {
		c := simulator.DefaultConfig(seed)
		c.Mode = testset.AllModes[seed%uint64(len(testset.AllModes))]
		found := overviewFindings(t, c)
		found = found[:min(Top, len(found))]
		has := func(kind finding.Kind) bool {
			return slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Kind == kind })
		}
		mu.Lock()
		defer mu.Unlock()
		if has(finding.Straggler) && has(finding.Load) {
			right++
		} else {
			t.Logf("seed %d: %v", seed, kindsOf(found))
		}
	})
	testset.Rate(t, "the demo's straggler and its load are among the findings shown", right, len(seeds), 95)
}

// Nothing stands out in at least 95 of 100 runs without planted faults.
func TestRateOfNothingStandsOut(t *testing.T) {
	seeds := testset.Seeds(t)
	var mu sync.Mutex
	alarms := 0
	testset.EachSeed(seeds, func(seed uint64) {
		found := overviewFindings(t, testset.Deployment(seed, testset.Calm(seed)))
		if len(found) == 0 {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		alarms++
		for i := range found {
			t.Logf("seed %d: %s: %s", seed, found[i].Kind, found[i].Text)
		}
	})
	testset.Rate(t, "nothing stands out where nothing is wrong", len(seeds)-alarms, len(seeds), 95)
}
