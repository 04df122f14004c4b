package failed

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// Answers with errors cost their share of all requests, however rare they are, and at most the share of the time in which
// there were any. If the number of requests is unknown, so is the cost.
func TestErrorsCostTheirPart(t *testing.T) {
	const sec, begin, long = trace.Time(1e9), trace.Time(1_700_000_000e9), 3600
	for _, test := range []struct {
		name     string
		servers  int
		taken    float64 // requests per second
		errors   []int   // times of errors on the first server, s
		min, max float64
	}{
		{"two of many", 1, 0.5, []int{300, 3300}, 2. / 1802, 2. / 1802},
		{"one in a hundred", 2, 0.5, every(60, long), 60. / 3660, 60. / 3660},
		// A failure every second may be all requests or one in a thousand: the log is the same, so it tells no cost.
		{"two, of nobody knows how many", 1, 0, []int{300, 3300}, 0, 0},
		{"all the time, of nobody knows how many", 1, 0, every(1, long), 0, 0},
		{"all the time on one of two", 2, 0, every(1, long), 0, 0},
		{"all the time on one of two, of many", 2, 0.5, every(1, long), 0.49, 0.5},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := series.New(trace.NewSymbols(), &trace.Diags{})
			for i := range test.servers {
				f, p := fillServer(set, i)
				for at := range long {
					f.Line(int64(at) + 1)
					f.Add(f.Series(series.Running, p), begin+trace.Time(at)*sec, 7)
					if test.taken > 0 && at%int(1/test.taken) == 0 {
						f.Add(f.Series(series.NewSeqs, p), begin+trace.Time(at)*sec, 1)
					}
				}
				if i == 0 {
					for _, at := range test.errors {
						f.Add(f.Series(series.ServerErrors, p), begin+trace.Time(at)*sec, 1)
					}
				}
			}
			set.Finish(series.Known{})
			found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
			if len(found) != 1 || !strings.HasPrefix(found[0].Text, "a answers ") {
				t.Fatalf("found %v", found)
			}
			if cost := found[0].Cost; cost < test.min-1e-9 || cost > test.max+1e-9 || math.IsNaN(cost) {
				t.Errorf("costs %g, want %g to %g: %s", cost, test.min, test.max, found[0].Text)
			}
		})
	}
}

// Counters say how many requests there were: of these, failures are a part, whatever else is in the files. Of those in a single scrape, nobody knows
// when they were, so that they have no cost. Several counters of the same failures do not add up.
func TestCountedErrors(t *testing.T) {
	for since, want := range map[string]string{"": "a answers 20 of 80 requests with a server error at 22:13:20 costs 0.25", series.SinceBegun: "a failed 20 of 80 requests since it began, by its scrape at 22:13:20 costs 0"} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f, p := fillServer(set, 0)
		for _, x := range []struct {
			metric  series.MetricID
			counter string
			n       float64
		}{{series.ServerErrors, "by the gateway", 20}, {series.ServerErrors, "by the server", 12}, {series.Answers, "by the gateway", 80}} {
			f.Add(f.SeriesOf(series.Series{Metric: x.metric, Place: p, Label: set.Syms.Intern(x.counter + since)}), 1_700_000_000e9, x.n)
		}
		set.Finish(series.Known{})
		found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
		if len(found) != 1 {
			t.Fatalf("found %v", found)
		}
		if got := fmt.Sprintf("%s costs %g", found[0].Text, found[0].Cost); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func every(s, end int) (list []int) {
	for at := 0; at < end; at += s {
		list = append(list, at)
	}
	return list
}

// A single scrape reveals a server that aborted requests, if these are more than one in a hundred; one that aborted most is worse.
func TestOneScrapeOfAborts(t *testing.T) {
	for aborted, want := range map[float64]string{157: "warning: a aborted 157 requests since it was started, and counts 217 in all, at 22:13:20", 100: "info: a aborted 100 requests since it was started, and counts 217 in all, at 22:13:20", 2: ""} {
		for _, counters := range []map[string]float64{
			{"sglang:num_requests_total": 217, "sglang:num_aborted_requests_total": aborted},
			{"vllm:request_success_total finished_reason=stop": 217 - aborted, "vllm:request_success_total finished_reason=abort": aborted},
		} {
			set := series.New(trace.NewSymbols(), &trace.Diags{})
			f, p := fillServer(set, 0)
			for name, n := range counters {
				name, label, _ := strings.Cut(name, " ")
				x := series.Series{Metric: f.Metric(series.Metric{Name: name, Kind: series.Counter}), Place: p}
				if label != "" {
					x.Label = set.Syms.Intern(label)
				}
				f.Add(f.SeriesOf(x), 1_700_000_000e9, n)
			}
			set.Finish(series.Known{})
			found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
			var got string
			for _, f := range found {
				got += string(f.Severity) + ": " + f.Text
			}
			if got != want {
				t.Errorf("%g, %v: %q", aborted, counters, got)
			}
		}
	}
}

// A watchdog that gives up shows since when, at the latest, nothing came back. A process that aborts itself
// afterward is part of that finding.
func TestSinceAWatchdogWaits(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f, p := fillServer(set, 0)
	f.Instant(series.Instant{Time: 1_700_000_600e9, Kind: series.Timeout, Place: p, Line: 1, Count: 1}, "NCCL's watchdog itself is stuck for 600 s: a CUDA or NCCL call does not return")
	f.Instant(series.Instant{Time: 1_700_000_601e9, Kind: series.Exception, Place: p, Line: 2, Count: 1}, "a worker died with exit code -6 (aborted)")
	set.Finish(series.Known{})
	l := telemetry.Measure(set, telemetry.Options{})
	ends, _ := Failures(l)
	hangs, _ := Lives(l)
	if len(ends) != 0 || len(hangs) != 1 || hangs[0].Since != 1_700_000_000e9 || !strings.HasSuffix(hangs[0].Text, "at 22:23:20, so it has stood still since 22:13:20 or before") {
		t.Errorf("ends %v, hangs %v", ends, hangs)
	}
}

// A transfer that was given up shows since when its request had waited.
func TestSinceATransferWaits(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f, p := fillServer(set, 0)
	f.Instant(series.Instant{Time: 1_700_000_600e9, Kind: series.TransferFailed, Place: p, Line: 1, Count: 1}, "receiving the KV cache failed: it timed out after 600 s in WaitingForInput")
	set.Finish(series.Known{})
	found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
	if len(found) != 1 || found[0].Since != 1_700_000_000e9 || !strings.HasSuffix(found[0].Text, "at 22:23:20, so its request had waited since 22:13:20") {
		t.Errorf("%v", found)
	}
}

// A load generator counts the requests that failed; a run without that count failed only if no request succeeded.
func TestFailedRuns(t *testing.T) {
	for _, c := range []struct {
		completed, failed int
		want              string
	}{{100, 0, ""}, {0, 0, "no request of the run in a.txt succeeded"}, {90, 10, "10 of 100 requests of the run in a.txt failed"}} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		set.Fill("a.txt", "bench_serving summary")
		set.Runs = append(set.Runs, series.Run{Completed: c.completed, Failed: c.failed, Duration: 9, Line: 1})
		set.Finish(series.Known{})
		found, _ := Failures(telemetry.Measure(set, telemetry.Options{}))
		got := ""
		for _, f := range found {
			got += f.Text
		}
		if got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
