package diff_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/diff"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// If the cache is lost in the middle of AFTER, that capture mixes two states. The comparison says
// so, since when, and from when on to compare; from then on, prefills certainly take longer.
func TestWithin(t *testing.T) {
	for _, seed := range testset.FirstSeeds(t, 2) {
		config := simulator.DefaultConfig(seed)
		testset.Quiet(&config)
		config.Requests, config.CachedShare = 700, 0.45
		config.Prompt.Median, config.Output.Median = 2*config.Prompt.Median, 4 // the cache saves much of the time of a request
		before := collected(t, config)
		config.Seed += 1000
		config.CacheLostAtOnset = true
		set, _ := testset.Simulated(t, config)
		after := diff.NewCollected(0)
		after.Add(diff.Capture{Requests: set})
		d := diff.Compare(before, after, diff.Options{})
		within := d.After.Within
		if len(d.Before.Within) > 0 || len(within) == 0 {
			t.Errorf("seed %d: %v, and %v", seed, d.Before.Within, within)
			continue
		}
		lost, slack := set.Requests[config.Requests/2].Start, trace.Time(time.Second)
		if config.Incident.Onset != 0.5 || within[0].First > lost+slack || within[0].Last < lost-slack {
			t.Errorf("seed %d: %v, but the cache was lost at %v", seed, within[0], lost)
		}
		report := d.SideReport()
		if !strings.Contains(report.Title, "during AFTER, share of cached tokens fell from ") || !strings.Contains(strings.Join(report.Footnotes, "\n"), "--after-from ") {
			t.Errorf("seed %d: %s\n%v", seed, report.Title, report.Footnotes)
		}
		if f := d.Findings(); len(f) == 0 || f[0].Since != within[0].Time {
			t.Errorf("seed %d: %+v", seed, f)
		}
		again := diff.NewCollected(0)
		again.Add(diff.Capture{Requests: set})
		if d := diff.Compare(after, again, diff.Options{}); len(d.Before.Within)+len(d.After.Within) > 0 {
			t.Errorf("seed %d: both lost it: %s", seed, d.SideReport().Title)
		}
		then := diff.NewCollected(0)
		then.Add(diff.Capture{Requests: set, From: within[0].Last})
		if d := diff.Compare(before, then, diff.Options{}); len(d.After.Within) > 0 || !d.Row(diff.Request, "prefill").Changed() {
			t.Errorf("seed %d, from then on: %s", seed, d.SideReport().Title)
		}
	}
}

// A queue that builds up near a server's limit, while arrivals and step times stay the same, is no change within a capture.
func TestQueueIsNoChangeWithin(t *testing.T) {
	config := simulator.DefaultConfig(107)
	testset.Quiet(&config)
	config.Mode = simulator.Unified
	config.Rate *= 1.7
	before := collected(t, config)
	config.Seed += 1000
	if d := diff.Compare(before, collected(t, config), diff.Options{}); len(d.Before.Within)+len(d.After.Within) > 0 {
		t.Error(d.SideReport().Title)
	}
}
