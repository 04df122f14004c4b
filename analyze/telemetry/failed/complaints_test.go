package failed

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// What a program calls an error leads where the log only has that something ended, is evidence of what is known to end it, and is a
// finding of its own where nothing ended.
func TestWhatComplaintsTell(t *testing.T) {
	type said struct {
		at   int // s
		kind series.InstantKind
		text string
	}
	for _, test := range []struct {
		name       string
		said       []said
		want       []string // how findings begin
		confidence finding.Confidence
	}{
		{"before an end", []said{{0, series.Complaint, "an error: no lib"}, {2, series.Crash, "its engine did not start"}}, []string{"a: an error: no lib"}, finding.Likely},
		{"beside an exception", []said{{0, series.Complaint, "an error: it fails"}, {2, series.Exception, "the engine: RuntimeError: no lib"}}, []string{"a: the engine: RuntimeError: no lib"}, finding.Certain},
		{"beside one that nobody can read", []said{{0, series.Complaint, "an error: no lib"}, {0, series.Exception, "the engine: an exception without an end"}}, []string{"a: an error: no lib"}, finding.Likely},
		{"alone", []said{{0, series.Complaint, "an error: no lib"}, {9, series.Complaint, "an error: so what"}, {600, series.Complaint, "an error: no port"}}, []string{"a: an error: no lib", "a: an error: no port"}, finding.Likely},
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
