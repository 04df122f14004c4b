package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/diff/compare"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/internal/significance"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// behindGateway returns the requests of two minutes, two a second, each of which a gateway holds for a time, passes on to a
// server, and ends with an HTTP status. Times are in us.
func behindGateway(t *testing.T, of func(n int) (held, took float64, status string)) *request.Set {
	const second, requests = 1e6, 240
	var d testset.Dump
	for n := range requests {
		held, took, status := of(n)
		at := float64(n) * second / 2
		r := testset.Span{Trace: fmt.Sprintf("%032x", n+1), Name: fmt.Sprintf(" Req %d", n), From: at + held, To: at + held + took,
			Attrs: testset.Attrs{"rid": fmt.Sprint(n), "module": "sglang::request"}}
		line := len(d.Lines)
		r.Parent = d.Add(testset.Span{Service: "smg", Trace: r.Trace, Name: "http_request", From: at, To: r.To + 1000,
			Attrs: testset.Attrs{"module": "smg", "request_id": fmt.Sprintf("gnt-%d", n), "status_code": status}})
		d.AddEvent(line, "Sending request", at+held-100, testset.Attrs{"url": "http://10.0.0.1:30000"})
		id := d.Add(r)
		d.Thread(r, id, testset.PrefillHost, "Tokenizer", -1, 300, testset.Span{Name: "tokenize", From: r.From, To: r.From + 300})
		d.Thread(r, id, testset.PrefillHost, "Scheduler", 0, 301, testset.Span{Name: "request_process", From: r.From + 400, To: r.From + 500},
			testset.Span{Name: "prefill_waiting", From: r.From + 500, To: r.From + 600}, testset.Span{Name: "prefill_forward", From: r.From + 600, To: r.From + 50_000},
			testset.Span{Name: "decode_forward", From: r.From + 50_000, To: r.To - 500})
	}
	return d.Set(t)
}

// After a minute, a gateway begins to hold every other request for 0.4 s, or the clients of every other request give up after 1 s,
// or every other request fails. No series of a server shows it, requests take about as long, and half of them are unaffected.
func TestWhatNoSeriesShows(t *testing.T) {
	for want, of := range map[string]func() (held, took float64, status string){
		"the gateway has held 50 % of the requests since":                                      func() (float64, float64, string) { return 400_000, 1_000_000, "200" },
		"the clients of 60 of 240 requests gave up, all of them after 1 s (a time-out); since": func() (float64, float64, string) { return 500, 1_000_000, "499" },
		"60 of 240 requests got no answer (HTTP 500)":                                          func() (float64, float64, string) { return 500, 1_000_000, "500" },
	} {
		list := changesWithin(behindGateway(t, func(n int) (held, took float64, status string) {
			if n >= 120 && n%2 == 0 {
				return of()
			}
			return 500, 1_000_000, "200"
		}), true)
		if i := slices.IndexFunc(list, func(x Within) bool { return strings.HasPrefix(x.Text, want) }); i < 0 || list[i].Confidence != finding.Certain || !list[i].Stays {
			t.Errorf("found %+v, want %q", list, want)
		}
	}
}

// A spell in which a server is slow matters for a whole capture if it is long enough.
func TestSpellsThatMatter(t *testing.T) {
	in := change.Changes{From: 1, To: 1001}
	f := change.Shift{Metric: change.PaceChanged, Shape: changepoint.Spell, Time: 100, Until: 300, Before: change.Level{P50: 100}, After: change.Level{P50: 180}}
	if !stays(&f, &in) {
		t.Error("80 % longer for a fifth of the time does not matter")
	}
	if f.Until = 120; stays(&f, &in) {
		t.Error("80 % longer for a fiftieth of the time matters")
	}
	if f.Until = 0; !stays(&f, &in) {
		t.Error("80 % longer to the end does not matter")
	}
	if f = (change.Shift{Metric: change.AbortsChanged, After: change.Level{Share: 0.2}}); !stays(&f, &in) {
		t.Error("clients that give up don't matter")
	}
}

// A stage of which one request in a hundred takes 10 s has the median that it had: the mean moved, and is told.
func TestWhatMovedMost(t *testing.T) {
	change := func(ratio, low, high, p float64) compare.Change {
		return compare.Change{Change: significance.Change{Ratio: ratio, Low: low, High: high, P: p}}
	}
	d := &Diff{Rows: []Row{{diffKey: diffKey{Stage, "prefill_waiting", ""}, P50: change(1, 1, 1, 1), Mean: change(100, 0.1, 1e5, 1), Total: change(100, 0.1, 1e5, 1),
		Before: Stat{N: 100, P50: 1e6, P99: 1e6, Mean: 1e7, PerUnit: 1e7}, After: Stat{N: 100, P50: 1e6, P99: 1e10, Mean: 1e9, PerUnit: 1e9}}}, locate: newDiffRows([2]*Collected{NewCollected(0), NewCollected(0)}, new(int))}
	const want = "not enough data for 1 row, of which prefill_waiting mean 1.00 -> 100.00 ms (x100; too few to tell) moved most"
	if list := d.countOthers(nil, false); len(list) == 0 || list[len(list)-1] != want {
		t.Errorf("%q, want %q", list, want)
	}
	if list := d.countOthers([]*Row{&d.Rows[0]}, true); len(list) != 1 || list[0] != "no other significant difference" {
		t.Errorf("told already: %q", list)
	}
}
