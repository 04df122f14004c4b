package slow_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
)

// Higher demand on a server is reported with its size and start, if its requests take longer because of it. Requests
// that a full KV cache retracts, and the rest of a prompt that did not fit in a batch, are not counted twice.
func TestDemands(t *testing.T) {
	const bucket = 8192 // maximum number of tokens in a prefill batch
	type second struct {
		come, prompt, answer int
		speed                int // tokens per second of a request
		retracted            int
		silent               bool
	}
	usual := second{come: 4, prompt: 1500, answer: 300, speed: 60}
	later := func(change func(s *second)) func(i int) second {
		return func(i int) second {
			s := usual
			if i >= 120 {
				change(&s)
			}
			return s
		}
	}
	for _, test := range []struct {
		name string
		at   func(i int) second
		want string // "" is no finding
	}{
		{"nothing changes", later(func(*second) {}), ""},
		{"twice as many come, and nobody suffers", later(func(s *second) { s.come = 8 }), ""},
		{"twice as many come", later(func(s *second) { s.come, s.speed = 8, 40 }), "since 13:46:00, 8 requests a second come to TP0, 4 before"},
		{"prompts are longer", later(func(s *second) { s.prompt, s.speed = 6000, 40 }), "since 13:46:00, a prompt has 6000 tokens on TP0, 1500 before"},
		{"answers are longer", later(func(s *second) { s.answer, s.speed = 900, 40 }), "since 13:46:00, an answer has 900 tokens on TP0, 300 before"},
		{"answers are longer, and tokens take as long", later(func(s *second) { s.answer = 900 }), "since 13:46:00, an answer has 900 tokens on TP0, 300 before"},
		{"fewer come, and it is slower", later(func(s *second) { s.come, s.speed = 1, 30 }), ""},
		{"requests are thrown out and taken in again", later(func(s *second) { s.retracted, s.speed = 6, 30 }), ""},
		{"it is away for a while", func(i int) second {
			s := usual
			s.silent = i >= 100 && i < 130
			if i >= 130 {
				s.speed = 40
			}
			return s
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			l := busyLog{now: time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)}
			rest, last := 0, usual
			for i := range 260 {
				s := test.at(i)
				running := s.come * s.answer / s.speed
				if !s.silent {
					if s.retracted > 0 {
						l.say(" TP0", "KV cache pool is full. Retract requests. #retracted_reqs: %d, #new_tokens_gained: 900, #new_token_ratio: 0.3 -> 0.8", s.retracted)
					}
					seqs, tokens := s.come+last.retracted, rest
					for range s.come {
						tokens += s.prompt - 100 + rng.IntN(201)
					}
					tokens += last.retracted * 1800
					if rest > 0 {
						seqs++
					}
					rest = 0
					for tokens > bucket {
						l.say(" TP0", "Prefill batch, #new-seq: %d, #new-token: %d, #cached-token: 0, token usage: 0.30, #running-req: %d, #queue-req: 0, ", seqs-1, bucket, running)
						tokens, seqs = tokens-bucket, 2 // the rest of the prompt that was cut, and one more
					}
					l.say(" TP0", "Prefill batch, #new-seq: %d, #new-token: %d, #cached-token: 0, token usage: 0.30, #running-req: %d, #queue-req: 0, ", seqs, tokens, running)
					l.say(" TP0", "Decode batch, #running-req: %d, #token: %d, token usage: 0.30, cuda graph: True, gen throughput (token/s): %d.00, #queue-req: 0, ",
						running, running*1800, s.come*s.answer)
					last = s
				}
				l.now = l.now.Add(time.Second)
			}
			found, check := slow.Demands(measured(t, l.String()))
			var said []string
			for _, f := range found {
				said = append(said, f.Text)
			}
			if got := strings.Join(said, "\n"); check.N < 90 || (test.want == "") != (got == "") || !strings.Contains(got, strings.Split(test.want, " ")[0]) {
				t.Fatalf("says %q of %d intervals, want %q", got, check.N, test.want)
			}
			if test.want != "" && !about(said[0], test.want) {
				t.Errorf("says %q, want about %q", said[0], test.want)
			}
		})
	}
}

// A server that is idle most of the time logs more lines while it is busy. Its answers are no longer for that: the
// throughput of a line is that of the time since the line before.
func TestAnswersBetweenIdleTimes(t *testing.T) {
	l := busyLog{now: time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)}
	decode := func(running int, took float64, queued int) {
		l.say(" TP0", "Decode batch, #running-req: %d, #token: 20000, token usage: 0.10, cuda graph: True, gen throughput (token/s): %.2f, #queue-req: %d, ", running, 40*float64(running)/took, queued)
	}
	for i := range 2000 {
		switch {
		case i < 1000: // 4 requests of 300 tokens each a second
			l.say(" TP0", "Prefill batch, #new-seq: 4, #new-token: %d, #cached-token: 0, token usage: 0.10, #running-req: 30, #queue-req: 0, ", 4000+i%9)
			decode(30, 1, 0)
		case i%16 == 0: // one every 16 s, which is done in 2 s, while others wait for something else
			l.say(" TP0", "Prefill batch, #new-seq: 1, #new-token: 1000, #cached-token: 0, token usage: 0.10, #running-req: 0, #queue-req: %d, ", 4*(i-1000))
			decode(1, 14.2, 4*(i-1000))
			for range 6 {
				decode(1, 0.3, 4*(i-1000))
			}
		}
		l.now = l.now.Add(time.Second)
	}
	found, _ := slow.Demands(measured(t, l.String()))
	for _, f := range found {
		if strings.Contains(f.Text, "an answer has") {
			t.Errorf("says %s, but all have 280 to 300 tokens", f.Text)
		}
	}
}

// about reports whether two sentences are equal, except for numbers within a tenth of each other and times within a bucket.
func about(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] == y[i] {
			continue
		}
		at, errA := time.Parse(time.TimeOnly, strings.TrimRight(x[i], ","))
		want, errB := time.Parse(time.TimeOnly, strings.TrimRight(y[i], ","))
		if errA == nil && errB == nil {
			if at.Sub(want).Abs() > 4*time.Second {
				return false
			}
			continue
		}
		var v, w float64
		if _, err := fmt.Sscan(x[i], &v); err != nil {
			return false
		}
		if _, err := fmt.Sscan(y[i], &w); err != nil || v < 0.9*w || v > 1.1*w {
			return false
		}
	}
	return true
}

// vLLM logs the hit rate of the last thousand requests, which falls gradually when prompts are no longer cached.
func TestHitRateSlides(t *testing.T) {
	for name, test := range map[string]struct {
		at   func(i int) float64
		want string
	}{
		"falls":     {func(i int) float64 { return max(10, 78-4*max(0, float64(i-59))) }, "since 13:53:50, 10 % of the tokens of prompts are cached on DP0, 78 % before"},
		"stays":     {func(int) float64 { return 78 }, ""},
		"fills":     {func(i int) float64 { return min(78, 4*float64(i)) }, ""},
		"a little":  {func(i int) float64 { return max(72, 78-max(0, float64(i-59))) }, ""},
		"and rises": {func(i int) float64 { return 78 - 4*max(0, min(float64(i-59), float64(79-i))) }, ""},
	} {
		begin := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)
		var text strings.Builder
		for i := range 100 {
			fmt.Fprintf(&text, "(APIServer pid=41) INFO %s [loggers.py:310] Engine 000: Avg prompt throughput: 900.0 tokens/s, Avg generation throughput: %d.0 tokens/s, Running: 12 reqs, Waiting: 0 reqs, GPU KV cache usage: 33.1%%, Prefix cache hit rate: %.1f%%\n",
				begin.Add(time.Duration(i)*10*time.Second).Format("01-02 15:04:05"), 400+i%7, test.at(i)+float64(i%3)/10)
		}
		found, _ := slow.Worsened(measured(t, text.String()))
		said := ""
		for _, f := range found {
			said += f.Text
		}
		if (said == "") != (test.want == "") || !strings.HasPrefix(said, test.want) {
			t.Errorf("%s: says %q, want %q", name, said, test.want)
		}
	}
}
