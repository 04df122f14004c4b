package slow_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
)

// A metric that gets worse gradually, over hours, has no step. Levels that fluctuate are no slide, nor is one that recovers.
func TestSlides(t *testing.T) {
	const lines, every = 1200, 4 * time.Second
	type line struct{ accepted, speed float64 } // per decode step; per request and second
	sliding := func(m, from, to float64) float64 { return from + (to-from)*max(0, m-0.25)/0.75 }
	for _, test := range []struct {
		name           string
		at             func(m float64) line // m is the share of the time that has passed
		drafts, tokens string
	}{
		{"fewer drafts are accepted", func(m float64) line {
			a := sliding(m, 3.3, 1.9)
			return line{a, 12 * a}
		}, "falling gradually since 10:24:00, 1.99 tokens come out of a decode step of TP0, 3.30 before: fewer drafts are accepted", ""}, // a step takes as long as before
		{"tokens take longer", func(m float64) line { return line{3.3, 40 / sliding(m, 1, 2)} }, "", "gradually since 10:23:44, a token takes longer on TP0: 48.3 ms at the end, 25 ms before with as much to do"},
		{"nothing", func(float64) line { return line{3.3, 40} }, "", ""},
		{"it wanders", func(m float64) line { return line{3.3 + 0.1*float64(int(m*8)%2), 40 + 2*float64(int(m*8)%2)} }, "", ""},
		{"a little", func(m float64) line { return line{sliding(m, 3.3, 3.1), 40 / sliding(m, 1, 1.08)} }, "", ""},
		{"it comes back", func(m float64) line {
			if m > 0.8 {
				m = 0
			}
			return line{sliding(m, 3.3, 2.9), 40 / sliding(m, 1, 1.2)}
		}, "", ""},
	} {
		r := rand.New(rand.NewPCG(7, 7))
		begin := time.Date(2026, 6, 6, 10, 0, 0, 0, time.UTC)
		var text strings.Builder
		for i := range lines {
			x := test.at(float64(i) / lines)
			fmt.Fprintf(&text, "[%s TP0] Decode batch, #running-req: 8, #token: %d, token usage: 0.36, accept len: %.2f, cuda graph: True, gen throughput (token/s): %.2f, #queue-req: 0\n",
				begin.Add(time.Duration(i)*every).Format(time.DateTime), 280000+r.IntN(9000), x.accepted+0.1*r.NormFloat64(), 8*x.speed+5*r.NormFloat64())
		}
		l := measured(t, text.String())
		drafts, _ := slow.Worsened(l)
		tokens, _ := slow.Slower(l)
		for _, c := range []struct {
			said, want string
		}{{said(drafts), test.drafts}, {said(tokens), test.tokens}} {
			if got := strings.TrimSpace(c.said); got != c.want && !about(got, c.want) {
				t.Errorf("%s: says %q, want %q", test.name, c.said, c.want)
			}
		}
	}
}
