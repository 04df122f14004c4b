package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/replay"
	"github.com/sgtrace/sgtrace/request"
)

// The slowest finished requests come first, in order; then those that findings name,
// each once, with the reason.
func TestChooseRequests(t *testing.T) {
	o, _ := incident(t)
	set := o.Requests
	list := chooseRequests(set, o.Findings)
	var e2e []int64
	for i := range set.Requests {
		if set.Requests[i].Status == request.Finished {
			e2e = append(e2e, set.Requests[i].Metrics.E2E)
		}
	}
	slices.Sort(e2e)
	seen := map[int]bool{}
	for k, c := range list {
		if seen[c.index] {
			t.Errorf("request %d is there twice", c.index)
		}
		seen[c.index] = true
		if want := e2e[max(0, len(e2e)-1-k)]; k < slowest && set.Requests[c.index].Metrics.E2E != want {
			t.Errorf("place %d takes %d ns, want %d", k+1, set.Requests[c.index].Metrics.E2E, want)
		}
	}
	named := 0
	for f := range o.Findings {
		for _, rid := range o.Findings[f].Affected.RIDs {
			named++
			why := fmt.Sprintf("finding %d", f+1)
			if !slices.ContainsFunc(list, func(c chosenRequest) bool {
				return set.Text(set.Requests[c.index].RID) == rid && slices.Contains(c.why, why)
			}) {
				t.Errorf("%s is not there for %s", rid, why)
			}
		}
	}
	if named < 3 || len(list) <= slowest {
		t.Errorf("findings name %d requests, and %d are chosen", named, len(list))
	}
}

// Plain IDs are anchors unchanged; others are escaped.
func TestAnchors(t *testing.T) {
	for rid, want := range map[string]string{"7ca0-f_1.2:3": "r-7ca0-f_1.2:3", `"><b>`: "r-8", "": "r-8", strings.Repeat("x", 200): "r-8"} {
		if got := anchorOf(rid, 7); got != want {
			t.Errorf("%q is at %s, want %s", rid, got, want)
		}
	}
}

// The critical path of a request is its first lane: contiguous bars from its start to its end.
func TestLaneOfCriticalPath(t *testing.T) {
	o, _ := incident(t)
	set := o.Requests
	run := replay.Read(set)
	lanes := 0
	for _, c := range chooseRequests(set, o.Findings)[:slowest] {
		v := newRequestView(set, run, c, "", Source{})
		if v.Fall.Lanes[0].Name != "Critical path" {
			continue
		}
		lanes++
		var bars []chart.Span
		for _, row := range v.Fall.Lanes[0].Rows {
			bars = append(bars, row.Spans...)
		}
		slices.SortFunc(bars, func(a, b chart.Span) int { return int(a.From - b.From) })
		at := set.Requests[c.index].Start
		for _, bar := range bars {
			if bar.From != at || bar.To <= bar.From {
				t.Fatalf("%s: a bar from %d to %d follows %d", v.RID, bar.From, bar.To, at)
			}
			at = bar.To
		}
		if e2e := int64(at - set.Requests[c.index].Start); e2e != set.Requests[c.index].Metrics.E2E {
			t.Errorf("%s: bars take %d ns, E2E is %d", v.RID, e2e, set.Requests[c.index].Metrics.E2E)
		}
	}
	if lanes < slowest/2 {
		t.Errorf("%d of %d requests have a critical path", lanes, slowest)
	}
}
