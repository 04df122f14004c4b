package diff_test

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/diff"
	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// A difference is planted in the second of two simulated captures, and must be found in certain rows.
type difference struct {
	name  string
	modes []simulator.Mode          // in rotation
	both  func(c *simulator.Config) // changes both captures; nil changes nothing
	alter func(c *simulator.Config)
	// load and one row of each of rows must change by a factor between from and to.
	// If both are empty, nothing may change.
	load     string
	rows     []string
	rank     string // part of the row's rank name; "" compares all ranks together
	from, to float64
	least    int // successes out of 100 pairs
}

var differences = []difference{
	{name: "none", modes: testset.AllModes, alter: func(*simulator.Config) {}, least: 95},
	{name: "none, but half as long", modes: testset.AllModes, alter: func(c *simulator.Config) { c.Requests /= 2 }, least: 95},
	{name: "none, and queues", modes: testset.AllModes, both: func(c *simulator.Config) { c.Rate *= 1.7 }, alter: func(*simulator.Config) {}, least: 95},
	{name: "straggler", modes: testset.AllModes, alter: func(c *simulator.Config) { c.Straggler = simulator.Straggler{TP: 1, Factor: 1.2} },
		rows: []string{"decode_loop"}, rank: "DP0", from: 1.03, to: 1.3, least: 95},
	{name: "straggler, ranks together", modes: testset.AllModes, alter: func(c *simulator.Config) { c.Straggler = simulator.Straggler{TP: 1, Factor: 1.2} },
		rows: []string{"decode_loop"}, from: 1.03, to: 1.3, least: 95},
	{name: "slow transfers", modes: testset.DisaggregatedModes, alter: func(c *simulator.Config) { c.SlowTransfers = 0.4 },
		rows: []string{"prefill_transfer_kv_cache", "decode_transferred"}, from: 1.5, to: 200, least: 95},
	{name: "twice the requests", modes: testset.AllModes, alter: func(c *simulator.Config) { c.Rate *= 2 },
		load: "requests per second", from: 1.4, to: 2.8, least: 95},
	{name: "longer answers", modes: testset.AllModes, alter: func(c *simulator.Config) { c.Output.Median *= 2 },
		load: "output tokens per request", rows: []string{"decode_forward"}, from: 1.3, to: 3, least: 95},
}

// A change that is planted in one of two captures is found in the right rows. Two
// captures of the same deployment with other requests do not differ.
func TestRateOfDiffs(t *testing.T) {
	quiet := map[simulator.Config]*diff.Collected{} // before the change; most differences share them
	for _, d := range differences {
		t.Run(d.name, func(t *testing.T) {
			seeds, right := testset.FirstSeeds(t, 3), 0
			for _, seed := range seeds {
				config := simulator.DefaultConfig(seed)
				testset.Quiet(&config)
				config.Mode = d.modes[seed%uint64(len(d.modes))]
				if d.both != nil {
					d.both(&config)
				}
				before := quiet[config]
				if before == nil {
					before = collected(t, config)
				}
				if d.both == nil {
					quiet[config] = before
				}
				config.Seed += 1000
				d.alter(&config)
				diff := diff.Compare(before, collected(t, config), diff.Options{ByRank: d.rank != ""})
				if d.found(diff) {
					right++
				} else {
					t.Logf("seed %d, %v: %s", seed, config.Mode, diff.SideReport().Title)
				}
			}
			testset.Rate(t, "diff: "+d.name, right, len(seeds), d.least)
		})
	}
}

// collected plays a simulation and collects its capture.
func collected(t *testing.T, config simulator.Config) *diff.Collected {
	t.Helper()
	set, _ := testset.Simulated(t, config)
	d := diff.NewCollected(0)
	d.Add(diff.Capture{Requests: set})
	return d
}

// noneSignificant matches titles of captures without a significant difference: they say that the
// difference may be chance, or that there is not enough data.
var noneSignificant = regexp.MustCompile(`(?i)^([^;]*\(.*(may be chance|not enough data to rule out chance|too few to tell)\); )?no (other )?significant difference`)

func (d *difference) found(got *diff.Diff) bool {
	if d.load == "" && d.rows == nil {
		// Differences that users would notice are in the title even then, marked as "may be chance".
		return significant(got) == 0 && noneSignificant.MatchString(got.SideReport().Title)
	}
	within := func(c *compare.Change) bool { return c.Sure != "" && c.Change.Ratio > d.from && c.Change.Ratio < d.to }
	for i := range got.Load {
		if l := &got.Load[i]; l.Name == d.load && !within(&l.Change) {
			return false
		}
	}
	return d.rows == nil || slices.ContainsFunc(got.Rows, func(r diff.Row) bool {
		return slices.Contains(d.rows, r.Name) && strings.Contains(r.Rank, d.rank) && (within(&r.Mean) || within(&r.Total) || within(&r.P50))
	})
}

// significant returns the number of changes that are reported as significant.
func significant(d *diff.Diff) int {
	n := 0
	count := func(c *compare.Change) {
		if c.Sure != "" {
			n++
		}
	}
	for i := range d.Load {
		count(&d.Load[i].Change)
	}
	for i := range d.Rows {
		r := &d.Rows[i]
		for _, c := range []*compare.Change{&r.P50, &r.P99, &r.Mean, &r.Total} {
			count(c)
		}
	}
	return n
}

// A capture does not differ from itself.
func TestDiffOfOneCapture(t *testing.T) {
	config := simulator.DefaultConfig(5)
	for _, byRank := range []bool{false, true} {
		d := diff.Compare(collected(t, config), collected(t, config), diff.Options{ByRank: byRank})
		if len(d.Rows) < 20 || d.SideReport().Title != "No difference" {
			t.Errorf("%d rows: %s", len(d.Rows), d.SideReport().Title)
		}
		for i := range d.Rows {
			r := &d.Rows[i]
			if r.Before != r.After || r.Moved() != 0 || !(r.P50.Change.P == 1 || math.IsNaN(r.P50.Change.P)) {
				t.Errorf("%+v", r)
			}
		}
	}
}
