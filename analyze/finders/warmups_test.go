package finders

import (
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/lifecycle"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/trace"
)

// A server that was restarted stands still, or is slower, until it is warm. What lasts longer, or is elsewhere, is not due to that.
func TestWhileWarmingUp(t *testing.T) {
	const second = trace.Time(1e9)
	at := place.Location{Scope: place.OneRank}
	start := finding.Finding{Kind: finding.Lifecycle, Subkind: lifecycle.Restart, At: at, Since: 100 * second, Until: 115 * second, Full: 140 * second}
	slower := func(since, until trace.Time) finding.Finding {
		return finding.Finding{Kind: finding.Change, Subkind: change.Pace, At: at, Since: since * second, Until: until * second, Metric: finding.Metric{Before: 10, After: 40}}
	}
	for _, c := range []struct {
		since, until trace.Time
		want         bool
	}{{116, 138, true}, {116, 0, false}, {116, 200, false}, {90, 105, false}} {
		f := slower(c.since, c.until)
		if got := whileWarmingUp(&f, &start); got != c.want {
			t.Errorf("from %d to %d: %v, want %v", c.since, c.until, got, c.want)
		}
	}
}
