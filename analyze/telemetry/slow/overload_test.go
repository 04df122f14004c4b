package slow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
)

// A queue grows because demand rises while the server does at least as much as before, or because the
// server does less. The simulated queue is exact to the second, and lines come every 10 s, like vLLM's.
func TestOverload(t *testing.T) {
	type second struct{ asked, done, running, prompts, kv float64 } // requests per second, running requests, tokens per second, %
	for _, test := range []struct {
		name       string
		at         func(i int) second
		more, less string
	}{
		{"as much as it does", func(int) second { return second{4, 4, 20, 4000, 30} }, "", ""},
		{"twice as much is asked", func(i int) second {
			if i < 400 {
				return second{3.8, 4, 60, 4000, 30}
			}
			return second{8, 4, 64, 4000, 30}
		}, "since 00:06:40, DP0 gets more work than it completes: 1884 requests wait at 00:14:30 (", ""},
		{"more is asked than it does, all the time", func(int) second { return second{5, 4, 64, 4000, 30} },
			"from the start, DP0 gets more work than it completes: 851 requests wait at 00:14:10 (1.00 at first), while it generates as many tokens the whole time: 800 a second", ""},
		{"it does half of what it did, and as much is asked", func(i int) second {
			if i < 400 {
				return second{4, 4, 30, 4000, 15}
			}
			return second{4, 2, 64, 2000, 31}
		}, "", "since 00:06:40, DP0 generates 400 tokens a second, 800 before, although requests wait"},
		{"it computes more of prompts, and so generates less", func(i int) second {
			if i < 400 {
				return second{4, 4, 30, 4000, 15}
			}
			return second{4, 2, 64, 9000, 31}
		}, "prompts of 9000 tokens a second are computed on DP0, 4000 before", ""},
		{"contexts are longer, and fewer requests run", func(i int) second {
			if i < 400 {
				return second{4, 4, 40, 4000, 40}
			}
			return second{4, 2, 20, 2000, 95}
		}, "", ""},
		{"a burst is worked off", func(i int) second {
			if i >= 400 && i < 420 {
				return second{12, 4, 64, 4000, 30}
			}
			return second{3.5, 4, 60, 4000, 30}
		}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var text strings.Builder
			queue, begin := 0.0, time.Date(2026, 6, 6, 0, 0, 0, 0, time.UTC)
			for i := range 900 {
				s := test.at(i)
				queue = max(0, queue+s.asked-s.done)
				if i%10 == 0 {
					fmt.Fprintf(&text, "(APIServer pid=1) INFO %s [loggers.py:271] Engine 000: Avg prompt throughput: %.1f tokens/s, Avg generation throughput: %.1f tokens/s, Running: %.0f reqs, Waiting: %.0f reqs, GPU KV cache usage: %.1f%%, Prefix cache hit rate: 0.0%%\n",
						begin.Add(time.Duration(i)*time.Second).Format("01-02 15:04:05"), s.prompts, 200*s.done, s.running, queue, s.kv)
				}
			}
			l := measured(t, text.String())
			demands, _ := slow.Demands(l)
			slower, _ := slow.Slower(l)
			for _, x := range []struct {
				want, of string
			}{{test.more, said(demands)}, {test.less, said(slower)}} {
				if !strings.Contains(x.of, x.want) || x.want == "" && x.of != "" {
					t.Errorf("want %q, got %q", x.want, x.of)
				}
			}
		})
	}
}

func said(found []finding.Finding) string {
	var text strings.Builder
	for _, f := range found {
		text.WriteString(f.Text + "\n")
	}
	return text.String()
}

// If one of three servers is overloaded while the others keep up with their demand, the finding says so, unless
// requests wait on another one, too.
func TestOverloadOfOne(t *testing.T) {
	const line = "[pod/llm-%d] INFO 06-06 %s [loggers.py:248] Engine 000: Avg prompt throughput: 400.0 tokens/s, Avg generation throughput: %d.0 tokens/s, Running: %d reqs, Waiting: %d reqs, GPU KV cache usage: 20.0%%, Prefix cache hit rate: 0.0%%\n"
	for waiting, want := range map[int]string{0: "; nothing waits on the other 2 of its role, and 13 requests run there at most (64 here): if they serve the same, requests are spread unevenly", 40: ""} {
		var text strings.Builder
		begin := time.Date(2026, 6, 6, 0, 0, 0, 0, time.UTC)
		for i := range 90 {
			at := begin.Add(time.Duration(10*i) * time.Second).Format(time.TimeOnly)
			fmt.Fprintf(&text, line+line+line, 0, at, 1500, 64, 10*i, 1, at, 300, 12, 0, 2, at, 320, 13, waiting)
		}
		found, _ := slow.Demands(measured(t, text.String()))
		got := ""
		for _, f := range found {
			if strings.Contains(f.Text, "DP0 (llm-0) gets more work") {
				_, got, _ = strings.Cut(f.Text, "1500 a second")
			}
		}
		if got != want {
			t.Errorf("%d wait on another one: %q, want %q", waiting, got, want)
		}
	}
}
