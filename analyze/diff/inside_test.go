package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/internal/changepoint"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// After a minute, a gateway begins to hold every other request for 0.4 s. No series of a server shows it, and half
// of the requests are unaffected.
func TestWhatNoSeriesShows(t *testing.T) {
	const second, requests = 1e6, 240 // us
	var d testset.Dump
	for n := range requests {
		at, held := float64(n)*second/2, 500.0
		if n > requests/2 && n%2 == 0 {
			held = 0.4 * second
		}
		r := testset.Span{Trace: fmt.Sprintf("%032x", n+1), Name: fmt.Sprintf(" Req %d", n), From: at + held, To: at + held + second,
			Attrs: testset.Attrs{"rid": fmt.Sprint(n), "module": "sglang::request"}}
		line := len(d.Lines)
		r.Parent = d.Add(testset.Span{Service: "smg", Trace: r.Trace, Name: "http_request", From: at, To: r.To + 1000,
			Attrs: testset.Attrs{"module": "smg", "request_id": fmt.Sprintf("gnt-%d", n), "status_code": "200"}})
		d.AddEvent(line, "Sending request", at+held-100, testset.Attrs{"url": "http://10.0.0.1:30000"})
		id := d.Add(r)
		d.Thread(r, id, testset.PrefillHost, "Tokenizer", -1, 300, testset.Span{Name: "tokenize", From: r.From, To: r.From + 300})
		d.Thread(r, id, testset.PrefillHost, "Scheduler", 0, 301, testset.Span{Name: "request_process", From: r.From + 400, To: r.From + 500},
			testset.Span{Name: "prefill_waiting", From: r.From + 500, To: r.From + 600}, testset.Span{Name: "prefill_forward", From: r.From + 600, To: r.From + 50_000},
			testset.Span{Name: "decode_forward", From: r.From + 50_000, To: r.To - 500})
	}
	list := changesWithin(d.Set(t), true)
	const want = "the gateway has held 50 % of the requests since"
	if len(list) == 0 || !strings.HasPrefix(list[0].Text, want) || list[0].Confidence != finding.Certain || !list[0].Stays {
		t.Errorf("found %+v, want %q", list, want)
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
