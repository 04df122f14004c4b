package assembly_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/otlpjson"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// build assembles the requests of a dump, and returns the diagnostics.
func build(t testing.TB, name string, dump []byte) (*request.Set, []trace.Diag) {
	t.Helper()
	var diags trace.Diags
	d := spantable.New(&diags)
	if err := otlpjson.Read(d, name, bytes.NewReader(dump)); err != nil {
		t.Fatal(err)
	}
	return assembly.Build(d).Set, diags.All()
}

// deployments are the configurations that the simulator can play.
var deployments = []struct {
	name   string
	change func(c *simulator.Config)
}{
	{"gateway", func(*simulator.Config) {}},
	{"no gateway", func(c *simulator.Config) { c.Mode = simulator.PDDirect }},
	{"unified TP2 DP2", func(c *simulator.Config) { c.Mode = simulator.Unified }},
	{"unified PP2 DP2", func(c *simulator.Config) {
		c.Mode, c.Unified, c.Level = simulator.Unified, simulator.Parallel{TP: 1, PP: 2, DP: 2}, 4
		c.Straggler.Factor = 0
	}},
	{"no skew", func(c *simulator.Config) { c.PrefillSkew, c.DecodeSkew = 0, 0 }},
}

// The simulated requests come back one for one, with their known times: exact where spans are, and
// within the 256 ns grid (and its recalibration) where they are rounded.
func TestRequestsOfSimulator(t *testing.T) {
	for _, dep := range deployments {
		t.Run(dep.name, func(t *testing.T) {
			for seed := range uint64(3) {
				config := simulator.DefaultConfig(seed)
				dep.change(&config)
				dump, truth := testinput.Simulate(t, config)
				set, diags := build(t, "sim", dump)
				for _, d := range diags {
					if d.Severity >= trace.DataLoss {
						t.Errorf("seed %d: %v", seed, d)
					}
				}
				compareRequests(t, set, truth)
			}
		})
	}
}

// tolerance covers SGLang's time grid at both ends of a few summed stages.
const tolerance = int64(2 * time.Microsecond)

func compareRequests(t *testing.T, set *request.Set, truth *simulator.Truth) {
	t.Helper()
	byID := map[string]*request.Request{}
	for i := range set.Requests {
		byID[set.Text(set.Requests[i].RID)] = &set.Requests[i]
	}
	if len(set.Requests) != len(truth.Requests) || len(byID) != len(truth.Requests) {
		t.Errorf("%d requests (%d ids), want %d", len(set.Requests), len(byID), len(truth.Requests))
	}
	for i := range truth.Requests {
		want := &truth.Requests[i]
		got := byID[want.FullID]
		if got == nil {
			got = byID[want.RID] // aborted before the server logged its full id
		}
		if got == nil {
			t.Errorf("request %s (%s) is missing", want.FullID, want.Outcome)
			continue
		}
		compareRequest(t, set, got, want)
	}
}

// statuses maps the simulator's outcomes to request statuses.
var statuses = map[string]request.Status{
	"finished": request.Finished, "client_canceled": request.Aborted, "client_gone": request.Aborted,
	"queue_full": request.Aborted, "transfer_failed": request.Failed,
}

func compareRequest(t *testing.T, set *request.Set, got *request.Request, want *simulator.RequestTruth) {
	t.Helper()
	if got.Status != statuses[want.Outcome] {
		t.Errorf("%s: status %v (%s), want %v", want.RID, got.Status, set.Syms.Name(got.Reason), statuses[want.Outcome])
	}
	if len(want.Halves) > 1 && (got.Flags&request.Unjoined != 0 || len(set.PartsOf(got)) != len(want.Halves)) {
		t.Errorf("%s: %d parts joined, want %d", want.RID, len(set.PartsOf(got)), len(want.Halves))
	}
	if set.Text(got.Room) != want.BootstrapRoom {
		t.Errorf("%s: room %q, want %q", want.RID, set.Text(got.Room), want.BootstrapRoom)
	}
	near := func(what string, got, want int64) {
		if got-want > tolerance || want-got > tolerance {
			t.Errorf("%s is %d ns, want %d", what, got, want)
		}
	}
	m := &got.Metrics
	answer := want.Halves[len(want.Halves)-1]
	if got.Gateway != request.None {
		near(want.RID+" E2E", m.E2E, want.E2ENs)
	} else {
		near(want.RID+" E2E", m.E2E, answer.EndNs-answer.StartNs)
	}
	if want.Outcome != "finished" {
		return
	}
	if m.Retractions != int64(want.Retractions) {
		t.Errorf("%s: %d retractions, want %d", want.RID, m.Retractions, want.Retractions)
	}
	near(want.RID+" TTFT", m.TTFT, answer.TTFTNs)
	near(want.RID+" queue", max(0, m.Queue), want.QueueNs)
	if m.CompletionTokens != int64(want.CompletionTokens) || m.PromptTokens != int64(want.PromptTokens) {
		t.Errorf("%s: %d+%d tokens, want %d+%d", want.RID, m.PromptTokens, m.CompletionTokens, want.PromptTokens, want.CompletionTokens)
	}
	if want.ITL != nil && want.Retractions == 0 {
		if m.ITL.N != want.ITL.N {
			t.Errorf("%s: %d token gaps, want %d", want.RID, m.ITL.N, want.ITL.N)
		}
		near(want.RID+" ITL p50", m.ITL.P50, want.ITL.P50)
		near(want.RID+" ITL p99", m.ITL.P99, want.ITL.P99)
	}
}
