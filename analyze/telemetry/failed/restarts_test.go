package failed

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

// A server that restarts counts from 0. A single counter that falls, or missing scrapes, are not a restart.
func TestRestarts(t *testing.T) {
	const begin, step, n = 1787000000, 15, 40
	// counted returns the value of a server's counter at scrape k; false is no scrape.
	type counted func(server, k int) (value float64, ok bool)
	went := func(k int) float64 { return 1000 + 100*float64(k) }
	on := func(_, k int) (float64, bool) { return went(k), true }
	for _, test := range []struct {
		name            string
		requests, waits counted
		want            []string
		silent          bool
	}{
		{"all counters go on", on, on, nil, true},
		{"all begin anew after 6 scrapes without an answer", func(server, k int) (float64, bool) {
			if server == 0 && k >= 20 {
				return 100 * float64(k-26), k >= 26
			}
			return went(k), true
		}, nil, []string{"a was started again between 20:58:05 and 20:59:50", "generation_tokens_total was 2,900 at 20:58:05, and 0 at 20:59:50", "no scrape between 20:58:05 and 20:59:50", "7 requests ran and 3 waited on it at 20:58:05"}, false},
		{"one counter falls", func(server, k int) (float64, bool) {
			if server == 0 && k >= 20 {
				return 100 * float64(k-20), true
			}
			return went(k), true
		}, on, nil, true},
		{"counts of two processes come in turn", func(_, k int) (float64, bool) { return went(k) * (0.2 + 0.8*float64(k%2)), true }, nil, nil, true},
		{"a server has no scrapes for a while", func(server, k int) (float64, bool) { return went(k), server != 0 || k < 20 || k > 28 }, nil,
			[]string{"a has no scrapes between 20:58:05 and 21:00:35, while 1 other server has: its counters went on"}, false},
		{"nobody has scrapes for a while", func(_, k int) (float64, bool) { return went(k), k < 20 || k > 28 }, nil, nil, true},
		{"a server has no scrapes any more", func(server, k int) (float64, bool) { return went(k), server != 0 || k < 20 }, nil,
			[]string{"a has no scrapes since 20:58:05, while 1 other server has: it may have ended"}, false},
		{"nothing grows any more, with requests in the batch", func(server, k int) (float64, bool) {
			if server == 0 {
				return went(min(k, 20)), true
			}
			return went(k), true
		}, nil, []string{"a has stood still since 20:58:20, with 7 requests in its batch: in 19 scrapes until 21:03:05, nothing that it counts grew"}, false},
		{"nothing ever grew", func(int, int) (float64, bool) { return 0, true }, nil, nil, true},
		{"one of its counters grows", func(server, k int) (float64, bool) { return went(min(k, 20)), true }, on, nil, true},
		{"a counter of seconds is soon larger than ever", func(server, k int) (float64, bool) {
			if server == 0 && k >= 20 {
				return 100 * float64(k-20), true
			}
			return went(k), true
		}, nil, []string{"a was started again between 20:58:05 and 20:58:20"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			set := series.New(trace.NewSymbols(), &trace.Diags{})
			f := set.Fill("m", "test")
			for server, name := range []string{"a", "b"} {
				p := f.Place(series.Place{Server: f.Server(series.Server{Name: name, Engine: "vLLM"}), Rank: trace.NoRank, GPU: series.NoGPU})
				if test.waits == nil {
					test.waits = test.requests
				}
				for k := range n {
					at := trace.Time(begin+step*k) * 1e9
					for i, counter := range []string{"vllm:generation_tokens_total", "vllm:waits_total"} {
						if v, ok := []counted{test.requests, test.waits}[i](server, k); ok {
							f.Add(f.Series(f.Metric(series.Metric{Name: counter, Kind: series.Counter}), p), at, v)
						}
					}
					if v, ok := test.requests(server, k); ok {
						f.Add(f.Series(series.Running, p), at, 7)
						f.Add(f.Series(series.Queued, p), at, 3)
						if v < went(k) {
							v = math.Pow(v, 3)
						}
						f.Add(f.Series(f.Metric(series.Metric{Name: "vllm:queue_time_seconds_sum", Kind: series.Counter}), p), at, v)
					}
				}
			}
			set.Finish(series.Known{})
			found, check := Restarts(telemetry.Measure(set, telemetry.Options{}))
			if check.Reason != "" || check.N < 20 {
				t.Errorf("%+v", check)
			}
			var text strings.Builder
			for _, f := range found {
				text.WriteString(f.Text + "\n")
				for _, e := range f.Evidence {
					text.WriteString(e.Text + "\n")
				}
			}
			for _, want := range test.want {
				if !strings.Contains(text.String(), want) {
					t.Errorf("lacks %q:\n%s", want, text.String())
				}
			}
			if test.silent && len(found) > 0 || len(found) > 1 {
				t.Errorf("says\n%s", text.String())
			}
		})
	}
}

// One panel of a dashboard is enough to show that a server no longer has values.
func TestOnePanelThatEnds(t *testing.T) {
	const begin = trace.Time(1_700_000_000e9)
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	for server, n := range []int{40, 20} {
		f := set.Fill("m", "panel")
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: string(rune('a' + server)), Engine: "SGLang"}), Rank: trace.NoRank, GPU: series.NoGPU})
		for k := range n {
			f.Add(f.Series(series.Generation, p), begin+trace.Time(k)*30e9, 2000+float64(k%3))
		}
	}
	set.Finish(series.Known{})
	found, _ := Restarts(telemetry.Measure(set, telemetry.Options{}))
	if len(found) != 1 || !strings.HasPrefix(found[0].Text, "b has no scrapes since 22:22:50, while 1 other server has") || len(found[0].Evidence) != 0 {
		t.Errorf("found %v", found)
	}
}

// If a server's scrapes end, the finding says whether another server took over its work, or whether perhaps
// only the scrapes stopped. A server that stands still for a while continues afterward.
func TestServersThatGoAway(t *testing.T) {
	const sec, begin, away, n = trace.Time(1e9), trace.Time(1_700_000_000e9), 40, 60
	for _, c := range []struct {
		name  string
		rate  func(server, k int) float64 // requests between scrapes k and k+1
		ends  bool
		want  string
		found finding.Confidence
	}{
		{"its work goes to the other", func(server, k int) float64 { return 60 + 60*float64(k/away*(1-server)) }, true,
			"b has no scrapes since 22:23:05, while 1 other server has: they have taken over its work since then: it ended, or is unreachable", finding.Likely},
		{"the other has as much to do", func(int, int) float64 { return 60 }, true,
			"b has no scrapes since 22:23:05, while 1 other server has: it may have ended, or only the scrapes stopped", finding.Certain},
		{"it stands still", func(server, k int) float64 { return 60 * float64(1-server*(k/20%2)) }, false,
			"b stood still from 22:18:20, with 5 requests in its batch: in 20 scrapes until 22:23:20, nothing that it counts grew", finding.Likely},
	} {
		set := series.New(trace.NewSymbols(), &trace.Diags{})
		f := set.Fill("m", "test")
		random := rand.New(rand.NewPCG(1, 2))
		for server, name := range []string{"a", "b"} {
			p := f.Place(series.Place{Server: f.Server(series.Server{Name: name, Engine: "vLLM"}), Rank: trace.NoRank, GPU: series.NoGPU})
			came := 100.
			for k := range n {
				if c.ends && server == 1 && k >= away {
					break
				}
				at := begin + trace.Time(k)*15*sec
				f.Add(f.Series(series.Running, p), at, 5)
				f.Add(f.Series(series.Queued, p), at, 0)
				f.Add(f.Series(series.KVUsage, p), at, 30)
				for _, most := range []float64{1, math.Inf(1)} {
					f.Add(f.SeriesOf(series.Series{Metric: series.TTFT, Place: p, Most: most}), at, came)
				}
				f.Add(f.Series(f.Metric(series.Metric{Name: "vllm:generation_tokens_total", Kind: series.Counter}), p), at, 100*came)
				came += math.Round(c.rate(server, k) * (0.9 + 0.2*random.Float64()))
			}
		}
		set.Finish(series.Known{})
		found, _ := Restarts(telemetry.Measure(set, telemetry.Options{}))
		if len(found) != 1 || found[0].Text != c.want || found[0].Confidence != c.found {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}
