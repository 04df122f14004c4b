package overview

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/format"
	"github.com/sgtrace/sgtrace/format/envelope"
	"github.com/sgtrace/sgtrace/format/platform"
	"github.com/sgtrace/sgtrace/format/serverlog"
	"github.com/sgtrace/sgtrace/golden/cluster"
	"github.com/sgtrace/sgtrace/profile/recorder"
	"github.com/sgtrace/sgtrace/request/assembly"
	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// readEvidence reads the files of a run without traces.
func readEvidence(t *testing.T, files []cluster.File) Input {
	t.Helper()
	diags := &trace.Diags{}
	spans := spantable.New(diags)
	set := series.New(spans.Syms, diags)
	rows := spantable.NewRequestRecords(set)
	opt := &format.Options{Syms: spans.Syms, Args: spans.Args, Diags: diags, Spans: spans, Series: set, Records: rows, Flight: recorder.NewInFlight(spans.Syms)}
	for _, f := range files {
		of := serverlog.Format
		switch {
		case strings.HasPrefix(f.Name, "metrics/"):
			of = platform.Prometheus
		case strings.HasSuffix(f.Name, "dmesg.log"):
			of = platform.Kernel
		}
		if head := f.Text[:min(len(f.Text), 4096)]; !of.Sniff(head) {
			t.Errorf("%s is not known as %s", f.Name, of.Name)
		}
		in := &format.Input{Name: f.Name, Open: func() (io.ReadCloser, error) {
			r, err := envelope.Open(f.Name, bytes.NewReader(f.Text))
			return io.NopCloser(r), err
		}}
		if _, err := of.Index(in, opt); err != nil {
			t.Fatal(err)
		}
	}
	set.Finish(series.Known{})
	in := Input{Series: set, Diags: diags}
	if rows.Emit(spans) > 0 {
		a := assembly.Build(spans)
		a.OnOneClock(a.Set.HostClocks())
		in.Requests = a.Set
	}
	return in
}

// usualEvidence are the scenarios in every test run; "make rates" covers all of them.
var usualEvidence = []string{"fine_dp", "retraction", "failing"}

// notLoad are scenarios with faults that higher load does not explain.
var notLoad = []string{"slow_server", "slow_always", "throttled", "slow_link", "failing", "failing_gpu"}

// In runs without traces, logs, metrics, and sometimes records reveal the planted fault:
// it leads, with its place, and nothing else is a warning. Healthy runs have no warnings.
func TestRateOfEvidence(t *testing.T) {
	v := &clusterVerdict{t: t, right: map[string][2]int{}}
	seeds := testset.FirstSeeds(t, 1)
	for i := range cluster.Evident {
		s := &cluster.Evident[i]
		if len(seeds) == 1 && !slices.Contains(usualEvidence, s.Name) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			testset.EachSeed(seeds, func(seed uint64) { v.judgeEvidence(t, s, seed+1) })
		})
	}
	whats := make([]string, 0, len(v.right))
	for what := range v.right {
		whats = append(whats, what)
	}
	slices.Sort(whats)
	for _, what := range whats {
		testset.Rate(t, what, v.right[what][0], v.right[what][1], 94)
	}
}

func (v *clusterVerdict) judgeEvidence(t *testing.T, s *cluster.Scenario, seed uint64) {
	run, err := cluster.Play(s.Config(seed))
	if err != nil {
		t.Error(err)
		return
	}
	truth := s.Places(run)
	e := cluster.EvidenceOf(seed)
	files, err := e.Files(run)
	if err != nil {
		t.Error(err)
		return
	}
	in := readEvidence(t, files)
	for i := range in.Series.Sources {
		if src := &in.Series.Sources[i]; strings.HasPrefix(src.Name, "logs/") {
			v.count("logs: the zone of their stamps", src.Zone.By != series.Assumed && src.Zone.East == e.Layout.Zone, s.Name, seed, e.Layout.Name, src.Zone.Name(), src.Zone.By)
		}
	}
	found := New(in).Findings
	which := fmt.Sprintf("%s, seed %d (%s, stats %v, records %v, pods %v, %v):", s.Name, seed, e.Layout.Name, e.Stats, e.Records, e.Pods, truth.Hosts)
	alarms := slices.DeleteFunc(slices.Clone(found), func(f finding.Finding) bool { return f.Severity == finding.Info })
	if s.Healthy {
		v.count("logs and metrics: no warning: "+s.Name, len(alarms) == 0, which, textsOf(alarms))
		return
	}
	leads := len(found) > 0 && leads(run, truth, s, &found[0])
	v.count("logs and metrics: what is planted leads: "+s.Name, leads, which, textsOf(found))
	load := s.Name == "burst" || s.Name == "burst_pd"
	if kind := finding.Kind(""); load || slices.Contains(notLoad, s.Name) {
		if len(found) > 0 {
			kind = found[0].Kind
		}
		isLoad := kind == finding.Load || kind == finding.Limit
		v.count("logs and metrics: more load is told from a fault", kind != "" && isLoad == load, which, kind)
	}
	others := slices.DeleteFunc(alarms, func(f finding.Finding) bool { return leads && f.Text == found[0].Text })
	v.count("logs and metrics: no other warning beside what is planted", len(others) == 0, which, textsOf(others))
}

// leads reports whether a finding is the one that must lead in a scenario.
func leads(run *cluster.Run, truth *cluster.Truth, s *cluster.Scenario, f *finding.Finding) bool {
	text := f.Text + " " + f.At.String() + " " + f.At.Host
	words := strings.ReplaceAll(s.Lead.Words, "HOST", "("+strings.Join(truth.Hosts, "|")+")")
	if at := run.Config.Faults[0].Server; at >= 0 {
		words = strings.ReplaceAll(words, "RANK", fmt.Sprintf("DP%d\\b", run.Servers[at].DP))
	}
	return slices.Contains(strings.Fields(s.Lead.Kinds), string(f.Kind)) && regexp.MustCompile("(?is)"+words).MatchString(text)
}
