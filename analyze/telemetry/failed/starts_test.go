package failed

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A said is an event in a log.
type said struct {
	kind series.InstantKind
	text string
}

// A server that loads its weights far more slowly than the others is reported. One of only two servers is
// not, nor one that is slightly slower.
func TestSlowStarts(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	for _, test := range []struct {
		took  []float64
		sizes string
		want  string
	}{
		{[]float64{27, 26, 240, 28}, "", "c took 240 s to load its weights, until 22:17:20, and the others 27 s"},
		{[]float64{27, 26, 240, 28}, " (30.6 GB)", "c took 240 s to load its weights, until 22:17:20, and the others 27 s"},
		{[]float64{27, 26, 240, 28}, " (3%[1]d.5 GB)", "c took 240 s to load its weights, until 22:17:20, and the others 27 s"},
		{[]float64{27, 26, 240, 28}, " (%[1]d1 GB)", ""}, // different models
		{[]float64{27, 26, 70, 28}, "", ""},
		{[]float64{27, 240}, "", ""},
		{[]float64{270, 260, 400, 280}, "", ""},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		for i, took := range test.took {
			name, size := string(rune('a'+i)), test.sizes
			if strings.Contains(size, "%") {
				size = fmt.Sprintf(size, i)
			}
			f := set.Fill(name+".log", "server log")
			server := f.Server(series.Server{Name: name, Role: "unified", Engine: "SGLang"})
			for tp := range 2 {
				rank := trace.NoRank
				rank.TP = int16(tp)
				p := f.Place(series.Place{Server: server, Rank: rank, GPU: series.NoGPU})
				f.Instant(series.Instant{Time: begin, Kind: series.Starting, Place: p}, "loads weights")
				f.Instant(series.Instant{Time: begin + trace.Time(took)*sec, Kind: series.Starting, Place: p}, fmt.Sprintf("has its weights, after %.0f s", took)+size)
			}
			f.Saw(begin + 1000*sec)
		}
		set.Finish(series.Known{})
		found, _ := Lives(telemetry.Measure(set, telemetry.Options{}))
		var got string
		for _, f := range found {
			got += f.Text
		}
		if got != test.want {
			t.Errorf("%v: %q", test.took, got)
		}
		if len(found) > 0 && (found[0].Cost < 0.05 || found[0].Cost > 0.06) { // 213 of 1000 s on one of four servers
			t.Errorf("costs %g", found[0].Cost)
		}
	}
}

// A server whose log ends during a startup step is reported, unless it was ready, told to end, or running batches.
// If its log goes on, the server does not log when it is ready.
func TestNotReady(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	loads, graphs, done := said{series.Starting, "loads weights"}, said{series.Starting, "captures graphs"}, said{series.Starting, "has its graphs"}
	for _, test := range []struct {
		name  string
		said  []said // one per 10 s
		after trace.Time
		batch bool
		want  string
	}{
		{"killed", []said{loads, {series.Starting, "has its weights, after 9 s"}, graphs}, 1, false, "the log of a ends at 22:13:51 while it captures graphs, before it was ready"},
		{"without weights", []said{loads}, 30, false, "the log of a ends at 22:14:00 while it loads its weights, before it was ready"},
		{"the other node of a server", []said{loads, graphs, done}, 1, false, ""},
		{"a failure tells more", []said{loads, {series.Exception, "ValueError: no"}}, 1, false, ""},
		{"told to end", []said{loads, {series.Stopping, "was told to shut down"}}, 1, false, ""},
		{"its log goes on", []said{loads}, 300, false, ""},
		{"it serves", []said{graphs}, 2, true, ""},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
		at := begin
		for _, x := range test.said {
			at += 10 * sec
			f.Instant(series.Instant{Time: at, Kind: x.kind, Place: p, Line: 1}, x.text)
		}
		f.Saw(at + test.after*sec)
		if test.batch {
			f.Line(9)
			f.Add(f.Series(series.Running, p), at+sec, 3)
		}
		set.Finish(series.Known{})
		found, _ := Lives(telemetry.Measure(set, telemetry.Options{}))
		got := ""
		for _, x := range found {
			if x.Subkind == NotReady {
				got += x.Text
			}
		}
		if got != test.want {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// An engine that waits for its workers during startup did not hang if startup continues afterward. It hung if it
// is restarted, or if it was not in a startup step.
func TestLongSteps(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	weights, waits := said{series.Starting, "has its weights, after 9 s"}, said{series.Timeout, "its workers did not return for 60 s"}
	const went, stood = "a: its workers did not return for 60 s at 22:15:00, while it started: it went on by 22:16:40, and did not hang", "a: its workers did not return for 60 s at 22:15:00, so it has stood still since 22:14:00 or before"
	for _, test := range []struct {
		name string
		said []said // one per 100 s
		want string
	}{
		{"it goes on", []said{weights, waits, {series.Starting, "has its engine"}}, went},
		{"it is ready", []said{weights, waits, {series.Ready, "is ready"}}, went},
		{"kernels are built", []said{weights, waits, {series.Halt, "has built a kernel, after 99 s"}}, went},
		{"another start", []said{weights, waits, weights}, stood},
		{"it fails", []said{weights, waits, {series.Exception, "RuntimeError: it is gone"}, {series.Ready, "is ready"}}, stood},
		{"it goes on, then fails", []said{weights, waits, {series.Starting, "has warmed up"}, {series.OutOfMemory, "the device ran out of memory"}, waits},
			"a: its workers did not return for 60 s between 22:15:00 and 22:20:00 (2 times), while it started: it went on by 22:16:40, and failed at 22:18:20"},
		{"it was ready", []said{{series.Ready, "is ready"}, waits, {series.Starting, "has its engine"}}, stood},
		{"nothing follows", []said{weights, waits}, stood},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: "vLLM"}), Rank: trace.NoRank, GPU: series.NoGPU})
		for i, x := range test.said {
			f.Instant(series.Instant{Time: begin + trace.Time(i)*100*sec, Kind: x.kind, Place: p, Line: uint32(i) + 1}, x.text)
			f.Saw(begin + trace.Time(i)*100*sec)
		}
		set.Finish(series.Known{})
		found, _ := Lives(telemetry.Measure(set, telemetry.Options{}))
		got := ""
		for _, x := range found {
			if x.Subkind == Hang || x.Subkind == LongStep {
				got += x.Text
			}
		}
		if got != test.want {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// A start of more than ten minutes is told by what took most of it; the parts add up to the whole. A shorter one is not told.
func TestLongStarts(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	for _, graphs := range []trace.Time{560, 60} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		at := begin
		for _, step := range []struct {
			took trace.Time // since the one before
			text string
		}{{0, "sets up communication"}, {30, "loads weights"}, {100, "has its weights, after 100 s"}, {20, "has its KV cache"}, {5, "captures graphs"}, {graphs, "has its graphs"}} {
			at += step.took * sec
			f.Instant(series.Instant{Time: at, Kind: series.Starting, Place: p, Line: 1, Count: 1}, step.text)
		}
		f.Instant(series.Instant{Time: at + 5*sec, Kind: series.Ready, Place: p, Line: 2, Count: 1}, "is ready")
		set.Finish(series.Known{})
		found := longStarts(telemetry.Measure(set, telemetry.Options{}))
		if long := graphs == 560; len(found) != 1 && long || len(found) != 0 && !long {
			t.Fatalf("%d s: %+v", graphs, found)
		} else if long && (found[0].Text != "a took 720 s to start, until 22:25:20: 560 s of it for its graphs" ||
			found[0].Evidence[0].Text != "besides: 100 s for its weights, 30 s for communication, 20 s for its KV cache, 5 s for its HTTP server, 5 s for what comes before its graphs") {
			t.Errorf("%+v", found[0])
		}
	}
}

// An exception as a collective times out is how a program learns of that; one of another time is a separate finding.
func TestExceptionOfACollective(t *testing.T) {
	const at = trace.Time(1_700_000_000e9)
	for later, want := range map[trace.Time]int{1e9: 0, 300e9: 1} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		f.Instant(series.Instant{Time: at, Kind: series.Timeout, Place: p, Line: 1, Count: 1}, "a collective timed out: ALLREDUCE number 7")
		f.Instant(series.Instant{Time: at + later, Kind: series.Traceback, Place: p, Line: 2, Count: 1}, "RuntimeError: the stream does not end")
		set.Finish(series.Known{})
		l := telemetry.Measure(set, telemetry.Options{})
		raised, _ := Failures(l)
		hangs, _ := Lives(l)
		if len(raised) != want || len(hangs) != 1 || !TimedOut(&hangs[0]) {
			t.Errorf("%d: raised %v, hangs %v", later, raised, hangs)
		}
	}
}
