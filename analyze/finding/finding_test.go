package finding

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

func late() Finding {
	at := place.Location{Scope: place.OneRank, Role: request.Decode, Host: "a", Rank: trace.Rank{TP: 1, PP: -1, DP: 0, EP: -1, Global: -1}}
	return Finding{Kind: Straggler, At: at, Text: "late by 3 ms", Metric: Metric{Name: "lateness", After: 3e6}, Cost: 0.1, P: Chance(0.01)}
}

// The ID of a finding only depends on what stays the same in another run or version,
// and not on measured values or wording.
func TestID(t *testing.T) {
	f := late()
	want := f.ID()
	for name, change := range map[string]func(f *Finding){
		"text":   func(f *Finding) { f.Text = "late by 3.01 ms" },
		"value":  func(f *Finding) { f.Metric.After = 3.01e6 },
		"cost":   func(f *Finding) { f.Cost = 0.11 },
		"chance": func(f *Finding) { f.P = Chance(0.02) },
		"since":  func(f *Finding) { f.Since = 7 },
	} {
		g := late()
		if change(&g); g.ID() != want {
			t.Errorf("with another %s the id is %s, not %s", name, g.ID(), want)
		}
	}
	for name, change := range map[string]func(f *Finding){
		"kind":    func(f *Finding) { f.Kind = Slower },
		"subkind": func(f *Finding) { f.Subkind = "prefill" },
		"host":    func(f *Finding) { f.At.Host = "b" },
		"server":  func(f *Finding) { f.At.Server = 2 },
		"rank":    func(f *Finding) { f.At.Rank.TP = 2 },
		"role":    func(f *Finding) { f.At.Role = request.Prefill },
		"metric":  func(f *Finding) { f.Metric.Name = "step" },
	} {
		g := late()
		if change(&g); g.ID() == want {
			t.Errorf("with another %s the id is the same", name)
		}
	}
}

// The confidence in a finding follows from its p-value, if there is one.
func TestConfidence(t *testing.T) {
	for _, test := range []struct {
		p         Probability
		otherwise Confidence
		want      Confidence
	}{
		{Chance(1e-9), Likely, Certain},
		{Chance(0), Likely, Certain},
		{Chance(0.02), Certain, Likely},
		{Chance(math.NaN()), Certain, Certain},
		{Probability{}, Likely, Likely},
	} {
		if got := test.p.Confidence(test.otherwise); got != test.want {
			t.Errorf("%+v, else %s: %s, want %s", test.p, test.otherwise, got, test.want)
		}
	}
}

func TestRemark(t *testing.T) {
	for _, test := range []struct {
		f    Finding
		want string
	}{
		{Finding{Confidence: Certain, Cost: 0.42, CostBasis: RequestTime}, "certain; accounts for 42 % of total request time"},
		{Finding{Confidence: Likely, Cost: 0.001, CostBasis: GPUTime}, "likely; accounts for less than 1 % of total GPU time"},
		{Finding{Confidence: Certain, Cost: 0.03, CostBasis: Requests}, "certain; affects 3 % of requests"},
		{Finding{Confidence: Certain, CostBasis: Requests}, "certain; affects no requests"},
		{Finding{Confidence: Likely, CostBasis: RequestTime}, "likely; no known cost"},
	} {
		if got := test.f.Remark(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// A check distinguishes data that was judged, too little data, and no data.
func TestCheck(t *testing.T) {
	for _, test := range []struct {
		check Check
		state State
		want  string
	}{
		{Check{What: "failures", Of: "request", N: 1200, Needed: 2}, LookedAt, "failures (1,200 requests)"},
		{Check{What: "failures", Of: "request", N: 1, Needed: 2}, TooLittle, "Not judged: failures: 1 request, 2 needed"},
		{Check{What: "KV transfers", Of: "KV transfer", Needed: 20, Reason: "no request has one"}, NotApplicable, "Not applicable: KV transfers: no request has one"},
	} {
		if got := test.check.String(); got != test.want || test.check.State() != test.state {
			t.Errorf("%s: %q, want %s: %q", test.check.State(), got, test.state, test.want)
		}
	}
}
