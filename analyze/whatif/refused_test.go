package whatif

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// A replay that is off by 10 % for 200 requests, and by 60 % from then on, behaves differently since the 201st.
// One with a constant error does not.
func TestOtherwiseSince(t *testing.T) {
	for _, after := range []float64{1.6, 1.1} {
		rnd := rand.New(rand.NewPCG(4, 4))
		r := &Run{Run: &replay.Run{}, set: &request.Set{}, base: make([][]replay.Latency, 1)}
		for i := range 400 {
			r.set.Requests = append(r.set.Requests, request.Request{Start: trace.Time(i+1) * 1e9})
			r.Requests = append(r.Requests, replay.Request{Index: i})
			off := 1.1
			if i >= 200 {
				off = after
			}
			e2e := int64(1e9 * (1 + rnd.Float64()))
			r.recorded = append(r.recorded, replay.Latency{Request: i, E2E: e2e, TTFT: request.Unknown})
			r.base[0] = append(r.base[0], replay.Latency{Request: i, E2E: int64(float64(e2e) * off * math.Exp(0.02*rnd.NormFloat64())), TTFT: request.Unknown})
		}
		want := trace.Time(0)
		if after > 1.5 {
			want = 201e9
		}
		if got := r.otherwiseSince(); max(got-want, want-got) > 3e9 {
			t.Errorf("off by %v later: since %v, want %v", after, got, want)
		}
	}
}
