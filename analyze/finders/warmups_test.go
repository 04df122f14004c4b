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

// Where requests were added, and prompts or answers became shorter then, the added ones are short. Who does not know when they did
// within seconds does not know that.
func TestAddedAreShort(t *testing.T) {
	const second = trace.Time(1e9)
	added := finding.Finding{Kind: finding.Load, Since: 100 * second, Within: second, Metric: finding.Metric{Name: change.Arrivals, Before: 5, After: 30}}
	for _, c := range []struct {
		since, within trace.Time
		after         float64
		want          bool
	}{{101, 1, 18, true}, {101, 1, 300, false}, {150, 80, 18, false}} {
		fell := finding.Finding{Kind: finding.Change, Subkind: change.OutputLength, Since: c.since * second, Within: c.within * second, Metric: finding.Metric{Before: 102, After: c.after}}
		if got := addedAreShort(&fell, &added); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
