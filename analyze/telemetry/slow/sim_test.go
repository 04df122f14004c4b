package slow_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/failed"
	"github.com/sgtrace/sgtrace/analyze/telemetry/held"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/envelope"
	"github.com/sgtrace/sgtrace/format/serverlog"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// find reads the logs of all servers in a run, and asks all finders.
func find(t *testing.T, run *cluster.Run, l cluster.Logging) (list []finding.Finding) {
	t.Helper()
	diags := &trace.Diags{}
	set := series.New(trace.NewSymbols(), diags)
	opt := &format.Options{Syms: set.Syms, Diags: diags, Series: set, Records: spantable.NewRequestRecords(set), Flight: recorder.NewInFlight(set.Syms)}
	for i := range run.Servers {
		var text bytes.Buffer
		if err := cluster.WriteLog(&text, run, i, l); err != nil {
			t.Fatal(err)
		}
		in := &format.Input{Name: run.Name(i) + ".log", Open: func() (io.ReadCloser, error) {
			r, err := envelope.Open("log", &text)
			return io.NopCloser(r), err
		}}
		if _, err := serverlog.Format.Index(in, opt); err != nil {
			t.Fatal(err)
		}
	}
	set.Finish(series.Known{})
	m := telemetry.Measure(set, telemetry.Options{})
	for kind, of := range map[finding.Kind]func(*telemetry.Logged) ([]finding.Finding, finding.Check){
		finding.Imbalance: slow.Imbalances, finding.Limit: slow.Limits, finding.Memory: held.Retractions, finding.Slower: slow.Slower,
		finding.Transfer: held.PiledUp, finding.Load: slow.Changes, finding.Change: held.Pauses, finding.Tail: slow.Worsened, finding.Errors: failed.Failures, finding.Lifecycle: failed.Lives, finding.Host: failed.Endings,
	} {
		found, _ := of(m)
		for _, f := range found {
			f.Kind = kind
			list = append(list, f)
			if grid := kind == finding.Limit || kind == finding.Load || kind == finding.Imbalance; grid && (f.Since < m.From || max(f.Since, f.Until) > m.To) {
				t.Errorf("from %d to %d, but logs are from %d to %d: %s", f.Since, f.Until, m.From, m.To, f.Text)
			}
		}
	}
	return list
}

// Logs alone, with a line every 40 steps, reveal the planted fault. Those of healthy runs have no findings.
func TestRateOfFaultsInLogs(t *testing.T) {
	for _, test := range []struct {
		scenario string
		kinds    string // one of these must be found; "" means that nothing must be
	}{
		{"healthy", ""}, {"healthy_pd", ""}, {"daily_curve", ""}, {"rolling_restart", ""}, {"mixed_models", ""},
		{"burst_overload", "load limit"},
	} {
		t.Run(test.scenario, func(t *testing.T) {
			seeds := testset.FirstSeeds(t, 2)
			right := 0
			for _, seed := range seeds {
				run, err := cluster.Play(cluster.Find(test.scenario).Config(seed))
				if err != nil {
					t.Fatal(err)
				}
				found := find(t, run, cluster.Logging{Layout: cluster.Layouts[int(seed)%len(cluster.Layouts)], Stats: true})
				ok := test.kinds == "" && len(found) == 0
				for _, f := range found {
					ok = ok || test.kinds != "" && strings.Contains(test.kinds, string(f.Kind))
				}
				if ok {
					right++
					continue
				}
				for _, f := range found {
					t.Logf("seed %d: %s: %s", seed, f.Kind, f.Text)
				}
				if len(found) == 0 {
					t.Logf("seed %d: nothing", seed)
				}
			}
			testset.Rate(t, "faults in logs: "+test.scenario, right, len(seeds), 95)
		})
	}
}
