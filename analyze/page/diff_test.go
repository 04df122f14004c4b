package page

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/diff"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/request"
)

// The curves of a comparison have the same medians as its tables, and the parts of
// the difference add up to it.
func TestDiffPage(t *testing.T) {
	set := simulate(t, simulator.DefaultConfig(1))
	at := change.Find(place.Of(set)).List[0].Time // start of the burst
	before, after := diff.NewCollected(0), diff.NewCollected(0)
	before.Add(diff.Capture{Label: "before", Requests: set, To: at})
	after.Add(diff.Capture{Label: "from then on", Requests: set, From: at})
	d := diff.Compare(before, after, diff.Options{})
	p := Diff(d, before, after, "sgtrace diff a b", made)
	if n := checkLinks(t, p); n < 8 {
		t.Errorf("only %d links", n)
	}
	curves, cascades := 0, 0
	for _, s := range p.Sections {
		for _, f := range s.Figures {
			switch body := f.Body.(type) {
			case *chart.Percentiles:
				curves++
				name := strings.TrimPrefix(f.ID, "curves-")
				r := d.Rows[slices.IndexFunc(d.Rows, func(r diff.Row) bool { return r.Kind == diff.Request && r.Name == name })]
				for side, want := range []diff.Stat{r.Before, r.After} {
					if line := body.Lines[side]; int64(len(line.Values)) != want.N || request.NearestRank(line.Values, 50) != want.P50 {
						t.Errorf("%s of side %d: %d values, median %d, want %+v", name, side, len(line.Values), request.NearestRank(line.Values, 50), want)
					}
				}
			case *chart.Cascade:
				cascades++
				sum := body.From.Value
				for _, r := range body.Rows {
					sum += r.Value
				}
				if math.Abs(sum-body.To.Value) > 1 || body.To.Value <= body.From.Value {
					t.Errorf("%v leads to %g", body, sum)
				}
			}
		}
	}
	if curves != 3 || cascades != 1 {
		t.Errorf("%d figures of curves, %d cascades", curves, cascades)
	}
	if p.Tiles[0].Name != "E2E" || p.Tiles[0].State != Bad {
		t.Errorf("slower requests are %+v", p.Tiles[0])
	}
}

// The page of a single request shows its waterfall open, with a lane for each thread.
func TestRequestPage(t *testing.T) {
	o, _ := incident(t)
	p := OneRequest(o.Requests, []int{3}, "some", []string{"otel.jsonl"}, made)
	checkLinks(t, p)
	text := render(t, p)
	if !strings.Contains(text, `<details class="request" open id="r-`+o.Requests.Text(o.Requests.Requests[3].RID)+`"`) {
		t.Error("the request is not open")
	}
	threads := 0
	for _, part := range o.Requests.PartsOf(&o.Requests.Requests[3]) {
		threads += len(o.Requests.ThreadsOf(&o.Requests.Parts[part]))
	}
	if got := strings.Count(text, `class="lane"`); got < threads || threads < 4 {
		t.Errorf("%d lanes of %d threads", got, threads)
	}
	for _, want := range []string{"sgtrace merge --around " + o.Requests.Text(o.Requests.Requests[3].RID), "sgtrace request some otel.jsonl"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}
