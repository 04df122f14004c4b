package diff

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/diff/setup"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// onset is the start of the first request of the incident.
func onset(s *request.Set, c *simulator.Config) trace.Time {
	return s.Requests[int(c.Incident.Onset*float64(len(s.Requests)))].Start
}

// A balancer that begins to prefer one rank is found if one capture is split at that
// time: the shares of the ranks change, and requests take longer to their first token.
func TestDiffAcrossAnOnset(t *testing.T) {
	config := simulator.DefaultConfig(1)
	set, _ := testset.Simulated(t, config)
	at := onset(set, &config)
	before, after := collect(Capture{Requests: set, To: at}), collect(Capture{Requests: set, From: at})
	d := Compare(before, after, Options{})
	if d.Before.Requests+d.After.Requests != int64(len(set.Requests)) || d.Before.Requests != int64(config.Incident.Onset*float64(len(set.Requests))) {
		t.Errorf("%d and %d of %d requests", d.Before.Requests, d.After.Requests, len(set.Requests))
	}
	shares := 0
	for _, l := range d.Load {
		if strings.HasPrefix(l.Name, "share of requests on ") && l.Change.Matters() {
			shares++
			want := config.Incident.DPShare
			if !strings.Contains(l.Name, "DP1") {
				want = 1 - want
			}
			if math.Abs(l.After-want) > 0.1 || math.Abs(l.Before-0.5) > 0.1 {
				t.Errorf("%s: %.2f to %.2f, planted is 0.5 to %.2f", l.Name, l.Before, l.After, want)
			}
		}
	}
	if shares != 2 {
		t.Errorf("%d shares changed: %s", shares, d.verdict)
	}
	if ttft := find(t, d, "ttft"); !ttft.Changed() || !strings.Contains(d.verdict, "ttft ") {
		t.Errorf("%+v: %s", ttft, d.verdict)
	}
}

// If one rank is compared with four, totals are per request and rank: four ranks that each take as
// long as the one did are not four times as slow. The verdict begins with the difference in setup.
func TestDiffOfOtherLayouts(t *testing.T) {
	capture := func(tp int) *Collected {
		config := simulator.DefaultConfig(3)
		testset.Quiet(&config)
		config.Mode, config.Unified = simulator.Unified, simulator.Parallel{TP: tp, PP: 1, DP: 1}
		set, _ := testset.Simulated(t, config)
		return collect(Capture{Requests: set})
	}
	d := Compare(capture(1), capture(4), Options{})
	row := find(t, d, "decode_loop")
	if row.After.N < 3*row.Before.N || row.Total.Change.Ratio > 1.3 || row.Total.Change.Ratio < 0.7 {
		t.Errorf("%+v", row)
	}
	if i := slices.IndexFunc(d.Setup, func(s setup.Setting) bool { return s.Name == "layout" }); i < 0 || d.Setup[i].Before != "unified TP1 on 1 host" || d.Setup[i].After != "unified TP4 on 1 host" {
		t.Errorf("setup: %+v", d.Setup)
	}
	if !strings.HasPrefix(d.verdict, "Setup differs: layout unified TP1 on 1 host -> unified TP4 on 1 host") {
		t.Error(d.verdict)
	}
	for _, l := range d.Load {
		if strings.Contains(l.Name, "TP3") {
			t.Errorf("a rank that one of them lacks has no share to compare: %+v", l)
		}
	}
}

// An empty window is reported differently from one with little data.
func TestEmptyWindow(t *testing.T) {
	set, _ := testset.Simulated(t, simulator.DefaultConfig(1))
	_, end, _ := set.Bounds()
	if c := collect(Capture{Requests: set, From: end + 1}); c.size() != 0 || c.side.Requests != 0 {
		t.Errorf("%+v", c.side)
	}
}

// If requests take equally long on both sides, a shift of load within a capture is not worth mentioning, but a
// server that became slower and stays so is.
func TestPaceWithin(t *testing.T) {
	d := &Diff{}
	for _, m := range []change.Metric{change.ArrivalsChanged, change.PaceChanged, change.MedianChanged} {
		d.After.Within = append(d.After.Within, Within{Text: m.String(), What: Changing{Metric: m}, Cause: m != change.MedianChanged, Stays: m == change.PaceChanged})
	}
	d.keepWithin()
	if list := d.After.Within; len(list) != 1 || list[0].Text != "pace" {
		t.Errorf("%+v", list)
	}
}
