package slow

import (
	"fmt"
	"math"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/series"
)

// rejected finds a rank that drafts tokens, and accepts hardly any of them in all that its lines or counters tell: a step gives as many
// tokens as without drafts, and takes as long as it takes to draft and verify them. A level below 1 is of a server without drafts.
func rejected(l *telemetry.Logged, r *telemetry.Rank, w *series.Worsening) (f finding.Finding, ok bool) {
	const fewest, hardly = 3, 1.05 // lines, tokens
	var tokens, steps, most float64
	n, of := values(l, r, w)
	for b := range n {
		if of[b] > 0 && n[b] >= of[b] {
			tokens, steps, most = tokens+n[b], steps+of[b], max(most, n[b]/of[b])
		}
	}
	if steps < fewest || tokens > hardly*steps {
		return f, false
	}
	f = finding.Finding{Subkind: w.Name, At: r.Where, Confidence: finding.Certain, Metric: finding.Metric{Name: w.Name, Before: math.NaN(), After: tokens / steps}}
	f.Text = fmt.Sprintf("%s accepts hardly any draft tokens: a decode step yields %s tokens, and 1 without speculative decoding", r.Where.String(), words.ThreeDigits(tokens/steps))
	f.Evidence = []finding.Evidence{finding.Sentence("the best of the intervals that tell has %s; drafting and verifying add to the time of each step", words.ThreeDigits(most))}
	return f, true
}
