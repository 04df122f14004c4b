package finders

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// reports returns the tables that reports print of the measurements.
func (m *Measured) reports() []*table.Table {
	stragglers := straggler.Find(straggler.Suspects{Stragglers: m.RankLoads.Stragglers()}).Report()
	return slices.Concat(m.Tail.Reports(), m.RankLoads.Reports(), []*table.Table{m.Changes.Report(), m.Limits.Report(), stragglers, m.Tail.Common.Report(true)})
}

// cellOf finds the cell that evidence refers to. The cell must be in exactly one row of one table.
func cellOf(t *testing.T, reports []*table.Table, e *finding.Evidence) (float64, bool) {
	t.Helper()
	i := slices.IndexFunc(reports, func(r *table.Table) bool { return r.Name() == e.Table })
	if i < 0 {
		t.Errorf("%s: no report has a table %s", e.Text, e.Table)
		return 0, false
	}
	r := reports[i]
	column := func(key string) int {
		c := slices.IndexFunc(r.Columns, func(c table.Column) bool { return c.Key() == key })
		if c < 0 {
			t.Fatalf("%s: %s has no column %s", e.Text, e.Table, key)
		}
		return c
	}
	found := -1
	for row := range r.Len() {
		if !slices.ContainsFunc(e.Row, func(k finding.Key) bool { return r.Cell(row, column(k.Column)).Text != k.Text }) {
			if found >= 0 {
				t.Errorf("%s: %v names several rows of %s", e.Text, e.Row, e.Table)
			}
			found = row
		}
	}
	if found < 0 {
		t.Errorf("%s: %v names no row of %s", e.Text, e.Row, e.Table)
		return 0, false
	}
	c := column(e.Column)
	cell := r.Cell(found, c)
	if r.Columns[c].Unit.Real() {
		return cell.Share, !cell.Unknown
	}
	return float64(cell.N), !cell.Unknown
}

// sharesAreParts checks that every share is between 0 and 1: in reports, and in the
// costs and metrics of findings.
func sharesAreParts(t *testing.T, seed uint64, reports []*table.Table, found []finding.Finding) {
	t.Helper()
	check := func(what string, share float64) {
		if !(share >= 0 && share <= 1) {
			t.Errorf("seed %d: %s is %v: no part of a whole", seed, what, share)
		}
	}
	for _, r := range reports {
		for c, column := range r.Columns {
			for row := range r.Len() {
				if cell := r.Cell(row, c); column.Unit == table.Share && !cell.Unknown {
					check(r.Name()+"."+column.Key(), cell.Share)
				}
			}
		}
	}
	for i := range found {
		f := &found[i]
		check("the cost of "+f.ID(), f.Cost)
		for _, v := range []float64{f.Metric.Before, f.Metric.After} {
			if f.Metric.Unit == table.Share && !math.IsNaN(v) {
				check("the metric of "+f.ID(), v)
			}
		}
	}
}

// Numbers in evidence are in the reports where the evidence says, and every share is between 0 and 1.
func TestEvidenceIsInReports(t *testing.T) {
	referred := map[string]int{}
	for seed := range uint64(3) {
		for _, plant := range []func(c *simulator.Config){
			func(c *simulator.Config) {
				c.Straggler = simulator.Straggler{TP: 1, Delay: 3 * time.Millisecond, Slow: simulator.SlowAtRandom, Share: 0.2}
			},
			func(c *simulator.Config) { c.Decode, c.Level = simulator.Parallel{TP: 2, PP: 2, DP: 2}, 4 },
		} {
			c := simulator.DefaultConfig(seed)
			plant(&c)
			s, _ := testset.Simulated(t, c)
			m := Measure(Inputs{Requests: s})
			reports := m.reports()
			ids := map[string]bool{}
			result := m.Look(All)
			sharesAreParts(t, seed, reports, result.Findings)
			for i := range result.Findings {
				f := &result.Findings[i]
				if ids[f.ID()] {
					t.Errorf("seed %d: two findings are called %s", seed, f.ID())
				}
				ids[f.ID()] = true
				for k := range f.Evidence {
					e := &f.Evidence[k]
					if e.Table == "" {
						continue
					}
					referred[e.Table]++
					if got, known := cellOf(t, reports, e); known && math.Abs(got-e.Value) > 1e-9*math.Abs(got) {
						t.Errorf("seed %d: %s: %v, and %s has %v", seed, e.Text, e.Value, e.Table, got)
					}
				}
			}
		}
	}
	for _, name := range []string{"changes", "stragglers", "ranks", "ranks.share", "delays", "transfers", "limits"} {
		if referred[name] == 0 {
			t.Errorf("no evidence refers to %s; to others %v", name, referred)
		}
	}
}
