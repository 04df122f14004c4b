package drawing

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// thousand returns 1000 requests, ten per second. Each takes 100 ms, except for 20 with a slow
// TTFT, 20 with a slow token, and 20 with a slow end. Of the others, every 50th fails.
func thousand() *request.Set {
	const ms = int64(time.Millisecond)
	start := trace.Time(time.Date(2026, 8, 17, 20, 58, 30, 0, time.UTC).UnixNano())
	set := request.NewSet(trace.NewSymbols(), trace.NewArgs(), &trace.Diags{})
	for r := range 1000 {
		q := request.Request{Start: start + trace.Time(r)*trace.Time(100*ms), Status: request.Finished}
		q.Metrics = request.Metrics{E2E: 100 * ms, TTFT: 10 * ms, ITL: request.ITL{N: 1, Max: ms}}
		switch {
		case r >= 100 && r < 120:
			q.Metrics.TTFT += int64(r) * ms
		case r >= 200 && r < 220:
			q.Metrics.ITL.Max += int64(r) * ms
		case r >= 300 && r < 320:
			q.Metrics.E2E += int64(r) * ms
		case r%50 == 49:
			q.Status, q.Metrics.TTFT, q.Metrics.ITL = request.Failed, request.Unknown, request.ITL{}
		}
		q.End = q.Start + trace.Time(q.Metrics.E2E)
		set.Requests = append(set.Requests, q)
	}
	return set
}

// Every planted reason selects its requests, worst first, and no request is selected twice.
func TestChooseRequests(t *testing.T) {
	groups := chooseRequests(thousand(), Options{Findings: []Finding{{Requests: []int{7, 119}}, {Requests: []int{7, 5}}}})
	seen := map[int]bool{}
	for _, g := range groups {
		for _, r := range g.requests {
			if seen[r] {
				t.Errorf("%s: request %d is there twice", g.name, r)
			}
			seen[r] = true
		}
	}
	if len(seen) != usualRequests {
		t.Errorf("%d requests, want %d", len(seen), usualRequests)
	}
	for i, want := range []struct {
		name  string
		n     int
		first []int
	}{
		{"Named by findings", 3, []int{7, 119, 5}},
		{"Not finished", 20, []int{49, 99, 149}},
		{"Slowest by TTFT", 30, []int{118, 117, 116}},
		{"Slowest by ITL", 30, []int{219, 218, 217}},
		{"Slowest by E2E", 30, []int{319, 318, 317}},
		{"Ordinary", 187, nil},
	} {
		if g := groups[i]; g.name != want.name || len(g.requests) != want.n || !slices.Equal(g.requests[:len(want.first)], want.first) {
			t.Errorf("%q has %d requests, %v and more; want %q with %d, %v and more", g.name, len(g.requests), g.requests[:3], want.name, want.n, want.first)
		}
	}
	ordinary := groups[5].requests
	if first, last := slices.Min(ordinary), slices.Max(ordinary); first > 40 || last < 980 {
		t.Errorf("the sample reaches from request %d to %d", first, last)
	}
}

// More requests are grouped by minute of arrival, and Every draws all of them.
func TestRequestsByMinute(t *testing.T) {
	for n, want := range map[int]int{Every: 1000, 5000: 1000, 500: 500} {
		var names []string
		var all []int
		for _, g := range chooseRequests(thousand(), Options{Requests: n}) {
			names, all = append(names, g.name), append(all, g.requests...)
		}
		if len(all) != want || !slices.IsSorted(all) {
			t.Errorf("%d: %d requests, in order of arrival: %v; want %d", n, len(all), slices.IsSorted(all), want)
		}
		if got := strings.Join(names, " "); got != "20:58 20:59 21:00" {
			t.Errorf("%d: groups %s", n, got)
		}
	}
}

// With few requests, none stands out, and they need no groups.
func TestFewRequests(t *testing.T) {
	set := thousand()
	set.Requests = set.Requests[:19]
	groups := chooseRequests(set, Options{})
	if len(groups) != 1 || groups[0].name != "" || len(groups[0].requests) != 19 {
		t.Errorf("got %+v, want one group without a name", groups)
	}
}

func TestParseRequests(t *testing.T) {
	for text, want := range map[string]int{"all": Every, "1": 1, "2500": 2500, "0": 0, "-1": 0, "many": 0, "": 0} {
		n, err := ParseRequests(text)
		if n != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %d, %v; want %d", text, n, err, want)
		}
	}
}
