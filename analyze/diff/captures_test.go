package diff

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// collect collects what a comparison needs from one capture.
func collect(c Capture) *Collected {
	d := NewCollected(0)
	d.Add(c)
	return d
}

// day returns the requests of a healthy deployment on one of several days.
func day(t *testing.T, seed uint64, alter func(*simulator.Config)) *request.Set {
	t.Helper()
	config := testset.Calm(seed)
	config.Mode, config.Requests = simulator.Unified, 80
	alter(&config)
	set, _ := testset.Simulated(t, config)
	return set
}

// calm collects several days as one side.
func calm(t *testing.T, seeds []uint64, alter func(*simulator.Config)) *Collected {
	t.Helper()
	side := NewCollected(len(seeds))
	for _, seed := range seeds {
		if !side.Add(Capture{Label: "day", Requests: day(t, seed, alter)}) {
			t.Fatal("nothing to compare")
		}
	}
	return side
}

// Each day counts as one sample: differences as large as those between days are no
// change, but larger ones are. Counts and percentiles cover all days of a side.
func TestSeveralCaptures(t *testing.T) {
	same := func(*simulator.Config) {}
	longer := func(c *simulator.Config) { c.Output.Median *= 3 }
	days := []uint64{1, 2, 3}
	healthy := Compare(calm(t, days, same), calm(t, []uint64{4, 5, 6}, same), Options{})
	for i := range healthy.Rows {
		if r := &healthy.Rows[i]; r.Changed() {
			t.Errorf("%v %s changed between healthy days: %+v", r.Kind, r.Name, r.Mean)
		}
	}
	if healthy.Before.Requests != 240 || healthy.Before.RequestPieces != 3 || healthy.Before.Label != "day, day, day" {
		t.Errorf("%+v", healthy.Before)
	}
	worse := Compare(calm(t, days, same), calm(t, []uint64{4, 5, 6}, longer), Options{})
	g := worse.gaugeRows(Request, "e2e", "mean")
	if c := g.Above(1.2); c.P > 0.01 || g.Shortage(c, 0.01) != "" {
		t.Errorf("e2e %s, %+v", g.Words(), c)
	}
	one := Compare(collect(Capture{Requests: day(t, 1, same)}), collect(Capture{Requests: day(t, 4, same)}), Options{})
	row := func(d *Diff) *Row {
		for i := range d.Rows {
			if r := &d.Rows[i]; r.Kind == Request && r.Name == "e2e" {
				return r
			}
		}
		t.Fatal("no e2e")
		return nil
	}
	single := Compare(calm(t, []uint64{1}, same), calm(t, []uint64{4}, same), Options{})
	if got, want := row(single), row(one); got.Before != want.Before || got.After != want.After || !math.IsNaN(got.Mean.Change.P) {
		t.Errorf("%+v, want %+v; two captures do not show how much days differ: p = %g", got.Before, want.Before, got.Mean.Change.P)
	}
}
