package failed

import (
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A server that ends repeatedly in the same way is one finding, with the total time until it was ready again. A
// different way is another finding.
func TestEndsAgain(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f, p := fillServer(set, 0)
	for at := range trace.Time(1000) {
		f.Add(f.Series(series.Running, p), begin+at*sec, 7)
	}
	for i, text := range []string{"it has 7 pages", "it has 12 pages", "the device is gone", "it has 9 pages"} {
		at := begin + trace.Time(200*i+100)*sec
		f.Instant(series.Instant{Time: at, Kind: series.Exception, Place: p, Line: uint32(2*i + 1), Count: 1}, "Scheduler: RuntimeError: "+text)
		f.Instant(series.Instant{Time: at + 50*sec, Kind: series.Ready, Place: p, Line: uint32(2*i + 2)}, "is ready")
	}
	set.Finish(series.Known{})
	found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
	if len(found) != 2 {
		t.Fatalf("found %v", found)
	}
	if f := &found[0]; !strings.HasSuffix(f.Text, "RuntimeError: it has 7 pages at 22:15:00, and 2 more times until 2023-11-14 22:25:00") || math.Abs(f.Cost-0.15) > 0.01 {
		t.Errorf("costs %g: %s", f.Cost, f.Text)
	}
	if f := &found[1]; strings.Contains(f.Text, "again") || math.Abs(f.Cost-0.05) > 0.01 {
		t.Errorf("costs %g: %s", f.Cost, f.Text)
	}
}
