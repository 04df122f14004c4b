package serverlimit

import (
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// heldIn returns which servers of a set hold requests back.
func heldIn(s *request.Set) []finding.Finding {
	peers := place.Of(s)
	list := cause.NewAttributor(peers).All()
	found, _ := Find(peers.Ranks).HeldBack(cause.NewCosts(s, list, cause.UsualOf(list)))
	return found
}

// A scheduler that holds back some of its requests is found, with its start; one that is only busy is not.
func TestHeldBack(t *testing.T) {
	for _, want := range []struct{ scenario, text string }{
		{"held_back", "unified ("},
		{"held_back_all", "all 3 unified servers have held 9"},
		{"burst_overload", ""}, {"one_slower_always", ""}, {"slow_tokenizer", ""}, {"healthy_pd", ""},
	} {
		c := cluster.Find(want.scenario).Config(2)
		run, err := cluster.Play(c)
		if err != nil {
			t.Fatal(err)
		}
		found := heldIn(testset.OfCluster(t, run))
		if want.text == "" {
			if len(found) > 0 {
				t.Errorf("%s: %s", want.scenario, found[0].Text)
			}
			continue
		}
		if len(found) != 1 || found[0].Subkind != Held || !strings.HasPrefix(found[0].Text, want.text) {
			t.Errorf("%s: %v", want.scenario, found)
			continue
		}
		fault := &c.Faults[0]
		if f, off := &found[0], found[0].Since-trace.Time(run.Start+int64(fault.At)); max(off, -off) > trace.Time(8*time.Second) || f.Metric.After < fault.Size*1e9 || f.Metric.After > 2*fault.Size*1e9 {
			t.Errorf("%s: %.0f ns since %v after it was planted: %s", want.scenario, f.Metric.After, time.Duration(off), f.Text)
		}
		if name := run.Name(max(0, fault.Server)); fault.Server >= 0 && !strings.Contains(found[0].Text, name) {
			t.Errorf("%q does not name %s", found[0].Text, name)
		}
	}
}

// Requests that wait for a limit of their server are not held back, whatever the limit.
func TestLimitsHoldNothingBack(t *testing.T) {
	for _, p := range plants {
		for _, mode := range p.modes {
			set, _ := testset.Simulated(t, planting(p.plant, mode))
			for _, f := range heldIn(set) {
				t.Errorf("%s, %v: %s", p.name, mode, f.Text)
			}
		}
	}
}

// planting returns a calm deployment with a shortage.
func planting(plant func(*simulator.Config), mode simulator.Mode) simulator.Config {
	c := testset.Calm(3)
	c.Mode = mode
	plant(&c)
	return c
}

// A small request that waits behind a large one, for which there is no room, is not held back. The same request is, if the large one is
// not there.
func TestBehindALargeRequest(t *testing.T) {
	for _, large := range []bool{true, false} {
		s, v := &request.Set{}, &server{location: place.Location{Scope: place.OneRank, Role: request.Unified}}
		add := func(of state, from, to trace.Time, tokens int64) {
			s.Requests = append(s.Requests, request.Request{Status: request.Finished, Metrics: request.Metrics{PromptTokens: tokens}})
			v.intervals[of] = append(v.intervals[of], stateInterval{time: request.Interval{From: from, To: to}, request: int32(len(s.Requests) - 1), tokens: tokens})
		}
		for range 10 {
			add(running, 0, 100, 1000) // the most that it ever has
		}
		for range 5 {
			add(running, 1000, 2000, 1000)
		}
		if large {
			add(queued, 1000, 2000, 8000)
		}
		add(queued, 1100, 1900, 100)
		d := v.holding(s)
		small := d.visits[len(d.visits)-1]
		if want := map[bool]int64{true: 0, false: 800}[large]; small.ns() != want {
			t.Errorf("large %v: held back for %d", large, small.ns())
		}
	}
}
