package overview

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

func (o *Overview) text(t *testing.T, f table.Format, style table.Style) string {
	t.Helper()
	var b bytes.Buffer
	if err := o.Document().Write(&b, f, style); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// demoOverview returns the overview of a run with every planted fault, read from a
// file whose name a shell would misinterpret.
func demoOverview(t *testing.T) (*Overview, *simulator.Truth) {
	s, truth := testset.Simulated(t, simulator.DefaultConfig(1))
	var diags trace.Diags
	diags.Add(trace.OTLPTruncated.At(trace.Pos{File: "it's here.jsonl", Line: 16}, "inside a span"))
	return New(Input{
		Select: []string{"--from", "+0s"}, Inputs: []string{"it's here.jsonl"}, Requests: s,
		Files:  []document.Input{{Name: "it's here.jsonl", Bytes: 9_084_313}},
		Clocks: []HostClock{{Host: "gateway", Why: "reference"}, {Host: "node1", Why: "matched", By: "requests", Offset: -7_698_093, Bound: 718_705}, {Host: "node2", Why: "assumed", Bound: request.Unknown}},
		Diags:  &diags,
	}), truth
}

func TestGoldenOverview(t *testing.T) {
	o, _ := demoOverview(t)
	for _, f := range table.Formats {
		t.Run(string(f), func(t *testing.T) { testset.CompareGolden(t, "summary."+string(f), o.text(t, f, table.Style{})) })
	}
	t.Run("narrow", func(t *testing.T) {
		testset.CompareGolden(t, "summary_60_ascii.text", o.text(t, table.FormatText, table.Style{Width: 60, ASCII: true}))
	})
	t.Run("color", func(t *testing.T) {
		colored := o.text(t, table.FormatText, table.Style{Color: true})
		if got := strings.NewReplacer("\x1b[31m", "", "\x1b[33m", "", "\x1b[0m", "").Replace(colored); got != o.text(t, table.FormatText, table.Style{}) {
			t.Errorf("without colors, the text is another:\n%s", got)
		}
		if first := "\n1  \x1b[" + map[finding.Severity]string{finding.Critical: "31", finding.Warning: "33"}[o.Findings[0].Severity] + "m"; !strings.Contains(colored, first) {
			t.Errorf("no %q in\n%s", first, colored)
		}
	})
	few := New(Input{Requests: testset.Fixture(t), Inputs: []string{"dump.jsonl"}})
	t.Run("few", func(t *testing.T) {
		testset.CompareGolden(t, "summary_few.text", few.text(t, table.FormatText, table.Style{}))
	})
}

// The text fits a terminal and 40 lines, except for command lines, which must be pasted whole.
func TestOverviewFits(t *testing.T) {
	o, _ := demoOverview(t)
	for _, width := range []int{60, 80, 100, 300} {
		text := o.text(t, table.FormatText, table.Style{Width: width})
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(line) - 1; n > min(width, MaxWidth) && !strings.HasPrefix(line, "   $ ") {
				t.Errorf("%d columns on a terminal of %d: %s", n, width, line)
			}
		}
		if n := strings.Count(text, "\n"); width >= 100 && n > 40 {
			t.Errorf("%d lines", n)
		}
	}
}

// Programs read the numbers that the simulator played.
func TestOverviewTellsTheTruth(t *testing.T) {
	o, truth := demoOverview(t)
	var v struct {
		Tables []struct {
			Name string
			Rows []map[string]any
		}
		Findings []struct {
			Kind  string
			Place struct {
				Rank string
			}
			Commands [][]string
			Since    int64 `json:"since_unix_ns"`
		}
	}
	if err := json.Unmarshal([]byte(o.text(t, table.FormatJSON, table.Style{})), &v); err != nil {
		t.Fatal(err)
	}
	tables := map[string][]map[string]any{}
	for _, table := range v.Tables {
		tables[table.Name] = table.Rows
	}
	load := tables["summary.load"][0]
	finished, tokens := 0, 0
	for _, r := range truth.Requests {
		if r.Outcome == "finished" {
			finished++
			tokens += r.CompletionTokens
		}
	}
	if load["requests"] != float64(len(truth.Requests)) || load["finished"] != float64(finished) {
		t.Errorf("requests %v, %d of %d finished", load, finished, len(truth.Requests))
	}
	seconds := float64(o.To-o.From) / 1e9
	if got := load["output_token_rate"].(float64) * seconds; got < float64(tokens)-1 || got > float64(tokens)+1 {
		t.Errorf("%.1f tokens in %.1f s, want %d", got, seconds, tokens)
	}
	const grid = 512 // ns
	if e2e := tables["summary.latency"][0]; e2e["metric"] != "e2e" || e2e["n"] != float64(truth.E2E.N) || math.Abs(e2e["p99_ns"].(float64)-float64(truth.E2E.P99)) > grid {
		t.Errorf("e2e %+v, want %+v", e2e, truth.E2E)
	}
	ranks := 0
	for _, s := range tables["summary.servers"] {
		if n, known := s["ranks"].(float64); known {
			ranks += int(n)
		}
	}
	if schedulers := slices.DeleteFunc(slices.Clone(truth.Processes), func(p simulator.ProcessTruth) bool { return p.Rank == "" }); ranks != len(schedulers) {
		t.Errorf("%d ranks, want %d", ranks, len(schedulers))
	}
	for _, f := range v.Findings {
		switch {
		case f.Kind == "straggler" && !testset.Rank(t, f.Place.Rank).Matches(testset.Rank(t, truth.Straggler.Rank)):
			t.Errorf("straggler %s, want %s", f.Place.Rank, truth.Straggler.Rank)
		case f.Kind == "load" && max(f.Since-truth.Imbalance.OnsetNs, truth.Imbalance.OnsetNs-f.Since) > 1e9:
			t.Errorf("load since %d, want %d", f.Since, truth.Imbalance.OnsetNs)
		case !strings.HasSuffix(strings.Join(f.Commands[0], " "), " --from +0s it's here.jsonl"):
			t.Errorf("commands %q", f.Commands)
		}
	}
}

// No text from a file reaches the terminal unescaped, or breaks a line of Markdown.
func TestOverviewIsSafe(t *testing.T) {
	o := &Overview{Input: Input{Inputs: []string{"a\x1b]0;x\a.jsonl"}, Files: []document.Input{{Name: "a\x1b]0;x\a.jsonl"}}}}
	o.Findings = []finding.Finding{{Kind: finding.Errors, Text: "bad \x1b[31m\n# heading", Evidence: []finding.Evidence{{Text: "<script> | \u202e"}}, Show: [][]string{{"--by", "status"}}}}
	o.Warnings = []document.Warning{{Severity: trace.Error, Text: "\x1b[2J"}}
	for _, f := range table.Formats {
		for line := range strings.Lines(o.text(t, f, table.Style{})) {
			if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), words.Hidden) {
				t.Errorf("%s: %q", f, line)
			}
			if f == table.FormatMarkdown && (strings.HasPrefix(line, "# ") || strings.Contains(line, "<script>")) {
				t.Errorf("markup: %s", line)
			}
		}
	}
}

// A long list of inputs is printed once, and not in every command.
func TestManyInputs(t *testing.T) {
	byRank := [][]string{{"--by-rank"}}
	o := &Overview{Result: finders.Result{Findings: []finding.Finding{{Text: "x", Show: byRank}, {Text: "y", Show: byRank}}}}
	for _, name := range []string{"aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc", "dddddddddddd"} {
		o.Inputs = append(o.Inputs, "traces/"+name+".json.gz")
	}
	text := o.text(t, table.FormatText, table.Style{Width: 80})
	if strings.Count(text, "aaaaaaaaaaaa") != 1 || strings.Count(text, "$ sgtrace report --by-rank INPUT...") != 2 {
		t.Error(text)
	}
}

// Dumps without requests, and empty sets, cause no failure.
func TestOverviewOfNothing(t *testing.T) {
	var d testset.Dump
	d.Add(testset.Span{Service: "billing", Trace: "00000000000000000000000000000003", Name: "charge", From: 300_000, To: 300_250})
	for _, in := range []Input{
		{},
		{Requests: d.Set(t)},
		{Profiles: &profile.Set{Ranks: []string{"TP0"}, Syms: new(trace.Symbols)}},
	} {
		o := New(in)
		if len(o.Findings) > 0 {
			t.Errorf("%+v", o.Findings)
		}
		for _, f := range table.Formats {
			o.text(t, f, table.Style{})
		}
	}
}

// If servers do not report their hosts, and there may be several, the summary says so.
func TestHostsThatAreNotTold(t *testing.T) {
	a, b := []testset.ServedThread{{Host: "", TP: 0, PID: 100}}, []testset.ServedThread{{Host: "", TP: 0, PID: 200}}
	for _, test := range []struct {
		list []testset.ServedBy
		want bool
	}{
		{[]testset.ServedBy{{At: 0, Threads: a}, {At: 1, Threads: b}, {At: 2, Threads: a}, {At: 3, Threads: b}}, true},
		{[]testset.ServedBy{{At: 0, Threads: a}, {At: 1, Threads: a}, {At: 2, Threads: b}}, false},
		{[]testset.ServedBy{{At: 0, Threads: []testset.ServedThread{{Host: testset.DecodeHost, TP: 0, PID: 100}}}, {At: 1, Threads: []testset.ServedThread{{Host: testset.DecodeHost, TP: 0, PID: 200}}}, {At: 2, Threads: []testset.ServedThread{{Host: testset.DecodeHost, TP: 0, PID: 100}}}}, false},
	} {
		o := &Overview{Input: Input{Requests: testset.Served(t, test.list)}}
		said := slices.ContainsFunc(o.hostWarnings(), func(d document.Warning) bool { return strings.Contains(d.Text, "do not record their hosts") })
		if said != test.want {
			t.Errorf("%v: said %v, want %v", test.list, said, test.want)
		}
	}
}

// A rate of few requests per second is given per hour.
func TestRateText(t *testing.T) {
	for rate, want := range map[float64]string{
		0: "0 requests/s", 1234: "1,234 requests/s", 0.1: "0.100 requests/s", 0.05: "3 requests/min", 0.001: "3.60 requests/h",
		1.0 / 86400: "1.00 requests/day", 0.1 / 86400: "0.100 requests/day",
	} {
		if got := rateText(rate, "requests"); got != want {
			t.Errorf("%g: %s, want %s", rate, got, want)
		}
	}
}
