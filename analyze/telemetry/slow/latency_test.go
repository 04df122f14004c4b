package slow

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/judge"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/series"
	"github.com/sgtrace/sgtrace/trace"
)

const second = trace.Time(1e9)

// bounds are the buckets of SGLang's TTFT histogram.
var bounds = []float64{0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, math.Inf(1)}

// A scrapedServer has requests in each interval of 15 s, and durations.
type scrapedServer struct {
	requests func(k int) int
	ttft     func(k int) float64 // s
	waits    func(k int) float64
	sum      bool                // has the counter of total seconds
	frontend bool                // has no metric of running requests
	transfer func(k int) float64 // s of this stage per request; nil is not exported
}

// found returns what n scrapes show about latencies and demand.
func (s scrapedServer) found(n int) (latencies, demands []finding.Finding) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("m", "test")
	p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: "vLLM"}), Rank: trace.NoRank, GPU: series.NoGPU})
	counter := func(name string) int32 {
		return f.Series(f.Metric(series.Metric{Name: "vllm:" + name, Kind: series.Counter}), p)
	}
	counts := make([]float64, len(bounds))
	took, prompts := 0.0, 0.0
	stages := map[string][]float64{"stage=prefill_forward": make([]float64, len(bounds)), "stage=prefill_transfer_kv_cache": make([]float64, len(bounds))}
	random := rand.New(rand.NewPCG(1, 2))
	for k := range n {
		at := trace.Time(1787000000+15*k) * second
		if !s.frontend {
			f.Add(f.Series(series.Running, p), at, 4)
			f.Add(f.Series(series.Queued, p), at, s.waits(k))
		}
		for b, most := range bounds {
			f.Add(f.SeriesOf(series.Series{Metric: series.TTFT, Place: p, Most: most}), at, counts[b])
		}
		if s.sum {
			f.Add(counter("time_to_first_token_seconds_sum"), at, took)
		}
		f.Add(counter("prompt_tokens_total"), at, prompts)
		f.Add(counter("generation_tokens_total"), at, prompts/10)
		noise := 0.95 + 0.1*random.Float64()
		for stage, of := range stages {
			takes := 0.15
			if s.transfer == nil {
				break
			} else if stage == "stage=prefill_transfer_kv_cache" {
				takes = s.transfer(k)
			}
			for b, most := range bounds {
				x := series.Series{Metric: f.Metric(series.Metric{Name: "sglang:per_stage_req_latency_seconds_bucket", Kind: series.Bucket}), Place: p, Label: set.Syms.Intern(stage), Most: most}
				if f.Add(f.SeriesOf(x), at, of[b]); takes <= most {
					of[b] += float64(s.requests(k))
				}
			}
		}
		for i := range s.requests(k) {
			v := s.ttft(k) * (0.8 + 0.1*float64(i%5)) * noise // 1 on average
			took, prompts = took+v, prompts+1000
			for b, most := range bounds {
				if v <= most {
					counts[b]++
				}
			}
		}
	}
	set.Finish(series.Known{})
	l := telemetry.Measure(set, telemetry.Options{})
	latencies, _ = Latencies(l)
	demands, _ = Demands(l)
	return latencies, demands
}

func jumps(at int, before, after float64) func(int) float64 {
	return func(k int) float64 {
		if k >= at {
			return after
		}
		return before
	}
}

// A latency that rises from some scrape on is found, with its means, whether the sum of seconds or only
// buckets are exported, even with few scrapes.
func TestLatencyOfHistograms(t *testing.T) {
	for _, test := range []struct {
		name     string
		n        int
		sum      bool
		off      float64 // maximum error of the means
		asked    string
		requests int // since the change
	}{
		{"sums", 40, true, 0.05, "about as many requests come as before: 1.33 a second", 20},
		{"buckets", 40, false, 0.15, "about as many requests come", 20},
		{"few scrapes", 10, true, 0.05, "about as many", 20},
		{"more requests", 40, true, 0.05, "more requests come: 2.67 a second, 1.33 before", 40},
	} {
		half := test.n / 2
		s := scrapedServer{requests: func(k int) int { return int(jumps(half, 20, float64(test.requests))(k)) }, ttft: jumps(half, 0.15, 0.9), waits: jumps(0, 0, 0), sum: test.sum}
		found, _ := s.found(test.n)
		if len(found) != 1 || !strings.Contains(found[0].Text, test.asked) {
			t.Errorf("%s: %v", test.name, found)
			continue
		}
		if m := found[0].Metric; math.Abs(m.Before/0.15e9-1) > test.off || math.Abs(m.After/0.9e9-1) > test.off {
			t.Errorf("%s: from %g to %g ns", test.name, m.Before, m.After)
		}
		if want := trace.Time(1787000000+15*half) * second; found[0].Since != want {
			t.Errorf("%s: since %d, want %d", test.name, found[0].Since, want)
		}
		if same := test.requests == 20; same != (found[0].Subkind == Slowed) || test.n == 40 != (found[0].Confidence != finding.Likely) {
			t.Errorf("%s: %s, %s", test.name, found[0].Subkind, found[0].Confidence)
		}
	}
}

// A frontend exports histograms, but nothing about batches.
func TestLatencyOfAFrontend(t *testing.T) {
	s := scrapedServer{frontend: true, requests: func(int) int { return 20 }, ttft: jumps(20, 0.15, 0.9), sum: true}
	if found, _ := s.found(40); len(found) != 1 || !strings.Contains(found[0].Text, "TTFT is 900 ms on average on unified, 152 ms before") {
		t.Errorf("%v", found)
	}
}

// Nothing is found if latencies stay the same, or fluctuate around a constant mean.
func TestSteadyLatencies(t *testing.T) {
	for _, n := range []int{6, 12, 60} {
		s := scrapedServer{requests: func(k int) int { return 15 + k%4 }, ttft: func(k int) float64 { return 0.3 * math.Exp(0.3*math.Sin(float64(7*k))) }, waits: jumps(0, 0, 0), sum: true}
		if latencies, demands := s.found(n); len(latencies)+len(demands) > 0 {
			t.Errorf("%d scrapes: %v %v", n, latencies, demands)
		}
	}
}

// A burst of requests is found as demand from histograms and counters alone. Additional waiting requests count as arrivals, too.
func TestDemandInMetrics(t *testing.T) {
	s := scrapedServer{requests: jumpsBack(20, 27, 90, 120), ttft: jumps(20, 0.15, 9), sum: true, waits: func(k int) float64 { return 200 * max(0, min(float64(k-20), 7)) }}
	_, demands := s.found(60)
	if len(demands) != 1 || !strings.Contains(demands[0].Text, "21.3 requests a second come to unified, 6 before") {
		t.Fatalf("%v", demands)
	}
	// Intervals of reports are aligned, and begin up to 15 s before a scrape.
	if at := trace.Time(1787000000) * second; at+300*second-demands[0].Since >= 15*second || at+405*second-demands[0].Until >= 15*second {
		t.Errorf("from %d to %d", demands[0].Since-at, demands[0].Until-at)
	}
}

func jumpsBack(from, to, before, after int) func(int) int {
	return func(k int) int {
		if k >= from && k < to {
			return after
		}
		return before
	}
}

// The stage that makes up most of the difference is named, if there is one.
func TestLatencyOfAStage(t *testing.T) {
	for _, test := range []struct {
		transfer func(k int) float64
		want     bool
	}{{jumps(20, 0.02, 0.7), true}, {jumps(0, 0, 0.02), false}, {jumps(20, 0.02, 0.15), false}, {nil, false}} {
		s := scrapedServer{requests: func(int) int { return 20 }, ttft: jumps(20, 0.15, 0.9), waits: jumps(0, 0, 0), sum: true, transfer: test.transfer}
		found, _ := s.found(40)
		if len(found) != 1 || strings.Contains(found[0].Text, "prefill_transfer_kv_cache takes about 700 ms on average on unified, 50 ms before; TTFT is ") != test.want || strings.Contains(found[0].Text, "prefill_forward") {
			t.Errorf("says %v", found)
		}
	}
}

// Each of two spells is reported with its time, and compared with the usual level outside of both,
// although waits during one are similar.
func TestTwoSpells(t *testing.T) {
	took := func(k int) float64 {
		switch {
		case k >= 40 && k < 52:
			return 2 + float64(k-40)
		case k >= 80 && k < 90:
			return 8
		}
		return 0.5
	}
	list, _ := scrapedServer{requests: func(int) int { return 40 }, ttft: took, waits: func(int) float64 { return 0 }, sum: true}.found(120)
	if len(list) != 2 {
		t.Fatalf("%d findings: %+v", len(list), list)
	}
	for i, want := range []struct{ from, to int }{{40, 52}, {80, 90}} {
		f := &list[i]
		at := func(k int) trace.Time { return trace.Time(1787000000+15*k) * second }
		if f.Since != at(want.from) || f.Until != at(want.to) || math.Abs(f.Metric.Before/0.5e9-1) > 0.06 || !strings.HasPrefix(f.Text, "from ") {
			t.Errorf("%d: from %v to %v, %+v: %s", i, f.Since, f.Until, f.Metric, f.Text)
		}
	}
}

// Answers whose lengths differ a lot are long by chance for a while, on a server with few requests.
func TestByLength(t *testing.T) {
	for name, c := range map[string]struct {
		metric   series.MetricID
		requests float64
		want     bool
	}{
		"few requests": {series.E2E, 8, true}, "many": {series.E2E, 800, false}, "of first tokens": {series.TTFT, 8, false},
	} {
		r := rise{metric: c.metric, Spell: judge.Spell{C: changepoint.Change{At: 10, To: 20}, Before: 2, After: 3}}
		for i := range 20 {
			mean := r.Before
			if i >= r.C.At {
				mean = r.After
			}
			mean += 2 / math.Sqrt(c.requests) * float64(1-2*(i%2)) // each takes 2 s more or less than the mean
			r.list = append(r.list, telemetry.Scraped{N: c.requests, Took: mean * c.requests})
		}
		if got := r.byLength(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
