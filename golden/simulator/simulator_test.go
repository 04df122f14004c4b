package simulator_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// TestDefaultShowsEverything checks that the demo contains the effects that it promises.
func TestDefaultShowsEverything(t *testing.T) {
	for _, test := range []struct {
		mode     simulator.Mode
		outcomes []string
		events   []string
	}{
		{simulator.PDGateway, []string{"finished", "client_canceled", "client_gone", "transfer_failed"}, []string{"schedule", "retract"}},
		{simulator.Unified, []string{"finished", "client_canceled", "client_gone", "queue_full"}, []string{"schedule", "retract"}},
	} {
		truth := testinput.Play(t, 1, func(c *simulator.Config) { c.Mode = test.mode }).Truth()
		for _, o := range test.outcomes {
			if testinput.CountOf(t, truth.Counts.Outcomes, o) == 0 {
				t.Errorf("%v: nobody ended as %s", test.mode, o)
			}
		}
		for _, e := range test.events {
			if testinput.CountOf(t, truth.Counts.Events, e) == 0 {
				t.Errorf("%v: no %s event", test.mode, e)
			}
		}
		if n := truth.Counts.Spans; n < 10_000 || n > 20_000 {
			t.Errorf("%v: %d spans, want ten to twenty thousand", test.mode, n)
		}
		if len(truth.Slow) == 0 || testinput.CountOf(t, truth.Counts.Slices, "chunked_prefill") == 0 {
			t.Errorf("%v: no slow requests or no chunks", test.mode)
		}
	}
}

func TestEveryRequestEndsOnce(t *testing.T) {
	for _, test := range testinput.Configs {
		t.Run(test.Name, func(t *testing.T) {
			r := testinput.PlaySmall(t, 7, test.Change)
			total := 0
			for _, row := range r.Truth().Counts.Outcomes {
				total += row.Count
			}
			if total != r.Config.Requests || len(r.Requests) != total {
				t.Errorf("%d requests in, %d out", r.Config.Requests, total)
			}
			for i, q := range r.Requests {
				if err := simulator.CheckRequest(r, q); err != nil {
					t.Errorf("request %d, %s: %v", i, q.Outcome, err)
				}
			}
		})
	}
}

func TestRanksRunInLockstep(t *testing.T) {
	for _, test := range testinput.Configs {
		t.Run(test.Name, func(t *testing.T) {
			if err := simulator.CheckLockstep(testinput.PlaySmall(t, 5, test.Change)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(*simulator.Config)
	}{
		{"unknown mode", func(c *simulator.Config) { c.Mode = 9 }},
		{"Level", func(c *simulator.Config) { c.Level = -1 }},
		{"Start", func(c *simulator.Config) { c.Start = time.Time{} }},
		{"Requests", func(c *simulator.Config) { c.Requests = 0 }},
		{"Rate", func(c *simulator.Config) { c.Rate = math.NaN() }},
		{"Prompt", func(c *simulator.Config) { c.Prompt.Sigma = math.Inf(1) }},
		{"Output", func(c *simulator.Config) { c.Output.Max = 0 }},
		{"ChunkTokens", func(c *simulator.Config) { c.ChunkTokens = 0 }},
		{"KVTokens", func(c *simulator.Config) { c.KVTokens = 100 }},
		{"BurstFactor", func(c *simulator.Config) { c.Incident.BurstFactor = 0 }},
		{"DPShare", func(c *simulator.Config) { c.Incident.DPShare = 1.5 }},
		{"DPRank", func(c *simulator.Config) { c.Incident.DPRank = 2 }},
		{"straggler TP2-PP0-DP0 is not a rank", func(c *simulator.Config) { c.Straggler.TP = 2 }},
		{"RanksPerHost", func(c *simulator.Config) { c.RanksPerHost = -1 }},
		{"HostSkew", func(c *simulator.Config) { c.HostSkew = time.Hour }},
		{"DecodeDrift", func(c *simulator.Config) { c.DecodeDrift = math.NaN() }},
		{"Patience", func(c *simulator.Config) { c.Patience = 0 }},
		{"an instance of TP0", func(c *simulator.Config) { c.Decode.TP = 0 }},
		{"an instance of TP64", func(c *simulator.Config) { c.Decode = simulator.Parallel{TP: 64, PP: 64, DP: 64} }},
	} {
		c := simulator.DefaultConfig(1)
		test.change(&c)
		if _, err := simulator.Play(c); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want %q", err, test.want)
		}
	}
}
