package gaps

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/trace"
)

// Packed gaps unpack to the same gaps, whatever their times and number of parts.
func TestPackedGaps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []int64{1, 1000, 1 << 40} {
		var p packedGaps
		var late []lateGap
		var parts []part
		var when spans
		now := trace.Time(-5)
		for range 5000 {
			g := lateGap{parts: int32(len(parts)), thread: unknownThread, launched: r.Int64N(2 * scale)}
			g.Gap.From = now + trace.Time(r.Int64N(2*scale))
			g.launch = g.Gap.From + 1 + trace.Time(r.Int64N(scale))
			to := g.Gap.From
			for range 1 + r.IntN(3) {
				to += trace.Time(1 + r.Int64N(scale))
				parts = append(parts, part{to, int32(r.IntN(3)) + noCall, gpu.Reason(r.IntN(int(gpu.NumReasons)))})
			}
			if r.IntN(1000) == 0 { // many calls overlap this gap
				for range 3 * gapChunk / maxPackedPart {
					to++
					parts = append(parts, part{to, noCall, gpu.HostWork})
				}
			}
			g.Gap.To = to
			p.add(&g, parts[g.parts:])
			late, when = append(late, g), append(when, gpu.Gap{From: g.Gap.From, To: g.Gap.To + 1})
			if now = to; r.IntN(50) == 0 && scale < 1<<40 {
				now += 1 << 33
			}
		}
		if got := p.spans(nil); !slices.Equal(got, when) {
			t.Errorf("scale %d: other spans", scale)
		}
		gotLate, gotParts := p.unpack()
		if !slices.Equal(gotLate, late) || !slices.Equal(gotParts, parts) {
			t.Errorf("scale %d: other gaps or parts", scale)
		}
	}
}
