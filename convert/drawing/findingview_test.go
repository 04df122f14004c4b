package drawing

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/perfetto"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/readback"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/trace"
)

// simulated returns the requests of a simulated run with a gateway, a prefill server, and a decode
// server.
func simulated(t *testing.T, requests int) *request.Set {
	t.Helper()
	config := simulator.DefaultConfig(3)
	config.Requests = requests
	dump, _ := testinput.Simulate(t, config)
	return setOf(t, dump)
}

// written draws a set and decodes the file.
func written(t *testing.T, set *request.Set, opt Options) *readback.Trace {
	t.Helper()
	model := Layout(set, opt)
	if err := trace.Validate(model); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := perfetto.Write(&file, model); err != nil {
		t.Fatal(err)
	}
	got, err := readback.Decode(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Each finding is a slice with its record, from its beginning to its end, or over all requests if
// it states no times. Each unfinished request is an instant.
func TestFindingsAreDrawn(t *testing.T) {
	set := simulated(t, 200)
	var from, to trace.Time
	failed := map[string]bool{}
	for i := range set.Len() {
		if s := set.Row(i); set.Kind(i) != request.Duplicate && set.Kind(i) != request.Unselected {
			if from == 0 || s.Start < from {
				from = s.Start
			}
			to = max(to, s.End)
		}
	}
	for i := range set.Requests {
		if r := &set.Requests[i]; r.Status != request.Finished {
			failed[fmt.Sprintf("%v %v %d", set.Text(r.RID), r.Status, r.End)] = true
		}
	}
	middle := from + (to-from)/2
	findings := []Finding{
		{Name: "load · decode DP1", Title: "more to do", Severity: "warning", Since: middle, Record: []Field{{"kind", "load", math.NaN()}, {"cost", "", 0.25}, {"p", "", math.NaN()}}},
		{Name: "errors", Title: "requests fail", Severity: "critical", Until: middle},
		{Name: "limit", Title: "full", Severity: "warning"},
	}
	got := written(t, set, Options{Findings: findings})
	var slices []string
	severities := map[string]string{}
	for _, s := range got.Slices {
		if strings.HasPrefix(s.Track.Path(), " Findings > ") {
			slices = append(slices, fmt.Sprint(s.Track.Name, "|", s.Name, "|", s.Start-int64(from), "+", s.Dur, s.Args))
			severities[s.Name] = s.Correlation
		}
	}
	half, all := int64(middle-from), int64(to-from)
	want := []string{
		fmt.Sprint("1 · load · decode DP1|more to do|", half, "+", all-half, map[string]any{"finding_kind": "load", "finding_cost": 0.25}),
		fmt.Sprint("2 · errors|requests fail|0+", half, map[string]any{}),
		fmt.Sprint("3 · limit|full|0+", all, map[string]any{}),
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(slices, "\n"), w) {
			t.Errorf("no slice %s; there are\n%s", w, strings.Join(slices, "\n"))
		}
	}
	if len(slices) != len(want) || severities["more to do"] != "warning" || severities["full"] != "warning" || severities["requests fail"] != "critical" {
		t.Errorf("%d slices, colors %v", len(slices), severities)
	}
	if len(failed) < 2 {
		t.Fatal("the simulated run has no failures")
	}
	n := 0
	for _, e := range got.Instants {
		if e.Track.Path() == fmt.Sprintf(" Findings > not finished · %d", len(failed)) {
			if n++; !failed[fmt.Sprintf("%v %v %d", e.Args["rid"], e.Name, e.Time)] {
				t.Errorf("instant %s at %d of %v is no failure", e.Name, e.Time, e.Args)
			}
		}
	}
	if n != len(failed) {
		t.Errorf("%d instants, want %d", n, len(failed))
	}
}

// Colors distinguish requests by process, and stages by request, whose outermost slice is named
// after the request and its outcome.
func TestColors(t *testing.T) {
	set := simulated(t, 60)
	ids := map[string]string{} // outcome by rid, shortened as on timelines
	for i := range set.Requests {
		ids[shorten(set.Text(set.Requests[i].RID))] = set.Requests[i].Status.String()
	}
	roots := 0
	for _, s := range written(t, set, Options{}).Slices {
		switch path := s.Track.Path(); {
		case strings.HasPrefix(path, "By process"):
			if s.Args["rid"] != nil && s.Correlation == "" {
				t.Fatalf("%s: %s has no color of its request", path, s.Name)
			}
		case strings.HasPrefix(path, "By request"):
			name, outcome, isRoot := strings.Cut(strings.TrimPrefix(s.Name, "Req "), " · ")
			if isRoot = isRoot && ids[name] != ""; !isRoot && s.Correlation != "" {
				t.Fatalf("%s: %s has the color of %s", path, s.Name, s.Correlation)
			}
			if isRoot {
				if roots++; outcome != ids[name] || s.Correlation != outcome || s.Args["span"] == nil {
					t.Errorf("%s: %s, in the color of %q, args %v; it ended as %s", path, s.Name, s.Correlation, s.Args, ids[name])
				}
			}
		}
	}
	if roots < 50 {
		t.Errorf("%d outermost slices of 60 requests", roots)
	}
}
