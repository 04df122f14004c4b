package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
)

// weeksOf returns 12 days of runs on 16 GPUs. Some GPUs are slow every other day,
// and from the seventh day on, when a new driver came, steps take a tenth longer.
func weeksOf(slow ...int) (runs []*Run) {
	for day := range 12 {
		var found []int
		if day%2 == 0 {
			found = slow
		}
		r := runOn(day, 16, found...)
		r.GPUTime = 100e9
		for _, x := range r.seen {
			if len(x.kinds) > 0 {
				x.gpuTime = 2e9
				r.Losses = []Loss{{Kind: finding.Straggler, Findings: 1, GPU: 2e9}}
			}
		}
		median, driver := int64(20e6+1e4*int64(day%3)), "550"
		if day >= 6 {
			median, driver = median*11/10, "570"
		}
		r.versions = []version{{profile.Version{Of: "GPU driver", Is: driver}, 16}}
		runs = append(runs, r.withStep("node0", median))
	}
	return runs
}

// Every number in a finding is in exactly one row of the table that its evidence names.
func TestEvidenceIsInTables(t *testing.T) {
	f := New(weeksOf(5, 9))
	r := f.Look()
	tables := f.Document(&overview.List{Result: &r}).Tables
	if len(r.Findings) != 3 {
		t.Fatalf("%d findings: %+v", len(r.Findings), r.Findings)
	}
	ids := map[string]bool{}
	for _, x := range r.Findings {
		ids[x.ID()] = true
		for _, e := range x.Evidence {
			if e.Table == "" {
				t.Errorf("no table has %q", e.Text)
				continue
			}
			i := slices.IndexFunc(tables, func(r *table.Table) bool { return r.Name() == e.Table })
			var values []float64
			for row := range tables[i].Len() {
				if named(t, tables[i], row, e.Row) {
					values = append(values, number(t, tables[i], row, e.Column))
				}
			}
			if len(values) != 1 || math.Abs(values[0]-e.Value) > 1e-9 {
				t.Errorf("%s: rows %v of %s have %v, not %v", e.Text, e.Row, e.Table, values, e.Value)
			}
		}
	}
	if len(ids) != 3 {
		t.Errorf("findings share ids: %v", ids)
	}
}

// named reports whether keys identify a row.
func named(t *testing.T, r *table.Table, row int, keys []finding.Key) bool {
	for _, k := range keys {
		if r.Cell(row, column(t, r, k.Column)).Text != k.Text {
			return false
		}
	}
	return true
}

func column(t *testing.T, r *table.Table, key string) int {
	t.Helper()
	c := slices.IndexFunc(r.Columns, func(c table.Column) bool { return c.Key() == key })
	if c < 0 {
		t.Fatalf("%s has no column %s", r.Name(), key)
	}
	return c
}

func number(t *testing.T, r *table.Table, row int, key string) float64 {
	c := column(t, r, key)
	if cell := r.Cell(row, c); r.Columns[c].Unit == table.Number {
		return cell.Share
	}
	return float64(r.Cell(row, c).N)
}

// The loss at a GPU is a share of the recorded time: 6 times 2 of 1200 s. Steps that
// take a tenth longer cost an eleventh of their time from then on.
func TestCosts(t *testing.T) {
	f := New(weeksOf(5))
	cost := map[finding.Kind]float64{}
	for _, x := range f.Look().Findings {
		cost[x.Kind] = x.Cost
		if texts := finding.Sentences(x.Evidence); x.Kind == finding.Repeat && !slices.Contains(texts, "its host node0 was found in 6 of 12 runs") {
			t.Errorf("the host is no evidence: %q", texts)
		}
	}
	steps := 0.0
	for _, d := range f.Days[6:] {
		steps += float64(d.Total)
	}
	if want := 12e9 / 1200e9; math.Abs(cost[finding.Repeat]-want) > 1e-9 {
		t.Errorf("the GPU costs %g, want %g", cost[finding.Repeat], want)
	}
	if want := steps / 11 / 1200e9; math.Abs(cost[finding.Change]/want-1) > 0.01 {
		t.Errorf("the steps cost %g, want %g", cost[finding.Change], want)
	}
	want := "12; from 2026-03-01 to 2026-03-12; GPU 5 of node0 was late or slow in 6 of 12; decode steps take 10 % longer since 2026-03-07"
	if got := f.Words(); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// The number of runs that the message asks for is enough, and fewer are not.
func TestRunsNeeded(t *testing.T) {
	runs := []*Run{runOn(0, 8, 3)}
	for len(runs) < 20 {
		f := New(runs)
		_, check := f.Repeats()
		enough := f.Offenders[0].Sure != TooLittle
		if state := check.State() == finding.LookedAt; state != enough {
			t.Errorf("%d runs: %s, want %t", len(runs), check.String(), enough)
		}
		if enough {
			return
		}
		runs = append(runs, runOn(len(runs), 8, 3))
	}
	t.Error("20 runs are not enough")
}

// Days without a run have no losses, and other days the losses of all of their runs.
func TestDaily(t *testing.T) {
	runs := weeksOf(5)
	runs = slices.Concat(runs[:2], runs[5:])
	second := *runs[0]
	runs = slices.Insert(runs, 1, &second)
	d := New(runs).daily()
	var got []string
	for i := range d.Days {
		got = append(got, fmt.Sprintf("%s %g", dayOf(d.Days[i]), d.GPU[0][i]/1e9))
	}
	if want := "2026-03-01 4, 2026-03-02 0, 2026-03-03 NaN, 2026-03-04 NaN, 2026-03-05 NaN, 2026-03-06 0, 2026-03-07 2, "; !strings.HasPrefix(strings.Join(got, ", "), want) {
		t.Errorf("days lost %q, want %q", got, want)
	}
}
