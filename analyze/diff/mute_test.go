package diff_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/diff"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// stragglerDiff compares a healthy run with one in which a rank of decode DP0 is slow.
func stragglerDiff(t *testing.T, byRank bool) *diff.Diff {
	t.Helper()
	config := simulator.DefaultConfig(3)
	testset.Quiet(&config)
	before := collected(t, config)
	config.Seed += 1000
	config.Straggler = simulator.Straggler{TP: 1, Factor: 1.4}
	return diff.Compare(before, collected(t, config), diff.Options{ByRank: byRank})
}

// placesOf returns the places of findings by the first word of their texts.
func placesOf(d *diff.Diff) map[string]string {
	at := map[string]string{}
	for _, f := range d.Findings() {
		name, _, _ := strings.Cut(f.Text, " ")
		at[name] = f.At.String()
	}
	return at
}

// A change in a row of one rank is at that rank; if ranks are taken together, it is
// at their role. What users notice is everywhere.
func TestFindingsHavePlaces(t *testing.T) {
	pooled, byRank := placesOf(stragglerDiff(t, false)), placesOf(stragglerDiff(t, true))
	if pooled["itl"] != "all" || pooled["decode_loop"] != "decode" {
		t.Errorf("ranks together: %v", pooled)
	}
	if !strings.HasPrefix(byRank["decode_loop"], "decode DP0 TP") {
		t.Errorf("by rank: %v", byRank)
	}
}

// The cost of a change is its share of E2E. A change per token has no cost, since the number of tokens is unknown.
func TestCostsOfChanges(t *testing.T) {
	config := simulator.DefaultConfig(3)
	testset.Quiet(&config)
	before := collected(t, config)
	config.Rate *= 2.5
	d := diff.Compare(before, collected(t, config), diff.Options{})
	e2e := d.Rows[slices.IndexFunc(d.Rows, func(r diff.Row) bool { return r.Kind == diff.Request && r.Name == "e2e" })]
	whole := float64(max(e2e.Before.Mean, e2e.After.Mean)) / 10
	costs := map[string]float64{}
	for _, f := range d.Findings() {
		costs[strings.TrimSpace(f.Subkind)] = f.Cost
		if change := math.Abs(f.Metric.After-f.Metric.Before) / whole; strings.HasPrefix(f.Subkind, "request ttft") && (f.Cost < change || f.Cost > 2*change) {
			t.Errorf("TTFT costs %g, and changed by %g of E2E", f.Cost, change)
		}
	}
	if ttft, e2e := costs["request ttft"], costs["request e2e"]; ttft == 0 || e2e < ttft || costs["request itl"] != 0 || costs["request tpot"] != 0 {
		t.Errorf("changes cost %v", costs)
	}
}

// A muted change has no finding, and the verdict only counts it. Other changes stay.
func TestMutedChanges(t *testing.T) {
	for mute, gone := range map[string]string{"change@decode": "decode_loop", "change@prefill": "", "change@all": "itl"} {
		d := stragglerDiff(t, false)
		all := placesOf(d)
		m, err := finders.ParseMute(mute)
		if err != nil {
			t.Fatal(err)
		}
		d.Mute(func(f *finding.Finding) bool { return m.Covers(f) })
		left, verdict := placesOf(d), d.SideReport().Title
		for name := range all {
			_, there := left[name]
			covered := mute == "change@"+all[name] || strings.HasPrefix("change@"+all[name], mute+" ") // a rank of the muted role
			if there == covered || covered && strings.Contains(verdict, name+" ") {
				t.Errorf("%s: of %v, %v are left: %s", mute, all, left, verdict)
			}
		}
		if _, there := all[gone]; gone != "" && !there {
			t.Errorf("%s: there is no change of %s to mute: %v", mute, gone, all)
		}
		if counted := strings.Contains(verdict, " muted"); counted != (gone != "") {
			t.Errorf("%s: %s", mute, verdict)
		}
	}
}
