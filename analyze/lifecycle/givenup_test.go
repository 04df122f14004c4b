package lifecycle

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testset"
)

// A server hangs, and its clients give up after 5 s. The gateway's spans end then, with the status with which it
// began to answer. No span was lost, and the server ended none of these requests.
func TestGivenUpOnAHungServer(t *testing.T) {
	var d testset.Dump
	const second = 1e6 // us
	for n := range 120 {
		at, host, pid := float64(n)*second/2, testset.PrefillHost, 300
		if n%2 == 1 {
			host, pid = testset.DecodeHost, 400
		}
		hangs := n%2 == 1 && at > 20*second
		end := at + second
		if hangs {
			end = at + 5*second
		}
		r := testset.Span{Trace: fmt.Sprintf("%032x", n+1)}
		gateway := d.Add(testset.Span{Service: "smg", Trace: r.Trace, Name: "http_request", From: at, To: end + 1000,
			Attrs: testset.Attrs{"module": "smg", "request_id": fmt.Sprintf("gnt-%d", n), "status_code": "200"}})
		id := fmt.Sprintf("%016x", 1<<40+n)
		if !hangs {
			r.Parent, r.Name, r.From, r.To = gateway, fmt.Sprintf(" Req %d", n), at, end
			r.Attrs = testset.Attrs{"rid": fmt.Sprint(n), "module": "sglang::request"}
			id = d.Add(r)
			d.Thread(r, id, host, "Scheduler", 0, pid+1, testset.Span{Name: "prefill_waiting", From: at + 2000, To: at + 3000},
				testset.Span{Name: "prefill_forward", From: at + 3000, To: at + 50_000}, testset.Span{Name: "decode_forward", From: at + 50_000, To: end})
		}
		d.Thread(r, id, host, "Tokenizer", -1, pid, testset.Span{Name: "tokenize", From: at, To: at + 1000})
	}
	s := d.Set(t)
	if n := len(s.Missing); n > 0 {
		t.Errorf("%d spans are missing, want none", n)
	}
	found, _ := Find(s).Findings()
	const want = "unified (c94b1e02) has hung since"
	if len(found) != 1 || !strings.HasPrefix(found[0].Text, want) || found[0].Affected.N < 25 {
		t.Errorf("found %+v, want %q with most of the 39 requests", found, want)
	}
	if said := fmt.Sprint(found[0].Evidence); !strings.Contains(said, "while others kept working") {
		t.Errorf("%q, and one of two servers goes on", said)
	}
}
