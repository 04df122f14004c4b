package finders

import (
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/consequence"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/hardware"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// Requests show since when, recordings who, metrics why, and logs the same as requests: together that is one
// finding, with the cost that requests show. Whatever does not match in size or time remains a finding of its own.
func TestKindsOfFilesTellOfOneCause(t *testing.T) {
	const second = trace.Time(1e9)
	const since, recorded = 60 * second, 90 * second
	claim := func(int, []int64) {}
	pace := finding.Finding{Kind: finding.Change, Subkind: change.Pace, Scope: finding.AtPlace, At: place.Location{Scope: place.WholeRole, Role: request.Unified}, Since: since, Within: second / 10,
		Text: "tokens take longer; TTFT rose", Brief: "tokens take longer", Cost: 0.2, CostBasis: finding.RequestTime, Claim: claim,
		Metric: finding.Metric{Name: "decode time per token", Unit: table.Duration, Before: 10e6, After: 15e6}} // a third of the new step time is extra
	logs := finding.Finding{Kind: finding.Slower, Scope: finding.AtPlace, At: rankAt(request.Unified, "", 0, -1), Since: since - 3*second, Text: "a token takes longer", Brief: "logs say so", Cost: 0.1, CostBasis: finding.ServerTime,
		Metric: finding.Metric{Name: slow.TimePerToken, Unit: table.Duration, Before: 10e6, After: 15e6}}
	late := finding.Finding{Kind: finding.Straggler, Scope: finding.AtPlace, At: place.Named("TP2"), Rank: "TP2", Text: "TP2 is last", Brief: "TP2 is late", Lost: 0.3, Cost: 0.25, CostBasis: finding.GPUTime}
	short := finding.Finding{Kind: finding.Host, Subkind: hardware.HostSubkind + "CPU", Scope: finding.AtPlace, At: place.Device("node1"), Since: since - second, Within: 5 * second, Text: "no CPU", Cost: 0.4, CostBasis: finding.HostTime}
	short.At.Host = "node1"
	of := func(f finding.Finding, with func(*finding.Finding)) finding.Finding { with(&f); return f }
	m := &Measured{Of: Inputs{Series: &series.Set{}}, GPUs: &gpu.GPUs{GPUs: []gpu.GPU{{Rank: "TP2", First: recorded, Last: recorded + second}}}}
	for name, c := range map[string]struct {
		found []finding.Finding
		want  string // texts, and their order
	}{
		"all of them":                  {[]finding.Finding{short, late, pace, logs}, "no CPU; TP2 is late; tokens take longer"},
		"without metrics":              {[]finding.Finding{late, pace, logs}, "TP2 is last; tokens take longer"},
		"late by a tenth of that":      {[]finding.Finding{of(late, func(f *finding.Finding) { f.Lost = 0.03 }), pace}, "TP2 is last | tokens take longer; TTFT rose"},
		"late far more than that":      {[]finding.Finding{of(late, func(f *finding.Finding) { f.Lost = 0.8 }), pace}, "TP2 is last | tokens take longer; TTFT rose"},
		"recorded before":              {[]finding.Finding{late, of(pace, func(f *finding.Finding) { f.Since = recorded + second/2 })}, "TP2 is last | tokens take longer; TTFT rose"},
		"logs of another time":         {[]finding.Finding{pace, of(logs, func(f *finding.Finding) { f.Since = 200 * second })}, "tokens take longer; TTFT rose | a token takes longer"},
		"a host that is short earlier": {[]finding.Finding{of(short, func(f *finding.Finding) { f.Since = 20 * second }), pace}, "no CPU | tokens take longer; TTFT rose"},
	} {
		var texts []string
		got := finding.Merge(c.found, slices.Concat(consequence.First(nil), m.recorded(), m.onHosts()))
		for i := range got {
			texts = append(texts, got[i].Text)
		}
		if text := strings.Join(texts, " | "); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
		if f := &got[0]; len(got) == 1 && (f.Cost != 0.2 || f.CostBasis != finding.RequestTime || max(f.Since-since, since-f.Since) > second) {
			t.Errorf("%s: it costs %v of %s, since %v", name, f.Cost, f.CostBasis, f.Since)
		}
	}
	// A server on that host is certainly slower because of it. If the server's host is unknown, only the time matches: likely.
	short.Confidence = finding.Certain
	for host, want := range map[string]finding.Confidence{"node1": finding.Certain, "": finding.Likely, "10.0.0.7": finding.Likely} {
		got := finding.Merge([]finding.Finding{short, of(pace, func(f *finding.Finding) { f.At.Host = host })}, m.onHosts())
		if len(got) != 1 || got[0].Confidence != want {
			t.Errorf("on %q: %d findings, %s, want one that is %s", host, len(got), got[0].Confidence, want)
		}
	}
	// A host that metrics know by its name is a different one.
	m.Of.Series.Servers = []series.Server{{Host: "node1"}, {Host: "node2"}}
	elsewhere := of(logs, func(f *finding.Finding) { f.At.Host = "node2" })
	if got := finding.Merge([]finding.Finding{short, elsewhere}, m.onHosts()); len(got) != 2 {
		t.Errorf("of another host: %+v", got)
	}
}

// Between steps, a device without requests on its server has nothing to do.
func TestIdleWithoutRequests(t *testing.T) {
	const ms = trace.Time(1e6)
	for name, c := range map[string]struct {
		from, to trace.Time // of a prefill; free is the time without requests, ns
		free     trace.Time
	}{
		"half of the time": {400 * ms, 900 * ms, 500 * ms}, "all of it": {-100 * ms, 2000 * ms, 0}, "before": {-100 * ms, -50 * ms, 0},
	} {
		set := &request.Set{Procs: []request.Proc{{Role: request.Prefill, Host: "a", Schedules: true, Rank: trace.Rank{TP: 0, PP: -1, DP: -1, EP: -1, Global: -1}}},
			Rows: []request.Row{{Start: c.from, End: c.to, Kind: request.Stage, Phase: request.PrefillPhase}, {Start: 0, End: 1000 * ms, Kind: request.Stage, Phase: request.TransferPhase}}}
		set.Names = naming.New(set.Places(), nil)
		m := &Measured{Of: Inputs{Requests: set}}
		if free := m.withoutRequests(&gpu.GPU{Rank: "prefill TP0", First: 0, Last: 1000 * ms}, m.tracedWork(0, 1000*ms)); free != int64(c.free) {
			t.Errorf("%s: nothing to do for %d ns, want %d", name, free, c.free)
		}
	}
}
