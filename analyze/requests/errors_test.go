package requests

import (
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// someFailed returns n requests, of which those with the given indexes failed.
func someFailed(n int, failed ...int) *request.Set {
	s := request.NewSet(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	s.Requests = make([]request.Request, n)
	for i := range s.Requests {
		s.Requests[i] = request.Request{RID: s.NewText(string(rune('a' + i%26))), Start: trace.Time(1e9 * (i + 1))}
	}
	for _, i := range failed {
		s.Requests[i].Status, s.Requests[i].Reason = request.Failed, s.Syms.Intern("Prefill transfer failed for request rank=0 "+s.Text(s.Requests[i].RID))
	}
	return s
}

func TestFailureFindings(t *testing.T) {
	for _, test := range []struct {
		name string
		set  *request.Set
		want string
		at   trace.Time

		example string
	}{
		{"none", someFailed(100), "", 0, ""},
		{"one may be the client's fault", someFailed(100, 50), "", 0, ""},
		{"too few of many", someFailed(2500, 50, 60), "", 0, ""},
		{"spread", someFailed(100, 10, 90), "2 of 100 requests got no answer (Prefill transfer failed); they started between 00:00:11.0 and 00:01:31.0", 0, "2: Prefill transfer failed: k, m"},
		{"from some time on", someFailed(100, 80, 85, 90, 95), "4 of 100 requests got no answer (Prefill transfer failed); the first of them started at 00:01:21.0, and none of the 80 requests before it failed", 81e9, "4: Prefill transfer failed: c, h, m and 1 more"},
	} {
		got, _ := FailureFindings(test.set)
		switch {
		case test.want == "" && len(got) > 0, test.want != "" && len(got) != 1:
			t.Errorf("%s: %+v", test.name, got)
		case test.want == "":
		case got[0].Text != test.want || got[0].Since != test.at || got[0].Evidence[0].Text != test.example:
			t.Errorf("%s: %+v", test.name, got[0])
		}
	}
	full := someFailed(100, 1, 2, 3)
	for i := range full.Requests {
		if r := &full.Requests[i]; r.Status == request.Failed {
			r.Status, r.Reason = request.Aborted, full.Syms.Intern("The request queue is full.")
		}
	}
	if got, _ := FailureFindings(full); len(got) != 1 || got[0].Cost != 0.03 || got[0].Affected.N != 3 {
		t.Errorf("requests that were turned away: %+v", got)
	}
	for i := range full.Requests {
		full.Requests[i].Reason = full.Syms.Intern("Aborted by the client")
	}
	if got, _ := FailureFindings(full); len(got) != 0 {
		t.Errorf("clients that gave up: %+v", got)
	}
}

// Reasons are listed by frequency, each with requests that have it, and the command
// lists the failed requests.
func TestReasonsOfFailures(t *testing.T) {
	s := someFailed(100, 1, 2, 3, 4)
	s.Requests[2].Status, s.Requests[2].Reason = request.Aborted, s.Syms.Intern("The request queue is full.")
	got, _ := FailureFindings(s)
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	f := &got[0]
	if want := "4 of 100 requests got no answer (3 Prefill transfer failed, 1 The request queue is full); "; !strings.HasPrefix(f.Text, want) {
		t.Errorf("%s", f.Text)
	}
	if want := []string{"3: Prefill transfer failed: b, d, e", "1: The request queue is full: c"}; !slices.Equal(finding.Sentences(f.Evidence), want) {
		t.Errorf("%q", finding.Sentences(f.Evidence))
	}
	if got, want := f.Command([]string{"x.jsonl"}), "sgtrace requests --status failed --status aborted x.jsonl"; got != want {
		t.Errorf("%s", got)
	}
}

// Failures between two servers are attributed to both, or to one of them if the other ends vary.
func TestServersOfFailures(t *testing.T) {
	failing := func(prefill, decode func(i int) string) string {
		s := request.NewSet(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
		proc := func(role request.Role, host string) int {
			k := slices.IndexFunc(s.Procs, func(p request.Proc) bool { return p.Role == role && p.Host == host })
			if k < 0 {
				k = len(s.Procs)
				s.Procs = append(s.Procs, request.Proc{Role: role, Host: host})
			}
			return k
		}
		var failed []int
		for i := range 40 {
			s.AddRequest(request.Request{Start: trace.Time(1e9 * (i + 1)), Gateway: request.None}, 2*i, 2*i+1)
			for _, p := range []request.Part{{Role: request.Prefill, Proc: proc(request.Prefill, prefill(i))}, {Role: request.Decode, Proc: proc(request.Decode, decode(i))}} {
				p.Request, p.Root, p.Gateway = i, request.None, request.None
				s.Parts = append(s.Parts, p)
			}
			if i%4 == 0 {
				s.Requests[i].Status, s.Requests[i].Reason = request.Failed, s.Syms.Intern("Decode transfer failed")
				failed = append(failed, i)
			}
		}
		_, most := failingServers(s, failed)
		return most
	}
	of := func(list ...string) func(int) string { return func(i int) string { return list[i%len(list)] } }
	for _, test := range []struct{ got, want string }{
		{failing(of("p0", "p1", "p1", "p1"), of("d0", "d1", "d1", "d1")), "all on decode (d0) and prefill (p0)"},
		{failing(of("p0", "p1", "p1"), of("d0", "d1", "d1", "d1")), "all on decode (d0)"},
		{failing(of("p0"), of("d0", "d1", "d1", "d1")), "all on decode (d0)"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}
