package failed

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A server whose log ends before the others do is reported: as ended if the others take over its
// work, or if the kernel killed a process at that time, and otherwise as possibly ended. Logs that
// were collected one after another, idle servers, and those that were told to end are not reported.
func TestLogsThatEnd(t *testing.T) {
	const sec, begin, end = trace.Time(1e9), trace.Time(1_700_000_000e9), 600
	type log struct {
		until int // s
		rate  func(at int) float64
		runs  float64
		says  series.InstantKind // at the end; Note means nothing
	}
	steady := func(int) float64 { return 3 }
	moved := func(at int) float64 {
		if at < 300 {
			return 3
		}
		return 4.5
	}
	healthy := log{until: end, rate: steady, runs: 7}
	for _, test := range []struct {
		name     string
		logs     []log
		kill     int // s, when the kernel killed a process; 0 is never, and negative is at an unknown time
		want     string
		severity finding.Severity
		cost     bool
	}{
		{"all go on", []log{healthy, healthy, healthy}, 0, "", "", false},
		{"what it did goes to others", []log{{until: 300, rate: steady, runs: 7}, {until: end, rate: moved, runs: 7}, {until: end, rate: moved, runs: 7}}, 0,
			"the log of a ends at 22:18:19 with 7 requests in its batch, while those of 2 others go on until 22:23:19: they have taken over its work since then", finding.Critical, true},
		{"nothing tells", []log{{until: 300, rate: steady, runs: 7}, healthy, healthy}, 0, "it may have ended, it may be stuck, or its log was collected earlier", finding.Info, false},
		{"a moment earlier", []log{{until: 570, rate: steady, runs: 7}, healthy, healthy}, 0, "", "", false},
		{"collected one after the other", []log{{until: 400, rate: steady, runs: 7}, {until: 500, rate: steady, runs: 7}, healthy}, 0, "", "", false},
		{"nothing to do", []log{{until: 300, rate: steady}, healthy, healthy}, 0, "", "", false},
		{"told to end", []log{{until: 300, rate: steady, runs: 7, says: series.Stopping}, healthy, healthy}, 0, "", "", false},
		{"killed by the kernel", []log{{until: 300, rate: steady, runs: 7}, healthy, healthy}, 301,
			"a: the kernel killed process 7 (sglang::schedul), because the host ran out of memory at 22:18:21", finding.Critical, true},
		{"killed by the kernel, who knows when", []log{{until: 300, rate: steady, runs: 7}, healthy, healthy}, -1,
			"a: the kernel killed process 7 (sglang::schedul), because the host ran out of memory at an unknown time", finding.Critical, true},
		{"killed by the kernel as all ends", []log{healthy}, end + 1, "a: the kernel killed process 7 (sglang::schedul), because the host ran out of memory at 22:23:21", finding.Critical, true},
		{"all end as the kernel kills a process", []log{healthy, healthy}, end + 1, "dmesg: the kernel killed process 7 (sglang::schedul)", finding.Critical, false},
		{"a process that no server misses, who knows when", []log{healthy, healthy, healthy}, -1, "dmesg: the kernel killed process 7 (sglang::schedul)", finding.Warning, false},
		{"a process that no server misses", []log{healthy, healthy, healthy}, 301, "dmesg: the kernel killed process 7 (sglang::schedul)", finding.Warning, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := series.New(trace.NewSymbols(), &trace.Diags{})
			for i, x := range test.logs {
				f, p := fillServer(set, i)
				carry := 0.0
				for at := range x.until {
					f.Line(int64(at) + 1)
					for carry += x.rate(at); carry >= 1; carry-- {
						f.Add(f.Series(series.NewSeqs, p), begin+trace.Time(at)*sec, 1)
					}
					f.Add(f.Series(series.Running, p), begin+trace.Time(at)*sec, x.runs)
					f.Add(f.Series(series.Generation, p), begin+trace.Time(at)*sec, 100*x.runs)
				}
				if x.says != series.Note {
					f.Instant(series.Instant{Time: begin + trace.Time(x.until-1)*sec, Kind: x.says, Place: p}, "was told to end")
				}
			}
			if test.kill != 0 {
				f := set.Fill("logs/dmesg", "kernel log")
				p := f.Place(series.Place{Server: f.Server(series.Server{}), Rank: trace.NoRank, GPU: series.NoGPU})
				at := begin + trace.Time(test.kill)*sec
				if test.kill < 0 {
					at = 0
				}
				f.Instant(series.Instant{Time: at, Kind: series.Crash, Place: p}, "the kernel killed process 7 (sglang::schedul), because the host ran out of memory")
			}
			set.Finish(series.Known{})
			l := telemetry.Measure(set, telemetry.Options{})
			found, check := Endings(l)
			killed, _ := Failures(l)
			if (check.Reason != "") != (len(test.logs) < 2) || check.N != len(test.logs) {
				t.Errorf("%+v", check)
			}
			found = append(found, killed...)
			switch {
			case test.want == "" && len(found) == 0:
			case len(found) != 1:
				t.Fatalf("%d findings: %v", len(found), found)
			case !strings.Contains(found[0].Text, test.want) || found[0].Severity != test.severity && found[0].Severity != "" || (found[0].Cost > 0) != test.cost:
				t.Errorf("%s, costs %g: %s", found[0].Severity, found[0].Cost, found[0].Text)
			case test.cost && found[0].BasisText != sinceThen && (found[0].Cost < 0.15 || found[0].Cost > 0.18): // half of the time of one of three servers
				t.Errorf("costs %g", found[0].Cost)
			}
		})
	}
}

// Servers that end at different times without a message are separate findings: the other logs all end at the same time.
func TestLogsThatEndAtDifferentTimes(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	for _, test := range []struct {
		until []int   // s
		last  float64 // number of requests in the last batch
		want  []string
		end   string
	}{
		{[]int{200, 400, 600, 600}, 7, []string{"the log of b ends at 22:19:59", "the log of a ends at 22:16:39"}, "so it ended or is stuck"},
		{[]int{200, 600, 600}, 1, []string{"the log of a ends at 22:16:39"}, "so it ended or is stuck, or gets no more requests"},
		{[]int{300, 400, 500, 600}, 7, nil, ""}, // collected one after another
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		for i, until := range test.until {
			f, p := fillServer(set, i)
			for at := range until {
				alive := 0.0
				for _, o := range test.until {
					if at < o {
						alive++
					}
				}
				f.Line(int64(at) + 1)
				f.Add(f.Series(series.NewSeqs, p), begin+trace.Time(at)*sec, 12/alive)
				running := 7.0
				if at == until-1 {
					running = test.last
				}
				f.Add(f.Series(series.Running, p), begin+trace.Time(at)*sec, running)
				f.Add(f.Series(series.Generation, p), begin+trace.Time(at)*sec, 700)
			}
		}
		set.Finish(series.Known{})
		found, _ := Endings(telemetry.Measure(set, telemetry.Options{}))
		if len(found) != len(test.want) {
			t.Fatalf("%v: %d findings: %v", test.until, len(found), found)
		}
		for i, want := range test.want {
			if !strings.HasPrefix(found[i].Text, want) || !strings.HasSuffix(found[i].Text, test.end) {
				t.Errorf("says %s, want %s", found[i].Text, want)
			}
		}
	}
}

// A server that logs no more batches stands still if requests arrive and its log goes on. It does not if
// the clients of its waiting requests gave up.
func TestServersThatStandStill(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	for came, want := range map[int32]string{2: "a has stood still since 22:13:39, with 3 requests in its batch and 1 waiting: its log goes on until 22:19:59 without a batch, although 2 more requests came", 0: ""} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		for at := range 20 {
			f.Line(int64(at) + 1)
			f.Add(f.Series(series.Running, p), begin+trace.Time(at)*sec, 3)
			f.Add(f.Series(series.Queued, p), begin+trace.Time(at)*sec, 1)
		}
		if came > 0 {
			f.Instant(series.Instant{Time: begin + 200*sec, Kind: series.Note, Place: p, Line: 30, Count: came}, series.NoBatch)
		}
		f.Saw(begin + 399*sec)
		set.Finish(series.Known{})
		var got string
		found, _ := Lives(telemetry.Measure(set, telemetry.Options{}))
		for _, f := range found {
			got += f.Text
		}
		if got != want {
			t.Errorf("%d came: %q", came, got)
		}
	}
}

// A vLLM server whose lines show running requests but no tokens stands still. If its log also goes on without such
// lines, as that of an idle server does, that is less certain. A server without running requests has nothing to do.
func TestVLLMThatComputesNothing(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	for _, c := range []struct {
		name    string
		running float64 // in lines without tokens
		lines   int     // number of such lines
		goesOn  bool
		ends    trace.Time // s after the last line
		want    string
	}{
		{"lines to the end", 9, 8, false, 0, "DP0 has stood still since 22:14:50, with 9 requests in its batch and 2 waiting: until 22:16:10, when the log ends, it computes no token certain"},
		{"one line, and the log goes on", 9, 1, false, 300, "DP0 has stood still since 22:14:50, with 9 requests in its batch and 2 waiting: until 22:20:00, when the log ends, it computes no token likely"},
		{"it goes on itself", 9, 8, true, 0, "DP0 stood still from 22:14:50, with 9 requests in its batch and 2 waiting: until 22:16:10, it computes no token certain"},
		{"one line, and it goes on itself", 9, 1, true, 0, "DP0 stood still from 22:14:50, with 9 requests in its batch and 2 waiting: until 22:15:00, it computes no token likely"},
		{"one line with few requests, whose clients may have given up", 3, 1, true, 0, ""},
		{"several lines of a slow server", 9, 2, true, 0, ""},
		{"fewer requests: those that decoded have ended", 1, 8, false, 0, "DP0 has stood still since 22:14:50, with 1 request in its batch and 2 waiting: until 22:16:10, when the log ends, it computes no token likely"},
		{"nothing runs", 0, 8, false, 300, ""},
		{"the log ends", 9, 2, false, 0, ""},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("a.log", "server log")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: "vLLM"}), Rank: trace.Rank{DP: 0, PP: -1, TP: -1, EP: -1}, GPU: series.NoGPU})
		at, line := trace.Time(begin), int64(0)
		add := func(tokens, prompts, running float64) {
			line++
			f.Line(line)
			for _, v := range []struct {
				of    series.MetricID
				value float64
			}{{series.PrefillRate, prompts}, {series.Generation, tokens}, {series.Running, running}, {series.Queued, 2}} {
				f.Add(f.Series(v.of, p), at, v.value)
			}
			at += 10 * sec
		}
		for range 10 {
			add(100, 40, 9)
		}
		for range c.lines {
			add(0, 0, c.running)
		}
		if c.goesOn {
			for range 10 {
				add(100, 40, 9)
			}
		}
		f.Saw(at + (c.ends-10)*sec)
		set.Finish(series.Known{})
		var got string
		found, _ := Lives(telemetry.Measure(set, telemetry.Options{}))
		for _, f := range found {
			got += f.Text + " " + string(f.Confidence)
		}
		if got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// Gauges alone show that a server stands still, since decoding would change them. SGLang without rank labels may be idle.
func TestLevelsThatStandStill(t *testing.T) {
	const sec, begin = trace.Time(1e9), trace.Time(1_700_000_000e9)
	for _, c := range []struct {
		engine string
		tp     int16
		stops  int // at this scrape
		want   string
	}{
		{"SGLang", 0, 20, "a has stood still since 22:18:10, with 5 requests in its batch: in 20 scrapes until 22:23:10, neither its batch nor its KV cache changed certain"},
		{"SGLang", -1, 20, "a has stood still since 22:18:10, with 5 requests in its batch: in 20 scrapes until 22:23:10, neither its batch nor its KV cache changed likely"},
		{"vLLM", -1, 20, "a has stood still since 22:18:10, with 5 requests in its batch: in 20 scrapes until 22:23:10, neither its batch nor its KV cache changed likely"},
		{"SGLang", 0, 40, ""},
		{"SGLang", 0, 37, ""}, // within a minute
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("m", "Prometheus text")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: c.engine}), Rank: trace.Rank{DP: -1, PP: -1, TP: c.tp, EP: -1}, GPU: series.NoGPU})
		for k := range 40 {
			at := begin + trace.Time(k)*15*sec + 5*sec
			n := min(k, c.stops-1)
			f.Add(f.Series(series.Running, p), at, 5)
			f.Add(f.Series(series.KVUsage, p), at, float64(n)/100)
			if c.engine == "SGLang" {
				f.Add(f.Series(series.KVTokens, p), at, float64(1000+n))
			}
		}
		set.Finish(series.Known{})
		var got string
		found, _ := Restarts(telemetry.Measure(set, telemetry.Options{}))
		for _, f := range found {
			got += f.Text + " " + string(f.Confidence)
		}
		if got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
