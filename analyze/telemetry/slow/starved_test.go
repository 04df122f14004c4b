package slow_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
)

// Prompts that take most of the time while requests run are reported, with the time per token without them.
// Slower steps, and prompts that take a third of the time, are not.
func TestStarved(t *testing.T) {
	const normal = 0.02 // s per token
	for _, test := range []struct {
		name    string
		prompts int     // of 4096 tokens, between two decode lines of 40 steps, from the tenth minute on
		takes   float64 // s per prompt
		step    float64 // s, from the tenth minute on
		want    string
	}{
		{"most of the time", 10, 0.4, normal, "prefills take 83 % of the time of TP0, because they go before decoding: a token takes 120 ms, 20 ms without them"},
		{"a third of it", 1, 0.4, normal, ""},
		{"steps are slower", 1, 0.4, 6 * normal, ""},
	} {
		var text strings.Builder
		at, begin := 0.0, time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)
		random := rand.New(rand.NewPCG(1, 2))
		line := func(format string, args ...any) {
			stamp := begin.Add(time.Duration(at * 1e9)).Format("2006-01-02 15:04:05.000")
			fmt.Fprintf(&text, "[%s TP0] "+format+"\n", append([]any{stamp}, args...)...)
		}
		for at < 1200 {
			n, step, before := random.IntN(2), normal, at
			if at > 600 {
				n, step = test.prompts, test.step
			}
			for range n {
				line("Prefill batch, #new-seq: 1, #new-token: 4096, #cached-token: 0, token usage: 0.10, #running-req: 20, #queue-req: 0, ")
				at += test.takes
			}
			at += 40 * step * (0.98 + 0.04*random.Float64())
			line("Decode batch, #running-req: 20, #token: 9000, token usage: 0.10, cuda graph: True, gen throughput (token/s): %.2f, #queue-req: 0, ", 20*40/(at-before))
		}
		var got string
		found, _ := slow.Limits(measured(t, text.String()))
		for _, f := range found {
			got += f.Text
		}
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// A prefill server whose next batch takes in all waiting requests keeps up.
func TestPrefillKeepsUp(t *testing.T) {
	for least, bound := range map[int]bool{0: false, 4: true} {
		var text strings.Builder
		begin := time.Date(2026, 6, 6, 13, 44, 0, 0, time.UTC)
		for i := range 200 {
			fmt.Fprintf(&text, "[%s TP0] Prefill batch, #new-seq: 3, #new-token: %d, #cached-token: 0, token usage: 0.10, #running-req: 0, #queue-req: %d, #prealloc-req: 0, #inflight-req: 1, input throughput (token/s): 4000.00\n",
				begin.Add(time.Duration(i)*time.Second).Format(time.DateTime), 1000+500*(i%7), least+i%5)
		}
		if found, _ := slow.Limits(measured(t, text.String())); len(found) > 0 != bound {
			t.Errorf("%d wait at least: %+v", least, found)
		}
	}
}
