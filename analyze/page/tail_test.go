package page

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/golden/simulator"
)

// Bars add up to their total, to the ns.
func TestBarsOfTheTailAddUp(t *testing.T) {
	set := simulate(t, simulator.DefaultConfig(2))
	tail := tail.New(place.Of(set), tail.Options{})
	b := tailBuilder{tail: tail, set: set, colors: causeColors(tail)}
	for _, c := range tail.Comparisons {
		rows := b.breakdown(c).Body.(*chart.Bars).Rows
		for i, want := range []int64{c.Around.Mean, c.Slow.Mean, c.Slow.Mean - c.Around.Mean} {
			sum := 0.0
			for _, v := range rows[i].Values {
				sum += v
			}
			if int64(sum) != want {
				t.Errorf("%s, %s: parts are %d ns in all, want %d", c.Metric, rows[i].Name, int64(sum), want)
			}
		}
	}
}

// Every finished request is in one group, and the requests of a cause are as slow as claimed.
func TestScatterHasAllRequests(t *testing.T) {
	set := simulate(t, simulator.DefaultConfig(2))
	tail := tail.New(place.Of(set), tail.Options{})
	b := tailBuilder{tail: tail, set: set, colors: causeColors(tail)}
	c := tail.Comparisons[0]
	dots := b.scatter(c).Body.(*chart.Scatter)
	all := 0
	for i, g := range dots.Groups {
		if len(g.Dots) != g.All {
			t.Errorf("%s: %d of %d are drawn", g.Name, len(g.Dots), g.All)
		}
		all += g.All
		for _, d := range g.Dots {
			if slow := d.Dur > c.Around.To; slow != (i > 0) {
				t.Errorf("%s takes %d ns and is in group %s", d.Name, d.Dur, g.Name)
			}
		}
	}
	if all != c.N {
		t.Errorf("%d requests are drawn, want %d", all, c.N)
	}
	// The color of a request agrees with the table of the slowest.
	for _, s := range c.Slowest {
		for _, g := range dots.Groups {
			for _, d := range g.Dots {
				if d.Name == set.Text(set.Requests[s.Request].RID) && d.Time == set.Requests[s.Request].Start && g.Name != s.Cause.String() {
					t.Errorf("%s is drawn as %s, and listed as %s", d.Name, g.Name, s.Cause)
				}
			}
		}
	}
}

func TestThin(t *testing.T) {
	for _, n := range []int{0, 1, maxDots, maxDots + 1, 25_000, 1_000_000} {
		points := make([]tail.Point, n)
		for i := range points {
			points[i].Value = int64(i * 7919 % 1_000_003)
		}
		drawn, count := thin(points, maxDots), 0
		slowest, quarter := int64(-1), [4]int{}
		for i, p := range points {
			if drawn[i] {
				count++
				quarter[4*i/n]++
			} else {
				slowest = max(slowest, p.Value)
			}
		}
		if want := min(n, maxDots); count != want {
			t.Errorf("%d of %d are drawn, want %d", count, n, want)
		}
		faster := 0
		for _, p := range points {
			if p.Value > slowest {
				faster++
			}
		}
		if n > maxDots && faster < maxDots/2 {
			t.Errorf("of %d, only the slowest %d are all drawn", n, faster)
		}
		for _, q := range quarter {
			if n > 10*maxDots && (q < maxDots/5 || q > maxDots*3/10) {
				t.Errorf("of %d, quarters have %v", n, quarter)
			}
		}
	}
}
