package requests

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// giveUps returns requests, one per second. Those from an index on are given up
// after the number of ns that after returns.
func giveUps(n, from int, after func(i int) int64) *request.Set {
	s := request.NewSet(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	for i := range n {
		start := trace.Time(1_787_000_000_000_000_000 + int64(i)*1_000_000_000)
		r := request.Request{Status: request.Finished, Start: start, End: start + trace.Time(500_000_000+int64(i%7)*100_000_000)}
		if i >= from && i%2 == 0 {
			r.Status, r.End = request.Aborted, start+trace.Time(after(i))
		}
		s.Requests = append(s.Requests, r)
	}
	return s
}

// Clients that all leave after the same time have a time-out, which is reported with
// the time since when it happens. Users who leave at random times are no finding.
func TestGiveUpFindings(t *testing.T) {
	timeOut := func(i int) int64 { return 2_500_000_000 + int64(i%5)*1_000_000 }
	found, _ := GiveUpFindings(giveUps(200, 100, timeOut))
	if len(found) != 1 || found[0].Since == 0 || found[0].Affected.N != 50 {
		t.Fatalf("%+v", found)
	}
	if want := "the clients of 50 of 200 requests gave up, all of them after 2.50 s (a time-out); since "; !strings.HasPrefix(found[0].Text, want) {
		t.Errorf("%q, want %q", found[0].Text, want)
	}
	if want := "since then, 51 % of clients give up, most of them after 2.50 s (before: 0 %)"; found[0].Brief != want {
		t.Errorf("%q, want %q", found[0].Brief, want)
	}
	passing := giveUps(300, 100, timeOut)
	for i := range passing.Requests[200:] { // and then all are served again
		if r := &passing.Requests[200+i]; r.Status == request.Aborted {
			r.Status, r.End = request.Finished, r.Start+500_000_000
		}
	}
	found, _ = GiveUpFindings(passing)
	if began, over := passing.Requests[100].Start, passing.Requests[200].Start; len(found) != 1 || found[0].Since < began-5e9 || found[0].Since > began+5e9 || found[0].Until < over-5e9 || found[0].Until > over+5e9 {
		t.Errorf("for a while: %+v", found)
	}
	found, _ = GiveUpFindings(giveUps(200, 0, timeOut))
	if len(found) != 1 || found[0].Since != 0 {
		t.Errorf("from the beginning on: %+v", found)
	}
	found, _ = GiveUpFindings(giveUps(200, 100, func(i int) int64 { return int64(i) * 30_000_000 }))
	if len(found) != 0 {
		t.Errorf("at any time: %+v", found)
	}
}

// A retry has a prompt of the same length as the request that was given up, and the last attempt may have an answer.
func TestAttempts(t *testing.T) {
	const second = trace.Time(1e9)
	s := &request.Set{}
	for _, r := range []struct {
		from, to trace.Time
		tokens   int64
		status   request.Status
	}{
		{0, 1, 700, request.Aborted}, {0, 3, 500, request.Finished}, {1, 2, 300, request.Aborted}, {2, 3, 700, request.Aborted}, {4, 9, 700, request.Finished},
		{5, 6, 700, request.Finished}, {5, 6, 0, request.Aborted}, {90, 91, 300, request.Aborted},
	} {
		q := request.Request{Start: r.from * second, End: r.to * second, Status: r.status}
		q.Metrics.PromptTokens = r.tokens
		s.Requests = append(s.Requests, q)
	}
	got := Attempts(s, []int{0, 2, 3, 6, 7})
	if want := [][]int{{0, 3, 4}, {2}, {6}, {7}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
