package slow

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

// A served returns the demand on a server at a scrape in tokens per second, and the factor by which
// its steps are slower than usual.
type served func(k int) (asked, slower float64)

// levelsOf returns scrapes of servers whose tokens take 10 ms, plus 0.3 ms per request in the batch. As
// many requests run as are needed to meet the demand. With rates, they export the output tokens per second.
func levelsOf(engine string, rates bool, servers ...served) *telemetry.Logged {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("m", "Prometheus range")
	r := rand.New(rand.NewPCG(7, 7))
	for i, server := range servers {
		p := f.Place(series.Place{Server: f.Server(series.Server{Name: string(rune('a' + i)), Engine: engine, Role: "unified"}), Rank: trace.Rank{DP: -1, PP: -1, TP: 0, EP: -1}, GPU: series.NoGPU})
		for k := range 80 {
			at := trace.Time(1_700_000_000+15*k) * 1e9
			asked, slower := server(k)
			asked *= 1 + 0.2*r.NormFloat64()
			running := math.Max(1, math.Round(asked*0.010*slower/(1-math.Min(0.9, asked*0.0003*slower))))
			f.Add(f.Series(series.Running, p), at, running)
			f.Add(f.Series(series.Queued, p), at, 0)
			f.Add(f.Series(series.KVUsage, p), at, running/2)
			f.Add(f.Series(series.KVTokens, p), at, running*500)
			if rates {
				f.Add(f.Series(series.Generation, p), at, running/(slower*(0.010+0.0003*running)))
			}
		}
	}
	set.Finish(series.Known{})
	return telemetry.Measure(set, telemetry.Options{})
}

// Scrapes of gauges show that a server became slower: for the same number of output tokens, more
// requests run. Higher demand looks different.
func TestSlowerByLevels(t *testing.T) {
	for _, c := range []struct {
		name string
		of   served
		want string
	}{
		{"nothing changes", func(int) (float64, float64) { return 900, 1 }, ""},
		{"twice as slow from the 40th scrape on", func(k int) (float64, float64) { return 900, 1 + float64(k/40) }, "although no more come out"},
		{"more is asked", func(k int) (float64, float64) { return 900 * (1 + 1.2*float64(k/40)), 1 }, ""},
	} {
		found, _ := Slower(levelsOf("SGLang", true, c.of))
		got := texts(found)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
		for _, f := range found {
			const changed, scrape = trace.Time(1_700_000_000+15*40) * 1e9, trace.Time(15e9)
			if f.Confidence != "likely" || f.Since < changed-scrape || f.Since > changed+scrape {
				t.Errorf("%s: %s since %d", c.name, f.Confidence, f.Since/1e9)
			}
		}
	}
}

// If one of several servers that share work has a larger batch, it either gets more requests or has
// each for longer. The number of output tokens decides; without it, the reason is unknown.
func TestMoreInTheBatchOfOne(t *testing.T) {
	usual := func(int) (float64, float64) { return 900, 1 }
	slow := func(k int) (float64, float64) { return 900, 1 + float64(k/40) }
	more := func(k int) (float64, float64) { return 900 * (1 + 1.2*float64(k/40)), 1 }
	for _, c := range []struct {
		name   string
		engine string
		rates  bool
		one    served
		want   string
	}{
		{"slow", "SGLang", true, slow, "each stays longer there"},
		{"slow, of which nothing tells", "vLLM", false, slow, "more come to it, or each stays longer, which these metrics do not show"},
		{"gets more, of which nothing tells", "vLLM", false, more, "more come to it, or each stays longer, which these metrics do not show"},
		{"gets more", "SGLang", true, more, "since"},
		{"like the others", "vLLM", false, usual, ""},
	} {
		found, _ := Imbalances(levelsOf(c.engine, c.rates, usual, c.one, usual))
		got := texts(found)
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || c.name == "gets more" && strings.Contains(got, "longer") {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// A countingServer is a vLLM server with counters and a histogram: the requests per second, of 200 tokens each,
// the time per token, the share of aborted requests, and the number of accepted drafts out of three per step.
type countingServer struct {
	requests, token, aborted, accepted func(k int) float64
}

func (c countingServer) measured() *telemetry.Logged {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("m", "Prometheus range")
	p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: "vLLM", Role: "unified"}), Rank: trace.NoRank, GPU: series.NoGPU})
	counter := func(name, label string) int32 {
		return f.SeriesOf(series.Series{Metric: f.Metric(series.Metric{Name: "vllm:" + name, Kind: series.Counter}), Place: p, Label: set.Syms.Intern(label)})
	}
	r := rand.New(rand.NewPCG(9, 9))
	var ended, aborted, tokens, took, drafts, accepted float64
	for k := range 80 {
		at := trace.Time(1_700_000_000+15*k) * 1e9
		requests := c.requests(k) * (0.9 + 0.2*r.Float64())
		f.Add(f.Series(series.Running, p), at, math.Round(requests*200*c.token(k)))
		f.Add(f.Series(series.Queued, p), at, 0)
		f.Add(counter("request_success_total", "finished_reason=stop"), at, ended-aborted)
		f.Add(counter("request_success_total", "finished_reason=abort"), at, aborted)
		f.Add(counter("generation_tokens_total", ""), at, tokens)
		f.Add(counter("prompt_tokens_total", ""), at, 3*tokens)
		f.Add(counter("inter_token_latency_seconds_sum", ""), at, took)
		f.Add(f.SeriesOf(series.Series{Metric: series.ITL, Place: p, Most: math.Inf(1)}), at, tokens)
		f.Add(counter("spec_decode_num_drafts_total", ""), at, drafts)
		f.Add(counter("spec_decode_num_accepted_tokens_total", ""), at, accepted)
		ended, aborted = ended+15*requests, aborted+15*requests*c.aborted(k)
		tokens, took = tokens+15*requests*200, took+15*requests*200*c.token(k)
		steps := 15 * requests * 200 / (1 + c.accepted(k))
		drafts, accepted = drafts+steps, accepted+steps*c.accepted(k)
	}
	set.Finish(series.Known{})
	return telemetry.Measure(set, telemetry.Options{})
}

// vLLM's counters reveal what none of its lines does: slower tokens, rejected drafts, and requests that clients aborted.
func TestCountersOfVLLM(t *testing.T) {
	steady := countingServer{jumps(0, 3, 3), jumps(0, 0.02, 0.02), jumps(0, 0.01, 0.01), jumps(0, 2, 2)}
	for name, c := range map[string]struct {
		change func(*countingServer)
		want   string
	}{
		"nothing":       {func(*countingServer) {}, ""},
		"slower":        {func(c *countingServer) { c.token = jumps(40, 0.02, 0.04) }, "a token takes 40 ms on unified, 20 ms before, although no more come out"},
		"more requests": {func(c *countingServer) { c.requests = jumps(40, 3, 7) }, ""},
		"aborts":        {func(c *countingServer) { c.aborted = jumps(40, 0.01, 0.3) }, "30 % of the requests that end on unified are aborted, 1.0 % before"},
		"rejects":       {func(c *countingServer) { c.accepted = jumps(40, 2, 0.2) }, "1.20 tokens come out of a decode step of unified, 3 before"},
	} {
		server := steady
		c.change(&server)
		l := server.measured()
		slower, _ := Slower(l)
		worse, _ := Worsened(l)
		if got := texts(append(slower, worse...)); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A server that never runs more than 12 requests while others wait is at a limit, even if it ran more before that limit was set.
func TestLowerLimit(t *testing.T) {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("m", "Prometheus range")
	p := f.Place(series.Place{Server: f.Server(series.Server{Name: "a", Engine: "vLLM", Role: "unified"}), Rank: trace.NoRank, GPU: series.NoGPU})
	for k := range 80 {
		at, running, queued := trace.Time(1_700_000_000+15*k)*1e9, 20+float64(k%7), 0.0
		if k >= 40 {
			running, queued = 12, float64(3*(k-40))
		}
		f.Add(f.Series(series.Running, p), at, running)
		f.Add(f.Series(series.Queued, p), at, queued)
	}
	set.Finish(series.Known{})
	if found, _ := Limits(telemetry.Measure(set, telemetry.Options{})); !strings.Contains(texts(found), "unified is stuck at 12 running requests (max running requests?)") {
		t.Errorf("%q", texts(found))
	}
}

func texts(found []finding.Finding) string {
	var text strings.Builder
	for _, f := range found {
		text.WriteString(f.Text + "\n")
	}
	return text.String()
}
