package chart

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/trace"
)

// Every scale runs from 0 to 1, grows in between, has its ticks inside, and labels at least two of them.
func TestScales(t *testing.T) {
	const minute = trace.Time(60_000_000_000)
	for name, c := range map[string]struct {
		scale     scale
		low, high float64
	}{
		"linear":          {newLinear(0, 37, table.Number, 4), 0, 40},
		"linear below 0":  {newLinear(-3, 37, table.Number, 4), -10, 40},
		"linear of 0":     {newLinear(0, 0, table.Number, 4), 0, 1},
		"log of a decade": {newLogarithmic(1200, 9000, table.Duration, 8), 1000, 10_000},
		"log of many":     {newLogarithmic(3, 4e10, table.Duration, 8), 2, 5e10},
		"log of one":      {newLogarithmic(1000, 1000, table.Duration, 8), 1000, 2000},
		"percentiles":     {percentileScale{}, 1, 99.9},
		"clock":           {clock{7 * minute, 19 * minute, 9}, float64(7 * minute), float64(19 * minute)},
		"clock of 2 us":   {clock{7 * minute, 7*minute + 2000, 9}, float64(7 * minute), float64(7*minute + 2000)},
		"clock of all":    {clock{0, 1<<63 - 1024, 9}, 0, 1<<63 - 1024},
		"clock of a year": {clock{0, 365 * 24 * 60 * minute, 9}, 0, float64(365 * 24 * 60 * minute)},
	} {
		if from, to := c.scale.at(c.low), c.scale.at(c.high); math.Abs(from) > 1e-9 || math.Abs(to-1) > 1e-9 {
			t.Errorf("%s: is from %g to %g", name, from, to)
		}
		last, labels := math.Inf(-1), 0
		ticks := c.scale.ticks()
		for _, tick := range ticks {
			at := c.scale.at(tick.value)
			if at <= last || at < -1e-9 || at > 1+1e-9 {
				t.Errorf("%s: tick %v is at %g, after %g", name, tick, at, last)
			}
			last = at
			if tick.label != "" {
				labels++
			}
		}
		if labels < 2 || labels > 14 {
			t.Errorf("%s: %d labels: %v", name, labels, ticks)
		}
	}
}

func TestTickLabels(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{InUnit(table.Duration, 0), "0"},
		{InUnit(table.Duration, 1_500_000), "1.5ms"},
		{InUnit(table.Share, 0.125), "12.5 %"},
		{InUnit(table.Number, 61085.4), "61085"},
		{InUnit(table.Number, 1.2345), "1.23"},
		{InUnit(table.Number, 0.0123), "0.012"},
		{InUnit(table.Number, 20), "20"},
		{InUnit(table.Number, math.NaN()), "-"},
		{timeOfDay(1_787_000_000_123_456_789, 1_000_000_000), "20:53:20"},
		{timeOfDay(1_787_000_000_123_456_789, 100_000_000), "20:53:20.123"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// Large numbers are abbreviated with a letter, as an axis fits seven digits.
func TestLargeTickLabels(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 150: "150", 500_000: "500000", 1.5e6: "1.5M", -2e9: "-2G", 4e12: "4T"} {
		if got := tickLabel(table.Number, v); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
}
