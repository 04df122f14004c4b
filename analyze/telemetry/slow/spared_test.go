package slow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/series"
)

// If something stops saving work for a server, that is reported with its start. Caches that
// are still filling up, and small drops, are not.
func TestWorsened(t *testing.T) {
	type second struct {
		cached   float64 // share of the prompt tokens
		accepted float64
		running  int
		graph    string
		speed    float64
	}
	usual := second{0.85, 3, 40, "True", 1600}
	for _, test := range []struct {
		name string
		at   func(i int) second
		want []string
	}{
		{"nothing changes", func(int) second { return usual }, nil},
		{"the cache fills", func(i int) second {
			s := usual
			s.cached = 0.85 * min(1, float64(i)/80)
			return s
		}, nil},
		{"a little less is cached", func(i int) second {
			s := usual
			if i >= 100 {
				s.cached = 0.82
			}
			return s
		}, nil},
		{"nothing is cached any more, and tokens take longer", func(i int) second {
			s := usual
			if i >= 100 {
				s.cached, s.speed = 0.02, 900
			}
			return s
		}, []string{"since 13:45:40, 2.0 % of the tokens of prompts are cached on TP0, 85 % before: of each prompt, 6.53 times as many are computed", "a token takes 44.4 ms on TP0, 25 ms before"}},
		{"drafts are not accepted for a while", func(i int) second {
			s := usual
			if i >= 100 && i < 150 {
				s.accepted, s.speed = 1.2, 640
			}
			return s
		}, []string{"since 13:45:40, 1.20 tokens come out of a decode step of TP0, 3 before: fewer drafts are accepted", "a token takes 62.5 ms on TP0, 25 ms before"}},
		{"no draft is ever accepted", func(i int) second {
			s := usual
			s.accepted = 1
			return s
		}, []string{"TP0 accepts hardly any draft tokens: a decode step yields 1.00 tokens, and 1 without speculative decoding"}},
		{"nothing is drafted", func(i int) second {
			s := usual
			s.accepted = 0
			return s
		}, nil},
		{"batches are larger than the largest graph", func(i int) second {
			s := usual
			if i >= 100 {
				s.running, s.graph, s.speed = 170, "False", 3000
			}
			return s
		}, []string{"since 13:45:40, 0 % of the decode steps of TP0 run as a CUDA graph, 100 % before", "batches of up to 40 requests run as a graph, those of 170 and more do not"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			l := busyLog{now: time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)}
			for i := range 200 {
				s := test.at(i)
				prompt := 3000 + rng.Float64()*2000
				l.say(" TP0", "Prefill batch, #new-seq: 2, #new-token: %.0f, #cached-token: %.0f, token usage: 0.30, #running-req: %d, #queue-req: 0, ",
					prompt*(1-s.cached), prompt*s.cached, s.running)
				l.say(" TP0", "Decode batch, #running-req: %d, #token: 80000, token usage: 0.30, accept len: %.2f, accept rate: 0.70, cuda graph: %s, gen throughput (token/s): %.2f, #queue-req: 0, ",
					s.running, s.accepted, s.graph, s.speed)
				l.now = l.now.Add(time.Second)
			}
			found, check := slow.Worsened(measured(t, l.String()))
			var said []string
			for _, f := range found {
				said = append(said, f.Text)
				for _, e := range f.Evidence {
					said = append(said, e.Text)
				}
			}
			if (len(found) == 0) != (test.want == nil) || len(found) > 1 || check.N < 90 {
				t.Fatalf("says %q of %d intervals, want %q", said, check.N, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(fmt.Sprint(said), want) {
					t.Errorf("says %q, want %q", said, want)
				}
			}
		})
	}
}

// One row in series.Worsenings is enough to find since when a metric is worse.
func TestOneRowAddsAWorsening(t *testing.T) {
	old := series.Worsenings
	defer func() { series.Worsenings = old }()
	series.Worsenings = append(slices.Clone(old), series.Worsening{Name: "share of the clock", Metric: series.SwaUsage,
		Matters: func(before, after float64) bool { return before-after > 20 }, Says: "the pool of {at} is {after} full, {before} before"})
	l := busyLog{now: time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)}
	for i := range 200 {
		usage := 0.9
		if i >= 100 {
			usage = 0.4
		}
		l.say(" TP0", "Decode batch, #running-req: 9, #full token: 80000, full token usage: 0.30, #swa token: 9, swa token usage: %.2f, cuda graph: True, gen throughput (token/s): %d.00, #queue-req: 0, ", usage, 900+i%7)
		l.now = l.now.Add(time.Second)
	}
	found, _ := slow.Worsened(measured(t, l.String()))
	if want := "since 13:45:40, the pool of TP0 is 40 full, 90 before"; len(found) != 1 || found[0].Text != want {
		t.Errorf("found %+v, want %q", found, want)
	}
}

// Every worsening that package consequence names has a row in series.Worsenings.
func TestWorseningsHaveNames(t *testing.T) {
	for _, name := range []string{finding.CachedTokens, finding.StepYield, slow.GraphedSteps, slow.HostWork} {
		if !slices.ContainsFunc(series.Worsenings, func(w series.Worsening) bool { return w.Name == name }) {
			t.Errorf("no row of series.Worsenings is %q: analyze/consequence knows it by that name", name)
		}
	}
}

// While no prompts arrive, vLLM repeats the hit rate of its last ones: all of these lines are about one burst.
func TestHitRatesOfOneBurst(t *testing.T) {
	var log strings.Builder
	for k := range 40 {
		prompts, rate := 0.0, 85.0
		if k == 0 {
			prompts = 5000
		}
		if k >= 20 {
			prompts, rate = 3000, 50
		}
		fmt.Fprintf(&log, "INFO 06-06 13:%02d:%02d [loggers.py:248] Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: 300.0 tokens/s, Running: %d reqs, Waiting: 0 reqs, GPU KV cache usage: 30.0%%, Prefix cache hit rate: %.1f%%\n",
			10+k/6, k%6*10, prompts, 8+k%3, rate)
	}
	if found, _ := slow.Worsened(measured(t, log.String())); len(found) > 0 {
		t.Errorf("%s", found[0].Text)
	}
}
