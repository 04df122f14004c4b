package serverlimit

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// foundIn returns what is found in a scenario, and its run.
func foundIn(t *testing.T, c cluster.Config) ([]finding.Finding, *cluster.Run) {
	t.Helper()
	run, err := cluster.Play(c)
	if err != nil {
		t.Fatal(err)
	}
	var dump bytes.Buffer
	if err := cluster.Write(&dump, run); err != nil {
		t.Fatal(err)
	}
	s := testset.BuildSet(t, "cluster", &dump)
	list := cause.NewAttributor(place.Of(s)).All()
	found, check := FindFront(s).Findings(cause.NewCosts(s, list, cause.UsualOf(list)))
	if check.State() != finding.LookedAt {
		t.Errorf("%+v", check)
	}
	return found, run
}

// The process that keeps requests is found, since when, and no other one is.
func TestWhoKeepsRequests(t *testing.T) {
	for _, want := range []struct{ scenario, subkind, text string }{
		{"gateway_holds", Gateway, "the gateway holds"},
		{"slow_tokenizer", Tokenizer, "the tokenizer of"},
		{"late_answers", Answering, "unified ("},
		{"slow_readers", Returning, ""},
	} {
		for _, seed := range []uint64{1, 2} {
			c := cluster.Find(want.scenario).Config(seed)
			found, run := foundIn(t, c)
			if len(found) != 1 || found[0].Subkind != want.subkind || !strings.HasPrefix(found[0].Text, want.text) {
				t.Errorf("%s %d: %v", want.scenario, seed, found)
				continue
			}
			const slack = trace.Time(10 * time.Second)
			fault := &c.Faults[0]
			onset := trace.Time(run.Start + int64(fault.At))
			if f := &found[0]; f.Since < onset-slack || f.Since > onset+slack {
				t.Errorf("%s %d: since %v, planted at %v", want.scenario, seed, f.Since, onset)
			}
			if name := run.Name(max(0, fault.Server)); (want.subkind == Tokenizer || want.subkind == Answering) && !strings.Contains(found[0].Text, name) {
				t.Errorf("%q does not name %s", found[0].Text, name)
			}
		}
	}
}

// Nobody keeps requests where nothing is wrong, whatever else servers do.
func TestNobodyKeepsRequests(t *testing.T) {
	for _, scenario := range []string{"mixed_models", "small_burst", "clock_step", "deploy_8"} {
		if found, _ := foundIn(t, cluster.Find(scenario).Config(1)); len(found) > 0 {
			t.Errorf("%s: %s", scenario, found[0].Text)
		}
	}
}
