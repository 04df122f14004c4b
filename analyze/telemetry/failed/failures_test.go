package failed

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// fillServer begins the log of server a, b, and so on, and returns its place.
func fillServer(set *series.Set, i int) (f *series.Filler, place int32) {
	name := string(rune('a' + i))
	f = set.Fill(name+".log", "server log")
	return f, f.Place(series.Place{Server: f.Server(series.Server{Name: name, Role: "unified", Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
}

// A server that fails to start, and is restarted minutes later, is away for its share of the logged time: 400 of 1000 s.
func TestAwayBeforeTheFirstBatch(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f, p := fillServer(set, 0)
	f.Instant(series.Instant{Time: begin, Kind: series.Exception, Place: p}, "the engine: ValueError: no memory")
	f.Instant(series.Instant{Time: begin + 400*sec, Kind: series.Ready, Place: p}, "is ready")
	for at := 900; at <= 1000; at += 10 {
		f.Line(int64(at))
		f.Add(f.Series(series.Running, p), begin+trace.Time(at)*sec, 7)
	}
	set.Finish(series.Known{})
	if found, _ := Failures(telemetry.Measure(set, telemetry.Options{})); len(found) != 1 || math.Abs(found[0].Cost-0.4) > 0.01 {
		t.Errorf("%+v", found)
	}
}

// If memory runs out when an engine wakes up, others took it during its sleep. Otherwise, the setting of the
// engine leaves too little memory beside the KV cache. A line of vLLM's statistics covers the 10 s before it:
// right after a failure, it does not mean that batches go on.
func TestMemoryOfOneAsleep(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	for _, test := range []struct {
		said []said // one per 10 s; the last one runs out of memory
		want string
	}{
		{[]said{{series.Note, series.Sleeps}}, "it was asleep since 22:13:30: others may have taken the memory that it gave back"},
		{[]said{{series.Note, series.Sleeps}, {series.Note, series.Wakes}}, "its KV cache was 3.0 % full then, 3.0 % at most: the memory that ran out is what --gpu-memory-utilization leaves outside the KV cache"},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: "vLLM"}), Rank: trace.NoRank, GPU: series.NoGPU})
		at := begin
		for _, x := range append(test.said, said{series.OutOfMemory, "the device ran out of memory"}) {
			at += 10 * sec
			f.Instant(series.Instant{Time: at, Kind: x.kind, Place: p, Line: 1}, x.text)
		}
		for k, x := range []trace.Time{begin, begin + 5*sec, at + 2*sec} {
			f.Line(int64(k) + 2)
			f.Add(f.Series(series.KVUsage, p), x, 3)
			f.Add(f.Series(series.Generation, p), x, 50)
		}
		set.Finish(series.Known{})
		found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
		if len(found) != 1 || found[0].BasisText != sinceThen || !slices.ContainsFunc(found[0].Evidence, func(e finding.Evidence) bool { return e.Text == test.want }) {
			t.Errorf("%+v", found)
		}
	}
}

// A server that ends costs its share of the time of all servers, as long as others go on or until it is back. If
// no log goes on, it is unknown how long it was away, and the cost is all of the time since then.
func TestServersThatEndCostTheirPart(t *testing.T) {
	const sec, begin, end = trace.Time(1e9), trace.Time(1_700_000_000e9), 1000
	for _, test := range []struct {
		name    string
		servers int
		at      int // s
		back    int // s; 0 is never
		want    float64
		basis   string
	}{
		{"the only one, for good", 1, 500, 0, 1, sinceThen},
		{"the only one, until it is back", 1, 500, 600, 0.1, ""},
		{"one of four, for good", 4, 500, 0, 0.125, ""},
		{"one of four, until it is back", 4, 500, 700, 0.05, ""},
		{"one of four, at the end", 4, 999, 0, 1, sinceThen},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := series.New(trace.NewSymbols(), &trace.Diags{})
			for i := range test.servers {
				f, p := fillServer(set, i)
				for at := range end {
					if away := i == 0 && at > test.at && (test.back == 0 || at < test.back); away {
						continue
					}
					f.Line(int64(at) + 1)
					f.Add(f.Series(series.Running, p), begin+trace.Time(at)*sec, 7)
				}
				if i == 0 {
					f.Instant(series.Instant{Time: begin + trace.Time(test.at)*sec, Kind: series.Exception, Place: p}, "Scheduler: RuntimeError: it failed")
					if test.back > 0 {
						f.Instant(series.Instant{Time: begin + trace.Time(test.back)*sec, Kind: series.Ready, Place: p}, "is ready")
					}
				}
			}
			set.Finish(series.Known{})
			found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
			if len(found) != 1 {
				t.Fatalf("found %v", found)
			}
			if f := &found[0]; math.Abs(f.Cost-test.want) > 0.01 || f.BasisText != test.basis {
				t.Errorf("costs %g of %q, want %g of %q: %s", f.Cost, f.BasisText, test.want, test.basis, f.Text)
			}
		})
	}
}

// A server whose log has no batches has no time of which its end is a part: no cost, and not all.
func TestEndsOfUnknownCost(t *testing.T) {
	const at = trace.Time(1_700_000_000e9)
	for _, when := range []trace.Time{at, 0} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		f.Line(1)
		f.Instant(series.Instant{Time: when, Kind: series.Exception, Place: p, Line: 1, Count: 1}, "Scheduler: RuntimeError: it failed")
		set.Finish(series.Known{})
		if found, _ := Failures(telemetry.Measure(set, telemetry.Options{})); len(found) != 1 || found[0].Cost != 0 || found[0].BasisText != "" {
			t.Errorf("%+v", found)
		}
	}
}

// Of several exceptions at one time, one with a message leads one that is just a name.
func TestBareExceptionsFollow(t *testing.T) {
	const at = trace.Time(1_700_000_000e9)
	for first, second := range map[string]string{"TimeoutError": "TimeoutError: RPC call to execute_model timed out", "AssertionError": "RuntimeError: no pages are left"} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		f.Line(1)
		f.Instant(series.Instant{Time: at, Kind: series.Exception, Place: p, Line: 1, Count: 1}, "the engine: "+first)
		f.Instant(series.Instant{Time: at, Kind: series.Exception, Place: p, Line: 2, Count: 1}, "the engine: "+second)
		set.Finish(series.Known{})
		if found, _ := Failures(telemetry.Measure(set, telemetry.Options{})); len(found) != 1 || !strings.HasPrefix(found[0].Text, "a: the engine: "+second) {
			t.Errorf("%s: found %v", first, found)
		}
	}
}

// An exception that only follows from another does not lead: the news that a worker died, a process that is
// told to end, or a keyboard interrupt.
func TestWhatFollowsDoesNotLead(t *testing.T) {
	const at = trace.Time(1_700_000_000e9)
	for _, after := range []string{"a worker died with exit code 1", "a worker died with exit code -15 (SIGTERM)", "KeyboardInterrupt", "asyncio.exceptions.CancelledError",
		"RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}", "subprocess.CalledProcessError"} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		f.Line(1)
		f.Instant(series.Instant{Time: at, Kind: series.Exception, Place: p, Line: 1, Count: 1}, after)
		f.Instant(series.Instant{Time: at, Kind: series.Traceback, Place: p, Line: 2, Count: 1}, "RuntimeError: It is gone")
		set.Finish(series.Known{})
		if found, _ := Failures(telemetry.Measure(set, telemetry.Options{})); len(found) != 1 || found[0].Text != "a: RuntimeError: It is gone at 22:13:20" {
			t.Errorf("%s: found %v", after, found)
		}
	}
}

// The signal that killed a worker says more than what other processes then raise.
func TestKilledWorkerLeads(t *testing.T) {
	for text, want := range map[string]bool{"a worker died with exit code -9 (killed)": false, "a worker died with exit code 137 (killed)": false, "a worker died with exit code 1": true, "ChildProcessError: worker died": true} {
		if got := follows(text); got != want {
			t.Errorf("%s: only follows %v, want %v", text, got, want)
		}
	}
}

// If a watchdog gives up after another process of its server ended, it waited for that process, unless batches
// came in between, or the end has no reason of its own. Messages after an end are not its reason.
func TestWatchdogsWaitForWhatEnded(t *testing.T) {
	const at, min = trace.Time(1_700_000_000e9), trace.Time(60e9)
	const crash, hangs = "a: a segmentation fault at 22:13:20", "a: Scheduler did not return for 300 to 450 s, says its watchdog at 22:18:20"
	for _, test := range []struct {
		name    string
		kind    series.InstantKind
		end     string
		batches trace.Time // the last batch
		want    string
	}{
		{"a crash", series.Exception, "a segmentation fault", at, crash},
		{"batches follow", series.Exception, "a segmentation fault", at + min, crash + "; " + hangs},
		{"nothing tells why it ended", series.Crash, "was aborted", at, "a: was aborted at 22:13:20; " + hangs},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		for b := at - 3*min; b <= test.batches; b += min / 4 {
			f.Line(1)
			f.Add(f.Series(series.Generation, p), b, 3)
		}
		f.Line(2)
		f.Instant(series.Instant{Time: at, Kind: test.kind, Place: p, Line: 2, Count: 1}, test.end)
		f.Instant(series.Instant{Time: at + 2e9, Kind: series.Complaint, Place: p, Line: 3, Count: 1}, "an error: no answer")
		f.Instant(series.Instant{Time: at + 5*min, Kind: series.Timeout, Place: p, Line: 4, Count: 1}, "Scheduler did not return for 300 to 450 s, says its watchdog")
		set.Finish(series.Known{})
		l := telemetry.Measure(set, telemetry.Options{})
		failures, _ := Failures(l)
		lives, _ := Lives(l)
		var got []string
		for _, f := range append(failures, lives...) {
			text, _, _ := strings.Cut(f.Text, ", and logged")
			got = append(got, text)
		}
		if strings.Join(got, "; ") != test.want {
			t.Errorf("%s: found %q", test.name, got)
		}
	}
}

// A server that was told to end did not crash: SGLang says so about its processes, whoever told them to.
func TestToldToEnd(t *testing.T) {
	const at = trace.Time(1_700_000_000e9)
	for _, c := range []struct {
		told bool
		code string
		want string
	}{{true, "-15 (SIGTERM)", ""}, {false, "-15 (SIGTERM)", "a: detokenizer crashed with exit code -15 (SIGTERM) at 22:13:20"}, {true, "-11 (segmentation fault)", "a: detokenizer crashed with exit code -11 (segmentation fault) at 22:13:20"}} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		f.Line(1)
		if c.told {
			f.Instant(series.Instant{Time: at, Kind: series.Stopping, Place: p, Line: 1, Count: 1}, "was told to shut down (SIGTERM)")
		}
		f.Instant(series.Instant{Time: at, Kind: series.Crash, Place: p, Line: 2, Count: 1}, "detokenizer crashed with exit code "+c.code)
		set.Finish(series.Known{})
		found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
		if got := order.Each(found, func(f finding.Finding) string { return f.Text }); strings.Join(got, "; ") != c.want {
			t.Errorf("%+v: found %q", c, got)
		}
	}
}

// A transfer that failed right before an exception in code that depends on it is reported with that exception.
// Long before it, or if the exception is in other code, it is a finding of its own.
func TestTransfersThatEndProcesses(t *testing.T) {
	const at = trace.Time(1_700_000_000e9)
	for _, c := range []struct {
		before trace.Time // s
		raised string
		stack  string
		want   int
	}{{2, "AssertionError", "warmup (mooncake_store.py:2)", 1}, {200, "AssertionError", "warmup (mooncake_store.py:2)", 2}, {2, "AssertionError", "run_batch (scheduler.py:2)", 2},
		{1, "an exception without an end", "__init__ (scheduler.py:2)", 1}, {20, "an exception without an end", "__init__ (scheduler.py:2)", 2}} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		f.Line(1)
		f.Instant(series.Instant{Time: at - c.before*1e9, Kind: series.TransferFailed, Place: p, Line: 1, Count: 1}, "a Mooncake transfer timed out")
		f.Instant(series.Instant{Time: at, Kind: series.Exception, Place: p, Line: 2, Count: 1, Stack: set.Syms.Intern(c.stack)}, "Scheduler: "+c.raised)
		set.Finish(series.Known{})
		found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
		if len(found) != c.want || c.want == 1 && found[0].Text != "a: Scheduler: "+c.raised+" at 22:13:20, after a Mooncake transfer timed out" {
			t.Errorf("%+v: found %v", c, found)
		}
	}
}

// Requests that were aborted while they waited for their KV cache are reported, without an assumption about who
// aborted them. They are not reported if a KV cache failed to arrive.
func TestAbortedWhileWaiting(t *testing.T) {
	const at = trace.Time(1_700_000_000e9)
	for _, c := range []struct {
		lost bool
		want string
	}{{false, "a: a request was aborted while it waited for its KV cache at 22:13:20"}, {true, "a: receiving the KV cache failed at 22:13:20"}} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		f.Line(1)
		f.Instant(series.Instant{Time: at, Kind: series.ClientGone, Place: p, Line: 1, Count: 1}, series.AbortedWaiting+"for its KV cache")
		if c.lost {
			f.Instant(series.Instant{Time: at, Kind: series.TransferFailed, Place: p, Line: 2, Count: 1}, "receiving the KV cache failed")
		}
		set.Finish(series.Known{})
		if found, _ := Failures(telemetry.Measure(set, telemetry.Options{})); len(found) != 1 || found[0].Text != c.want {
			t.Errorf("%+v: found %v", c, found)
		}
	}
}

// If a decode server waits for an answer from a prefill server and then fails a health check, the
// missing answer leads. Another lost peer does not explain a failed health check.
func TestUnansweredQuestionsLead(t *testing.T) {
	const at = trace.Time(1_700_000_000e9)
	for told, want := range map[string]string{series.Untold + ": timed out": "does not tell where it takes transfers: timed out", "a decode server may be dead": "a health check failed"} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		f.Line(1)
		f.Instant(series.Instant{Time: at, Kind: series.Unhealthy, Place: p, Line: 1, Count: 1}, "a health check failed")
		f.Instant(series.Instant{Time: at + 23e9, Kind: series.PeerLost, Place: p, Line: 2, Count: 2}, told)
		set.Finish(series.Known{})
		l := telemetry.Measure(set, telemetry.Options{})
		hung, _ := Lives(l)
		found, _ := Failures(l)
		found = append(hung, found...) // those that stand still come first
		if len(found) == 0 || len(found)-len(hung) != 1 || !strings.Contains(found[0].Text, want) {
			t.Errorf("%s: found %v", told, found)
		}
	}
}

// The failure closest to the network leads, even if its stamp is later within the precision of whole seconds.
func TestWhyTransfersFailLeads(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f, p := fillServer(set, 0)
	const at = trace.Time(1_700_000_000e9)
	f.Line(1)
	f.Instant(series.Instant{Time: at, Kind: series.TransferFailed, Place: p, Line: 1, Count: 1}, "a Mooncake transfer failed")
	f.Instant(series.Instant{Time: at + 8e8, Kind: series.TransferFailed, Place: p, Line: 2, Count: 1}, "cannot connect to 10.0.0.9 for a transfer")
	set.Finish(series.Known{})
	found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
	if len(found) != 1 || !strings.Contains(found[0].Text, "cannot connect") {
		t.Fatalf("found %v", found)
	}
}

// An error that ends processes of several servers because peers did not answer is one finding, since their
// last batch. Other errors are separate findings.
func TestServersOfOneJob(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	for text, want := range map[string]int{"Scheduler: RuntimeError: DeepEP error: timeout (dispatch CPU)": 1, "Scheduler: ValueError: no": 2} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		for i := range 2 {
			f, p := fillServer(set, i)
			for at := range 300 {
				f.Add(f.Series(series.Running, p), begin+trace.Time(at)*sec, 7)
			}
			f.Instant(series.Instant{Time: begin + 400*sec, Kind: series.Exception, Place: p}, text)
		}
		set.Finish(series.Known{})
		found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
		if len(found) != want || want == 1 && found[0].Since != begin+299*sec {
			t.Errorf("%s: %+v", text, found)
		}
	}
}

// A router's error messages while it gives up a request are part of that finding. A router that
// restarts while servers work is reported.
func TestRouterGivesUpAndBeginsAnew(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f, p := fillServer(set, 0)
	for at := range 300 {
		f.Add(f.Series(series.Running, p), begin+trace.Time(at)*sec, 7)
	}
	f = set.Fill("r.log", "router log")
	router := f.Place(series.Place{Server: f.Server(series.Server{Name: "r.log", Role: "router"}), Rank: trace.NoRank, GPU: series.NoGPU})
	say := func(at int, kind series.InstantKind, text string) {
		f.Instant(series.Instant{Time: begin + trace.Time(at)*sec, Kind: kind, Place: router, Count: 1}, text)
	}
	say(1, series.Starting, "starts")
	say(100, series.Refusal, "gives up a request")
	say(101, series.Complaint, "an error: a stream ended")
	say(140, series.Complaint, "an error: something else")
	say(150, series.Starting, "starts")
	set.Finish(series.Known{})
	l := telemetry.Measure(set, telemetry.Options{})
	var got []string
	for _, find := range []func(*telemetry.Logged) ([]finding.Finding, finding.Check){Failures, Routing} {
		found, _ := find(l)
		for _, f := range found {
			got = append(got, f.Text)
		}
	}
	want := []string{"r.log: gives up a request at 22:15:00", "r.log: an error: something else at 22:15:40", "the router of r.log began anew at 22:15:50"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
