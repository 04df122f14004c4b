package consequence

import (
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/lifecycle"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/telemetry"
	"github.com/sgtrace/sgtrace/analyze/telemetry/slow"
	"github.com/sgtrace/sgtrace/request"
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
	stall := finding.Finding{Kind: finding.Change, Subkind: finding.Stalls, At: at, Since: 116 * second, Until: 138 * second} // after the restart
	if got := finding.Merge([]finding.Finding{stall, start}, warm); len(got) != 1 || got[0].Kind != finding.Lifecycle {
		t.Errorf("%+v", got)
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

// If fewer tokens are cached, as many more must be computed. A rise beyond that is additional demand.
func TestMissingTokensAreComputed(t *testing.T) {
	const second = trace.Time(1e9)
	at := rankAt(request.Unified, "a", 0, -1)
	cached := finding.Finding{Kind: finding.Change, Subkind: finding.CachedTokens, At: at, Since: 60 * second, Text: "less is cached", Cost: 0.2, Metric: finding.Metric{Before: 0.8, After: 0.2}}
	for after, want := range map[float64]int{4000: 1, 9000: 2} { // 1000 before; the lost cache explains four times that
		more := finding.Finding{Kind: finding.Load, Subkind: slow.Demand, At: at, Since: 62 * second, Text: "more comes", Cost: 0.3, Metric: finding.Metric{Name: telemetry.ComputedTokens, Before: 1000, After: after}}
		if got := finding.Merge([]finding.Finding{more, cached}, remade); len(got) != want || want == 1 && !strings.HasPrefix(got[0].Text, "less is cached") {
			t.Errorf("%v a second: %+v", after, got)
		}
	}
}

// One server is slower since a second after it is back, or another one is.
func TestSlowerSinceBack(t *testing.T) {
	const second = trace.Time(1e9)
	at := rankAt(request.Unified, "a", 0, -1)
	restart := finding.Finding{Kind: finding.Lifecycle, Subkind: lifecycle.Restart, Scope: finding.AtPlace, At: at, Since: 60 * second, Until: 70 * second, Text: "it was restarted"}
	for host, want := range map[string]int{"a": 1, "b": 2} {
		slower := finding.Finding{Kind: finding.Change, Subkind: change.Pace, Scope: finding.AtPlace, At: rankAt(request.Unified, host, 0, -1), Since: 71 * second, Within: 2 * second, Text: "prefills take longer",
			Metric: finding.Metric{Before: 10, After: 20}}
		if got := finding.Merge([]finding.Finding{slower, restart}, Last); len(got) != want {
			t.Errorf("on %s: %+v", host, got)
		}
	}
}

// If servers are slower since a rolling restart began, that is one finding, with the cost of the slowness. It is
// not if they became slower before, much later, or only until the restart ended.
func TestSlowerSinceRestarts(t *testing.T) {
	const second = trace.Time(1e9)
	all, one := place.Location{Scope: place.WholeRole, Role: request.Unified}, rankAt(request.Unified, "a", 0, -1)
	for name, c := range map[string]struct {
		at           place.Location
		since, until trace.Time
		before       float64
		want         int
	}{
		"since the first one":    {all, 61 * second, 0, 10, 1},
		"before":                 {all, 40 * second, 0, 10, 2},
		"long after":             {all, 200 * second, 0, 10, 2},
		"since the last one":     {all, 110 * second, 0, 10, 2},
		"until the end of these": {all, 61 * second, 119 * second, 10, 2},
		"faster":                 {all, 61 * second, 0, 30, 2},
		"one of them":            {one, 61 * second, 0, 10, 2},
	} {
		restarts := finding.Finding{Kind: finding.Lifecycle, Subkind: lifecycle.Restart, Scope: finding.AtPlace, At: all, Since: 60 * second, Until: 120 * second, Text: "all were restarted", Severity: finding.Info, Confidence: finding.Certain}
		slower := finding.Finding{Kind: finding.Change, Subkind: change.Pace, Scope: finding.AtPlace, At: c.at, Since: c.since, Until: c.until, Within: second, Text: "tokens take longer; TTFT rose",
			Brief: "tokens take longer", Cost: 0.2, CostBasis: finding.RequestTime, Claim: func(int, []int64) {}, Severity: finding.Warning, Metric: finding.Metric{Before: c.before, After: 20}}
		got := finding.Merge([]finding.Finding{slower, restarts}, Last)
		if len(got) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		if f := &got[0]; c.want == 1 && (f.Text != "all were restarted; tokens take longer" || f.Cost != 0.2 || f.Severity != finding.Warning || f.Confidence != finding.Certain) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
