package cause

import (
	"fmt"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// A request waits in the queue until its client gives up, and one that no scheduler took in waits until the last
// sign of its server. One that a full queue rejects does not wait in the queue.
func TestUnanswered(t *testing.T) {
	var d testset.Dump
	trace := func(n int) string { return fmt.Sprintf("%032x", n) }
	tokenizer := func(root testset.Span, id string, from float64) {
		d.Thread(root, id, testset.DecodeHost, "Tokenizer", -1, 400, testset.Span{Name: "tokenize", From: from, To: from + 1000})
	}
	root := func(n int, from, to float64) (testset.Span, string) {
		r := testset.Span{Trace: trace(n), Name: fmt.Sprintf(" Req %d", n), From: from, To: to, Attrs: testset.Attrs{"rid": fmt.Sprint(n), "module": "sglang::request"}}
		return r, d.Add(r)
	}
	r, id := root(1, 0, 100_000)
	tokenizer(r, id, 0)
	d.Thread(r, id, testset.DecodeHost, "Scheduler", 0, 500, testset.Span{Name: "request_process", From: 2000, To: 3000},
		testset.Span{Name: "prefill_waiting", From: 3000, To: 4000}, testset.Span{Name: "prefill_forward", From: 4000, To: 100_000})
	for n, reason := range map[int]string{2: "Aborted", 3: request.QueueFull} {
		r, id := root(n, 0, 50_000)
		tokenizer(r, id, 0)
		thread := d.Add(testset.Span{Trace: r.Trace, Parent: id, Name: "Scheduler", From: 2000, To: 49_000, Failed: true,
			Attrs: testset.Attrs{"host_id": testset.DecodeHost, "thread_label": "Scheduler", "pid": 500, "tp_rank": 0, "reason": reason}})
		d.Add(testset.Span{Trace: r.Trace, Parent: thread, Name: "request_process", From: 2000, To: 3000})
	}
	tokenizer(testset.Span{Trace: trace(4)}, "00000000000000ff", 60_000)
	r, id = root(5, 150_000, 200_000)
	tokenizer(r, id, 160_000)

	s := d.Set(t)
	a := NewAttributor(place.Of(s))
	list := a.Unanswered(new(SplitSizes(s, a.All(), a.Peers.Len())))
	got := map[string]Causes{}
	for i := range list {
		got[s.Text(s.Requests[list[i].Request].RID)] = list[i].E2E
	}
	for rid, want := range map[string]map[Cause]int64{
		"2":                 {Dispatch: 2000, Intake: 1000, Queue: 46_000, Unaccounted: 1000},
		"trace:" + trace(4): {Dispatch: 1000, Intake: 139_000},
	} {
		e2e, want := got[rid], inMicros(want)
		compareCauses(t, rid, &e2e, &want)
	}
	if q := got["3"]; q[Queue] != 0 {
		t.Errorf("a request that was turned away is in the queue for %d ns", q[Queue])
	}
}
