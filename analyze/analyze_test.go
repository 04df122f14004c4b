package analyze

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/cause"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/table/tabletest"
	incident "github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/internal/testinput"
	"github.com/sgtrace/sgtrace/internal/testset"
)

// Forged times do no harm, and nothing that is divided is lost.
func TestCausesOfForgedTimes(t *testing.T) {
	for seed := range uint64(12) {
		c := testset.Deployment(seed, incident.DefaultConfig(seed))
		c.Requests, c.KVTokens = 30, 3200
		dump, _ := testinput.Simulate(t, c)
		rng := rand.New(rand.NewPCG(seed, 1))
		forged := testset.TimeText.ReplaceAllFunc(dump, func(text []byte) []byte {
			n := [...]int64{0, 1, math.MaxInt64, math.MaxInt64 - 5, rng.Int64(), testset.Epoch + rng.Int64N(20e9)}[rng.IntN(6)]
			if rng.IntN(15) > 0 {
				return text
			}
			return fmt.Appendf(nil, `imeUnixNano":"%d"`, n)
		})
		s := testset.BuildSet(t, "forged", bytes.NewReader(forged))
		for _, a := range cause.NewAttributor(s).All() {
			if m := &s.Requests[a.Request].Metrics; a.E2E.Total() != m.E2E || a.TTFT.Total() != max(0, m.TTFT) {
				t.Fatalf("e2e %d, ttft %d ns, want %d, %d", a.E2E.Total(), a.TTFT.Total(), m.E2E, m.TTFT)
			}
		}
		for _, r := range NewTail(s, TailOptions{}).Reports() {
			tabletest.Text(t, r, table.FormatText, table.Style{})
		}
	}
}
