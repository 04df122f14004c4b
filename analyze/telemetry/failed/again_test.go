package failed

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A server that is restarted while it runs batches is reported, unless its log or the kernel's says why it
// ended. Its first start is not reported, and neither is the restart of an idle server.
func TestStartedAgain(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	for _, test := range []struct {
		name  string
		runs  float64
		says  series.InstantKind // at the last batch; Note means nothing
		text  string
		other bool // in the kernel's log, not in the server's
		want  string
	}{
		{"without a word", 7, series.Note, "", false, "a was started again at 22:23:40, with 7 requests in its batch at 22:23:19: its log does not say why it ended"},
		{"told to end", 7, series.Stopping, "was told to shut down", false, "a: was told to shut down at 22:23:19"},
		{"it failed", 7, series.Exception, "Scheduler: ValueError: no", false, ""},
		{"killed by the kernel", 7, series.Crash, "the kernel killed process 7 (x), because the host ran out of memory", true, ""},
		{"nothing to do", 0, series.Note, "", false, ""},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		start := func(at trace.Time) {
			f.Instant(series.Instant{Time: at, Kind: series.Starting, Place: p}, "loads weights")
			f.Instant(series.Instant{Time: at + 60*sec, Kind: series.Ready, Place: p}, "is ready")
		}
		start(begin)
		line := int64(1)
		for _, from := range []trace.Time{100, 720} {
			for at := from; at < from+500; at++ {
				f.Line(line)
				f.Add(f.Series(series.Running, p), begin+at*sec, test.runs)
				f.Add(f.Series(series.Generation, p), begin+at*sec, 50)
				line++
			}
		}
		start(begin + 620*sec)
		if test.says != series.Note {
			place := p
			if test.other {
				f = set.Fill("dmesg", "kernel log")
				place = f.Place(series.Place{Server: f.Server(series.Server{}), Rank: trace.NoRank, GPU: series.NoGPU})
			}
			f.Instant(series.Instant{Time: begin + 599*sec, Kind: test.says, Place: place}, test.text)
		}
		set.Finish(series.Known{})
		l := telemetry.Measure(set, telemetry.Options{})
		found, _ := Lives(l)
		var got []string
		for _, x := range found {
			got = append(got, x.Text)
		}
		if text := strings.Join(got, "; "); text != test.want {
			t.Errorf("%s: %q", test.name, text)
		}
		if test.runs > 0 && test.says == series.Note && (found[0].Cost < 0.066 || found[0].Cost > 0.067) { // 81 of 1219 s
			t.Errorf("costs %g", found[0].Cost)
		}
		if died, _ := Failures(l); test.other && (len(died) != 1 || !strings.HasPrefix(died[0].Text, "a: the kernel killed")) {
			t.Errorf("%s: %+v", test.name, died)
		}
	}
}

// A server that only lost its peer is not the one whose process the kernel killed.
func TestVictimAmongTwo(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	for i, says := range []string{"a process ended with exit code -9", "Scheduler: DistBackendError: NCCL error, remote process exited"} {
		f, p := fillServer(set, i)
		for at := range 300 {
			f.Add(f.Series(series.Running, p), begin+trace.Time(at)*sec, 7)
		}
		kind := series.Crash
		if i == 1 {
			kind = series.Exception
			f.Instant(series.Instant{Time: begin + 302*sec, Kind: series.Crash, Place: p}, "a process of the server failed, and all end")
		}
		f.Instant(series.Instant{Time: begin + 301*sec, Kind: kind, Place: p}, says)
	}
	f := set.Fill("dmesg", "kernel log")
	p := f.Place(series.Place{Server: f.Server(series.Server{Host: "a"}), Rank: trace.NoRank, GPU: series.NoGPU})
	f.Instant(series.Instant{Time: begin + 300*sec, Kind: series.Crash, Place: p}, "the kernel killed process 7 (x), because the host ran out of memory")
	set.Finish(series.Known{})
	found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
	if len(found) != 2 || !strings.HasPrefix(found[0].Text, "a: the kernel killed") || found[0].Confidence != "" || !strings.HasPrefix(found[1].Text, "b: Scheduler") {
		t.Errorf("%+v", found)
	}
}
