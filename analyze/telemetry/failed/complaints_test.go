package failed

import (
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A message that a program calls an error leads if the log otherwise only says that something ended. It is
// evidence of an exception that ended it, and a finding of its own if nothing ended.
func TestWhatComplaintsTell(t *testing.T) {
	type said struct {
		at   int // s
		kind series.InstantKind
		text string
	}
	for _, test := range []struct {
		name       string
		said       []said
		want       []string // prefixes of the findings
		confidence finding.Confidence
	}{
		{"before an end", []said{{0, series.Complaint, "an error: no lib"}, {2, series.Crash, "its engine did not start"}}, []string{"a: an error: no lib"}, finding.Likely},
		{"beside a fault of memory", []said{{0, series.Complaint, "an error: W0611 run.py"}, {2, series.Crash, "its process ended with exit code -11 (segmentation fault)"}}, []string{"a: its process ended with exit code -11 (segmentation fault)"}, finding.Certain},
		{"beside an exception", []said{{0, series.Complaint, "an error: it fails"}, {2, series.Exception, "the engine: RuntimeError: no lib"}}, []string{"a: the engine: RuntimeError: no lib"}, finding.Certain},
		{"beside one that nobody can read", []said{{0, series.Complaint, "an error: no lib"}, {0, series.Exception, "the engine: an exception without an end"}}, []string{"a: an error: no lib"}, finding.Likely},
		{"alone", []said{{0, series.Complaint, "an error: no lib"}, {9, series.Complaint, "an error: so what"}, {600, series.Complaint, "an error: no port"}}, []string{"a: an error: no lib", "a: an error: no port"}, finding.Likely},
		{"an exception in an engine that nobody can read", []said{{0, series.Crash, "its engine failed"}, {0, series.Exception, "the engine: an exception without an end"}}, []string{"a: the engine: an exception without an end"}, finding.Certain},
		{"one in any process that nobody can read", []said{{0, series.Crash, "its engine failed"}, {0, series.Traceback, "an exception without an end"}}, []string{"a: its engine failed"}, finding.Certain},
		{"an hour before an end", []said{{0, series.Complaint, "an error: no lib"}, {3600, series.Crash, "its engine failed"}}, []string{"a: its engine failed", "a: an error: no lib"}, finding.Certain},
		{"what a worker died of", []said{{0, series.Traceback, "a worker failed: the device is full"}, {7, series.Exception, "worker VllmWorker-1 died"}}, []string{"a: a worker failed: the device is full"}, finding.Certain},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := series.New(trace.NewSymbols(), &trace.Diags{})
			f, p := fillServer(set, 0)
			for i, x := range test.said {
				f.Instant(series.Instant{Time: 1_700_000_000e9 + trace.Time(x.at)*1e9, Kind: x.kind, Place: p, Line: uint32(i + 1), Count: 1}, x.text)
			}
			set.Finish(series.Known{})
			found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
			if len(found) != len(test.want) {
				t.Fatalf("found %v", found)
			}
			for i := range found {
				if !strings.HasPrefix(found[i].Text, test.want[i]) {
					t.Errorf("found %q, want %q", found[i].Text, test.want[i])
				}
			}
			if got := found[0].Confidence; got != test.confidence && !(got == "" && test.confidence == finding.Certain) {
				t.Errorf("confidence %v", got)
			}
		})
	}
}

// Warnings before a server's first batch had no consequences; later warnings are reported.
func TestWarnedBeforeItServed(t *testing.T) {
	const at = trace.Time(1_700_000_000e9)
	for after, want := range map[trace.Time]int{-60: 0, 60: 1} { // s
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		f.Line(1)
		f.Instant(series.Instant{Time: at + after*1e9, Kind: series.Complaint, Place: p, Line: 1, Count: 1}, series.Warns+"no P2P")
		for i := range trace.Time(200) {
			f.Line(int64(i) + 2)
			f.Add(f.Series(series.Running, p), at+i*1e9, 3)
		}
		set.Finish(series.Known{})
		if found, _ := Failures(telemetry.Measure(set, telemetry.Options{})); len(found) != want {
			t.Errorf("%d s behind the first batch: found %v", after, found)
		}
	}
}

// The text says that the log has no exception only if there is none around that time, from any process: lines of a
// process may lack its name.
func TestNoExceptionIsDenied(t *testing.T) {
	for _, test := range []struct {
		name  string
		after int // s until an exception of another server; -1 is none
		want  string
	}{
		{"none", -1, "the log has no exception for it"},
		{"one of nobody knows whom", 1, "that may be the reason: b: RuntimeError: no device"},
		{"one that is an hour apart", 3600, "the log has no exception for it"},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, a := fillServer(set, 0)
		b := f.Place(series.Place{Server: f.Server(series.Server{Name: "b", Role: "unified", Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
		f.Instant(series.Instant{Time: 1_700_000_000e9, Kind: series.Crash, Place: a, Line: 1, Count: 1}, "a process failed, and all end")
		if test.after >= 0 {
			at := 1_700_000_000e9 + trace.Time(test.after)*1e9
			f.Instant(series.Instant{Time: at, Kind: series.Exception, Place: b, Line: 2, Count: 1, Stack: set.Syms.Intern("run (x.py:3)")}, "RuntimeError: no device")
		}
		set.Finish(series.Known{})
		found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
		k := slices.IndexFunc(found, func(f finding.Finding) bool { return strings.HasPrefix(f.Text, "a: ") || len(found) == 1 })
		if k < 0 || !slices.ContainsFunc(found[k].Evidence, func(e finding.Evidence) bool { return strings.Contains(e.Text, test.want) }) {
			t.Errorf("%s: found %v", test.name, found)
		}
	}
}

// A vLLM server whose log has no token at all from its first line on, or whose last line is cut off, stands still.
func TestShortLogsOfVLLM(t *testing.T) {
	for _, test := range []struct {
		name                             string
		tokens, prompts, running, queued []float64
		want                             string
	}{
		{"no token comes, and the last line is cut off", []float64{0, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0, 0}, []float64{1, 1, 1, 1, 1}, []float64{0, 0, 0, 0, 0}, " has stood still since "},
		{"no token comes from the first line on", []float64{0, 0, 0}, []float64{0, 0, 0}, []float64{1, 1, 1}, []float64{0, 0, 0}, " has stood still since 22:13:10, with 1 request in its batch and 0 waiting: until 22:13:40, when the log ends, it computes no token"},
		{"no token comes for 20 s", []float64{5, 0, 0}, []float64{0, 0, 0}, []float64{1, 1, 1}, []float64{0, 0, 0}, ""},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Role: "unified", Engine: "vLLM"}), Rank: trace.NoRank, GPU: series.NoGPU})
		for metric, values := range map[series.MetricID][]float64{series.Generation: test.tokens, series.PrefillRate: test.prompts, series.Running: test.running, series.Queued: test.queued} {
			for i, v := range values {
				f.Line(int64(i + 1))
				f.Add(f.Series(metric, p), 1_700_000_000e9+trace.Time(i)*10e9, v)
			}
		}
		set.Finish(series.Known{})
		found, _ := Lives(telemetry.Measure(set, telemetry.Options{}))
		if len(found) > 1 || len(found) == 1 != (test.want != "") || len(found) == 1 && !strings.Contains(found[0].Text, test.want) {
			t.Errorf("%s: found %v", test.name, found)
		}
	}
}
