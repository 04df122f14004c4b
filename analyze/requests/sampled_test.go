package requests

import (
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// If a dump suddenly has fewer requests, all of them slow, and just as many slow ones before, it only keeps slow
// requests. That does not hold if requests of all kinds become fewer.
func TestOnlySlowRequests(t *testing.T) {
	const second = 1_000_000_000
	for name, c := range map[string]struct {
		keep func(i int, slow bool) bool
		slow int64 // s, of a slow request
		says string
	}{
		"slow ones":  {func(_ int, slow bool) bool { return slow }, 5, "the dump has only requests that took 5 s or longer, "},
		"fewer come": {func(i int, _ bool) bool { return i%10 < 1 }, 5, ""},
		"all":        {func(int, bool) bool { return true }, 5, ""},
	} {
		s := request.NewSet(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
		const n, since = 2000, trace.Time(1000 * second)
		for i := range n {
			start, slow := trace.Time(i)*second, i%20 == 7
			if start >= since && !c.keep(i, slow) {
				continue
			}
			r := request.Request{Status: request.Finished, Start: start}
			if r.Metrics.E2E = second/2 + int64(i%7)*second/10; slow {
				r.Metrics.E2E = c.slow*second + int64(i%11)*second/10
			}
			s.Requests = append(s.Requests, r)
		}
		s.Rows = []request.Row{{Start: 0, End: n * second}}
		fell := finding.Finding{Kind: finding.Load, Since: since, Within: second, Metric: finding.Metric{Before: 1, After: 0.1}}
		found, ok := OnlySlow(s, &fell)
		if ok != (c.says != "") || !strings.Contains(found.Text, c.says) {
			t.Errorf("%s: %v, %q; want %q", name, ok, found.Text, c.says)
		}
	}
}

// Batches of four that never end: the dump has all four, or one or two of them.
func TestSeenOfBatches(t *testing.T) {
	for _, c := range []struct {
		kept int
		want float64
	}{{4, 1}, {2, 0.5}, {1, 0.25}, {0, 0}} {
		steps := map[int][]decodeStep{}
		for i := range 100 {
			for range c.kept {
				from := trace.Time(10 * i)
				steps[i%2] = append(steps[i%2], decodeStep{request.Interval{From: from, To: from + 10}, 4})
			}
		}
		if got := seenOf(steps); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d of 4 kept: %g, want %g", c.kept, got, c.want)
		}
	}
}
