package finders

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/gpuloss"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// If the profiler reports that it lost events, no finding about GPU time is certain, and its
// evidence says why. That does not affect findings from requests, and other messages affect nothing.
func TestLostEventsLowerConfidence(t *testing.T) {
	idle := Finder{Needs: Profiles, Confidence: finding.Certain, CostOf: finding.GPUTime}
	late := Finder{Needs: Requests, Confidence: finding.Certain, CostOf: finding.RequestTime}
	for _, test := range []struct {
		message *trace.Message
		finder  Finder
		want    finding.Confidence
		reasons int
	}{
		{trace.NsysError, idle, finding.Likely, 1},
		{trace.NsysTableDamaged, idle, finding.Likely, 1},
		{trace.TraceTruncated, idle, finding.Likely, 1},
		{trace.NsysWarning, idle, finding.Certain, 0},
		{trace.NsysError, late, finding.Certain, 0},
		{nil, idle, finding.Certain, 0},
		{trace.NsysContextDevice, idle, finding.Certain, 0},
		{trace.NsysNoDevice, idle, finding.Likely, 1},
	} {
		m := Measured{}
		if test.message != nil {
			m.Of.Diags = &trace.Diags{}
			m.Of.Diags.Add(trace.Diag{Message: test.message})
		}
		f := finding.Finding{Cost: 0.5, Evidence: []finding.Evidence{finding.Sentence("idle by reason"), finding.Sentence("longest gap")}}
		test.finder.complete(&f)
		m.doubt(&f)
		reasons := 0
		for _, e := range f.Evidence[:2] {
			if strings.Contains(e.Text, "missing work looks like idle time") || strings.Contains(e.Text, "the GPU of some work is not known") {
				reasons++
			}
		}
		if f.Confidence != test.want || reasons != test.reasons {
			t.Errorf("%v, %s: %s with %d reasons, want %s with %d", test.message, test.finder.CostOf, f.Confidence, reasons, test.want, test.reasons)
		}
	}
}

// Lost events of one run say nothing about another.
func TestLostEventsOfOneRun(t *testing.T) {
	part := func(file string, from trace.Time) *gpu.GPUs {
		return &gpu.GPUs{GPUs: []gpu.GPU{{Rank: "rank of " + file}}, Files: []string{file}, Runs: []request.Interval{{From: from, To: from + 1}}}
	}
	for place, want := range map[string]finding.Confidence{
		"a.sqlite": finding.Likely, "a.sqlite:KERNELS": finding.Likely, "b.sqlite": finding.Certain, "a.sqlite2": finding.Certain, "": finding.Certain,
	} {
		m := Measured{GPUs: &gpu.GPUs{Parts: []*gpu.GPUs{part("a.sqlite", 10), part("b.sqlite", 20)}}}
		m.Of.Diags = &trace.Diags{}
		m.Of.Diags.Add(trace.Diag{Message: trace.NsysTableDamaged, Pos: trace.Pos{File: place}})
		for f, want := range map[*finding.Finding]finding.Confidence{
			{Since: 10, Until: 11}:     want, // of the first run
			{Since: 10, Until: 15}:     finding.Likely,
			{Rank: "rank of a.sqlite"}: want,
			{Rank: "another"}:          finding.Likely,
			{}:                         finding.Likely,
		} {
			f.CostBasis, f.Confidence = finding.GPUTime, finding.Certain
			if m.doubt(f); f.Confidence != want {
				t.Errorf("%q is damaged, finding from %d to %d: %s, want %s", place, f.Since, f.Until, f.Confidence, want)
			}
		}
	}
}

// If work of a rank is missing in a recording, idle time is only likely, and so is that nothing hides copies or communication: the
// missing work may have. Other findings stay certain.
func TestLostWorkIsNoIdleTime(t *testing.T) {
	for _, test := range []struct {
		cuts    []gpu.Cut
		from    trace.Time
		subkind string
		metric  string
		want    finding.Confidence
	}{
		{[]gpu.Cut{{Rank: "TP2"}}, 0, gpuloss.HostSubkind, gpuloss.IdleMetric, finding.Likely},
		{[]gpu.Cut{{Rank: "TP2"}}, 0, "copies", "exposed copies in the run of 2052-02-21 23:59:59", finding.Likely},
		{[]gpu.Cut{{Rank: "TP2"}}, 0, "communication", gpuloss.ExposedMetric + " in decode", finding.Likely},
		{[]gpu.Cut{{Rank: "TP2"}}, 0, gpuloss.WaitSubkind, gpuloss.WaitMetric, finding.Certain},
		{[]gpu.Cut{{Rank: "TP2"}}, 5, gpuloss.HostSubkind, gpuloss.IdleMetric, finding.Certain},
		{[]gpu.Cut{{Rank: "TP2"}}, 5, "copies", "exposed copies", finding.Certain},
		{nil, 0, gpuloss.HostSubkind, gpuloss.IdleMetric, finding.Certain},
		{nil, 0, "copies", "exposed copies", finding.Certain},
	} {
		m := Measured{GPUs: &gpu.GPUs{Cuts: test.cuts}}
		m.Of.Devices.From = test.from
		f := finding.Finding{Kind: finding.GPU, Subkind: test.subkind, Metric: finding.Metric{Name: test.metric}, CostBasis: finding.GPUTime, Confidence: finding.Certain, Evidence: []finding.Evidence{finding.Sentence("idle by reason")}}
		m.doubt(&f)
		if f.Confidence != test.want || (len(f.Evidence) == 2) != (test.want == finding.Likely) {
			t.Errorf("%+v: %+v", test, f)
		}
	}
	m := Measured{GPUs: &gpu.GPUs{GPUs: []gpu.GPU{{Rank: "TP2", Blind: true}}}} // neither kernels nor calls
	f := finding.Finding{Kind: finding.GPU, Subkind: gpuloss.HostSubkind, Metric: finding.Metric{Name: gpuloss.IdleMetric}, CostBasis: finding.GPUTime, Confidence: finding.Certain}
	if m.doubt(&f); f.Confidence != finding.Likely || len(f.Evidence) != 1 || f.Evidence[0].Text != "work of TP2 may be missing, which looks like idle time" {
		t.Errorf("%+v", f)
	}
}

// If nobody recorded how many tokens were cached, slower prefills are only likely: fewer cached tokens look the same.
func TestUnknownCachesDoubtPrefills(t *testing.T) {
	for _, test := range []struct {
		cached int64
		metric string
		want   finding.Confidence
	}{{request.Unknown, "prefill time", finding.Likely}, {request.Unknown, "decode time per token", finding.Certain}, {0, "prefill time", finding.Certain}} {
		m := Measured{}
		m.Of.Requests = &request.Set{Requests: []request.Request{{Metrics: request.Metrics{CachedTokens: request.Unknown}}, {Metrics: request.Metrics{CachedTokens: test.cached}}}}
		f := finding.Finding{Kind: finding.Change, Subkind: change.Pace, Metric: finding.Metric{Name: test.metric, Before: 1, After: 2}, Confidence: finding.Certain}
		if m.doubt(&f); f.Confidence != test.want || (len(f.Evidence) == 1) != (test.want == finding.Likely) {
			t.Errorf("%+v: %+v", test, f)
		}
	}
}
