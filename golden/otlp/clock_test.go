package otlp_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testinput"
)

// TestDriftIsInTheSpans compares a run with drifting clocks to the same run without drift.
func TestDriftIsInTheSpans(t *testing.T) {
	change := func(c *simulator.Config) { c.RanksPerHost, c.HostSkew = 1, 2*time.Millisecond }
	straight := testinput.ReadSpans(t, testinput.PlaySmall(t, 31, change))
	drifting := testinput.ReadSpans(t, testinput.PlaySmall(t, 31, func(c *simulator.Config) {
		change(c)
		c.PrefillDrift, c.DecodeDrift, c.HostDrift = 40, -25, 7
	}))
	if len(straight.Spans) != len(drifting.Spans) {
		t.Fatalf("%d spans, and %d with drift", len(straight.Spans), len(drifting.Spans))
	}
	for k, want := range straight.ByID {
		got := drifting.ByID[k]
		for _, at := range [][2]int64{{got.Start, want.Start}, {got.End, want.End}} {
			if a, b := drifting.Clock(got).Undo(at[0]), straight.Clock(want).Undo(at[1]); !near(a, b) {
				t.Fatalf("%s: %d, and %d with drift", want.Name, b, a)
			}
		}
	}
	var drifts []float64
	for _, h := range drifting.Run.Truth().Hosts {
		drifts = append(drifts, h.DriftPPM)
	}
	if want := []float64{0, 40, 47, -25, -18, -11, -4}; !slices.Equal(drifts, want) {
		t.Errorf("drifts of the hosts %v, want %v", drifts, want)
	}
}
