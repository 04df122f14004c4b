package golden

import (
	"slices"
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	c := clock{skew: -1000, drift: 20, since: 5e9}
	for _, test := range []struct{ at, want int64 }{{5e9, 5e9 - 1000}, {6e9, 6e9 - 1000 + 20_000}, {4e9, 4e9 - 1000 - 20_000}} {
		if got := c.at(test.at); got != test.want || c.undo(got) != test.at {
			t.Errorf("at %d it shows %d, want %d; that is %d", test.at, got, test.want, c.undo(got))
		}
	}
	if got := c.span(5e9, 6e9); got != 1e9+20_000 {
		t.Errorf("a second takes %d ns", got)
	}
}

// TestDriftIsInTheSpans compares a run whose clocks drift with the same one
// whose clocks do not.
func TestDriftIsInTheSpans(t *testing.T) {
	change := func(c *Config) { c.RanksPerHost, c.HostSkew = 1, 2*time.Millisecond }
	straight := readBack(t, simulateSmall(t, 31, change))
	drifting := readBack(t, simulateSmall(t, 31, func(c *Config) {
		change(c)
		c.PrefillDrift, c.DecodeDrift, c.HostDrift = 40, -25, 7
	}))
	if len(straight.spans) != len(drifting.spans) {
		t.Fatalf("%d spans, and %d with drift", len(straight.spans), len(drifting.spans))
	}
	for k, want := range straight.byID {
		got := drifting.byID[k]
		for _, at := range [][2]int64{{got.Start, want.Start}, {got.End, want.End}} {
			if a, b := drifting.clock(got).undo(at[0]), straight.clock(want).undo(at[1]); !near(a, b) {
				t.Fatalf("%s: %d, and %d with drift", want.Name, b, a)
			}
		}
	}
	var drifts []float64
	for _, h := range drifting.run.Truth().Hosts {
		drifts = append(drifts, h.DriftPPM)
	}
	if want := []float64{0, 40, 47, -25, -18, -11, -4}; !slices.Equal(drifts, want) {
		t.Errorf("drifts of the hosts %v, want %v", drifts, want)
	}
}
