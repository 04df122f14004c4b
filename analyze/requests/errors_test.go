package requests

import (
	"testing"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// someFailed returns requests of which those with the given numbers failed.
func someFailed(n int, failed ...int) *request.Set {
	s := &request.Set{Requests: make([]request.Request, n)}
	for i := range s.Requests {
		s.Requests[i] = request.Request{RID: string(rune('a' + i%26)), Start: trace.Time(1e9 * (i + 1))}
	}
	for _, i := range failed {
		s.Requests[i].Status, s.Requests[i].Reason = request.Failed, "Prefill transfer failed for request rank=0 "+s.Requests[i].RID
	}
	return s
}

func TestFailureFindings(t *testing.T) {
	for _, test := range []struct {
		name string
		set  *request.Set
		want string
		at   trace.Time
	}{
		{"none", someFailed(100), "", 0},
		{"one may be the client's fault", someFailed(100, 50), "", 0},
		{"too few of many", someFailed(2500, 50, 60), "", 0},
		{"spread", someFailed(100, 10, 90), "2 of 100 requests got no answer; they started between 00:00:11.0 and 00:01:31.0", 0},
		{"from some time on", someFailed(100, 80, 85, 90, 95), "4 of 100 requests got no answer; the first of them started at 00:01:21.0, and none of the 80 requests before it failed", 81e9},
	} {
		got, _ := FailureFindings(test.set)
		switch {
		case test.want == "" && len(got) > 0, test.want != "" && len(got) != 1:
			t.Errorf("%s: %+v", test.name, got)
		case test.want == "":
		case got[0].Text != test.want || got[0].Since != test.at || got[0].Evidence[0].Text[2:] != " Prefill transfer failed":
			t.Errorf("%s: %+v", test.name, got[0])
		}
	}
	full := someFailed(100, 1, 2, 3)
	for i := range full.Requests {
		if r := &full.Requests[i]; r.Status == request.Failed {
			r.Status, r.Reason = request.Aborted, "The request queue is full."
		}
	}
	if got, _ := FailureFindings(full); len(got) != 1 || got[0].Cost != 0.03 || got[0].Affected.N != 3 {
		t.Errorf("requests that were turned away: %+v", got)
	}
	for i := range full.Requests {
		full.Requests[i].Reason = "Aborted by the client"
	}
	if got, _ := FailureFindings(full); len(got) != 0 {
		t.Errorf("clients that gave up: %+v", got)
	}
}
