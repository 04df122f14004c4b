package serverlog

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/request/spantable"
	"github.com/sgtrace/sgtrace/trace"
)

// requestLog returns the output of --log-requests-format json with SGLANG_LOG_REQUEST_EXCEEDED_MS:
// requests arrive at random, and those faster than the limit have no line when they end.
func requestLog(seed uint64, limit time.Duration, received bool) string {
	type line struct {
		at   time.Time
		text string
	}
	var lines []line
	random := rand.New(rand.NewPCG(seed, 7))
	at := time.Date(2026, 8, 22, 14, 0, 0, 0, time.UTC)
	for i := range 600 {
		at = at.Add(time.Duration(random.ExpFloat64() * 0.2e9))
		e2e := 150*time.Millisecond + time.Duration(random.ExpFloat64()*0.9e9)
		write := func(at time.Time, event, rest string) {
			lines = append(lines, line{at, fmt.Sprintf(`{"timestamp":"%s","event":"request.%s","rid":"r%d","obj":{"text":"x"}%s}`, at.Format("2006-01-02T15:04:05.000000"), event, i, rest)})
		}
		if received {
			write(at, "received", "")
		}
		if e2e >= limit {
			write(at.Add(e2e), "finished", fmt.Sprintf(`,"out":{"meta_info":{"id":"r%d","prompt_tokens":9,"completion_tokens":20,"e2e_latency":%.6f}}`, i, e2e.Seconds()))
		}
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.text, b.text)) })
	var text strings.Builder
	for _, l := range lines {
		text.WriteString(l.text + "\n")
	}
	return text.String()
}

// Records of only slow requests are recognized, and records of all requests are not mistaken for
// them. Without arrival lines, recognition needs a request just above the limit.
func TestSlowRequestsOnly(t *testing.T) {
	const seeds = 10
	for _, test := range []struct {
		limit    time.Duration
		received bool
		least    int // how many seeds must be recognized
		most     int
	}{{0, false, 0, 0}, {0, true, 0, 0}, {time.Second, false, seeds * 7 / 10, seeds}, {1234 * time.Millisecond, true, seeds, seeds}} {
		said := 0
		for seed := range uint64(seeds) {
			set, rows, _ := readText(t, "requests.log", strings.NewReader(requestLog(seed, test.limit, test.received)))
			rows.Emit(spantable.New(set.Diags))
			if slices.ContainsFunc(set.Diags.All(), func(d trace.Diag) bool { return d.Message == trace.RecordsSlowOnly }) {
				said++
			}
		}
		if said < test.least || said > test.most {
			t.Errorf("limit %v, received %v: %d of %d are taken for slow requests only, want %d to %d", test.limit, test.received, said, seeds, test.least, test.most)
		}
	}
}
