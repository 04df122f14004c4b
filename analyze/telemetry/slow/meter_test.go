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

// A ranksLoad is what a DP rank does in an interval of 15 s: requests that come, tokens of their prompts, the share of them that is cached, tokens of their answers, and the ms per token.
type ranksLoad struct{ come, prompt, cached, answer, token float64 }

// ranksOf returns scrapes of a server with four DP ranks. Its counters name the engine, as those of vLLM do, or count for all ranks, as SGLang's do.
func ranksOf(each bool, of func(rank, k int) ranksLoad) *telemetry.Logged {
	set := series.New(trace.NewSymbols(), &trace.Diags{})
	f := set.Fill("m", "Prometheus range")
	server := f.Server(series.Server{Name: "a", Engine: "vLLM", Role: "unified"})
	place := func(dp int) int32 {
		return f.Place(series.Place{Server: server, Rank: trace.Rank{DP: int16(dp), PP: -1, TP: -1, EP: -1, Global: trace.NoRank.Global}, GPU: series.NoGPU})
	}
	noise := rand.New(rand.NewPCG(5, 6))
	counts := map[int32]map[string]float64{}
	for k := range 80 {
		at := trace.Time(1_700_000_000+15*k) * 1e9
		for dp := range 4 {
			x, p := of(dp, k), place(dp)
			x.token *= 1 + 0.03*noise.NormFloat64()
			lasts := x.answer * x.token / 1e3
			running := x.come / 15 * lasts
			f.Add(f.Series(series.Running, p), at, running)
			f.Add(f.Series(series.Queued, p), at, 0)
			f.Add(f.Series(series.KVUsage, p), at, running)
			if !each {
				p = place(-1)
			}
			if counts[p] == nil {
				counts[p] = map[string]float64{}
			}
			c := counts[p]
			for name, n := range map[string]float64{"prompt_tokens_total": x.come * x.prompt, "cached_tokens_total": x.come * x.prompt * x.cached, "generation_tokens_total": x.come * x.answer, "time_to_first_token_seconds_count": x.come, "time_to_first_token_seconds_sum": x.come * 0.1,
				"inter_token_latency_seconds_count": x.come * x.answer, "inter_token_latency_seconds_sum": x.come * lasts, "e2e_request_latency_seconds_count": x.come, "e2e_request_latency_seconds_sum": x.come * (lasts + 0.1)} {
				c[name] += n
			}
		}
		for p, c := range counts {
			for name, n := range c {
				if of, ok := strings.CutSuffix(name, "_count"); ok {
					metric := map[string]series.MetricID{"time_to_first_token_seconds": series.TTFT, "inter_token_latency_seconds": series.ITL, "e2e_request_latency_seconds": series.E2E}[of]
					f.Add(f.SeriesOf(series.Series{Metric: metric, Place: p, Most: math.Inf(1)}), at, n)
				} else {
					f.Add(f.Series(f.Metric(series.Metric{Name: "vllm:" + name, Kind: series.Counter}), p), at, n)
				}
			}
		}
	}
	set.Finish(series.Known{})
	return telemetry.Measure(set, telemetry.Options{})
}

// What counters say is said of the ranks that they count: of one engine of vLLM, of all of them, or of a server whose counters name none.
func TestCountersNameTheirRanks(t *testing.T) {
	usual := ranksLoad{come: 30, prompt: 1000, cached: 0.5, answer: 200, token: 15}
	later := func(change func(rank int, x *ranksLoad)) func(rank, k int) ranksLoad {
		return func(rank, k int) ranksLoad {
			x := usual
			if k >= 40 {
				change(rank, &x)
			}
			return x
		}
	}
	for _, test := range []struct {
		name      string
		each      bool
		of        func(rank, k int) ranksLoad
		latencies string // how their text begins; "" is none
		demands   string
		worsened  string
	}{
		{"nothing changes", true, later(func(int, *ranksLoad) {}), "", "", ""},
		{"one engine is slower", true, later(func(rank int, x *ranksLoad) {
			if rank == 2 {
				x.token *= 1.7
			}
		}), "since 22:23:05, ITL is 25.4 ms on average on DP2, 15 ms before; about as many requests come as before: 2 a second, 2 before", "", ""},
		{"one engine is much slower", true, later(func(rank int, x *ranksLoad) {
			if rank == 2 {
				x.token *= 2.2
			}
		}), "since 22:23:05, ITL is 32.9 ms on average on DP2, 15 ms before", "", ""},
		{"one engine is a little slower", true, later(func(rank int, x *ranksLoad) {
			if rank == 2 {
				x.token *= 1.4
			}
		}), "since 22:23:05, ITL is 21 ms on average on DP2, 15 ms before", "", ""},
		{"all answers are longer", true, later(func(_ int, x *ranksLoad) { x.answer *= 2 }), "since 22:23:05, E2E is 6.1", "since 22:23:00, an answer has 400 tokens on DP", ""},
		{"all answers are longer, and nothing names ranks", false, later(func(_ int, x *ranksLoad) { x.answer *= 2 }), "since 22:23:05, E2E is 6.1", "since 22:23:00, an answer has 400 tokens on unified, 200 before", ""},
		{"more requests come, and nothing names ranks", false, later(func(_ int, x *ranksLoad) { x.come, x.token = 60, 20 }), "", "since 22:23:00, 16 requests a second come to unified, 8 before", ""},
		{"nothing is cached anymore", true, later(func(_ int, x *ranksLoad) { x.cached = 0 }), "", "", "since 22:23:00, 0 % of the tokens of prompts are cached on DP0, 50 % before"},
		{"nothing is cached anymore, and nothing names ranks", false, later(func(_ int, x *ranksLoad) { x.cached = 0 }), "", "", "since 22:23:00, 0 % of the tokens of prompts are cached on unified, 50 % before"},
	} {
		l := ranksOf(test.each, test.of)
		for i := range l.Ranks {
			if came, _ := l.Arrivals(&l.Ranks[i]); (came != nil) != test.each {
				t.Errorf("%s: arrivals of %s: %v", test.name, l.Ranks[i].Where.String(), came)
			}
		}
		latencies, _ := Latencies(l)
		demands, _ := Demands(l)
		if found, _ := Imbalances(l); len(found) > 0 {
			t.Errorf("%s: %q", test.name, texts(found))
		}
		worsened, _ := Worsened(l)
		for i, want := range [...]string{test.latencies, test.demands, test.worsened} {
			if got := texts([][]finding.Finding{latencies, demands, worsened}[i]); !strings.HasPrefix(got, want) || want == "" && got != "" {
				t.Errorf("%s: %q, want %q", test.name, got, want)
			}
		}
	}
}

// A server that hangs still answers scrapes. That one of its ranks has more requests then is no imbalance.
func TestHangIsNoImbalance(t *testing.T) {
	for hangs, want := range map[bool]int{false: 1, true: 0} {
		l := ranksOf(true, func(rank, k int) ranksLoad {
			x := ranksLoad{come: 30, prompt: 1000, answer: 200, token: 15}
			if rank == 1 && k >= 40 {
				x.come = 75
			}
			return x
		})
		if hangs {
			for _, p := range l.Ranks {
				for _, of := range p.Points {
					for b := 41; b < len(of); b++ {
						of[b] = of[40]
					}
				}
			}
		}
		if found, _ := Imbalances(l); len(found) != want {
			t.Errorf("hangs %t: %q", hangs, texts(found))
		}
	}
}
