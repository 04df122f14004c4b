package request

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/naming"
)

// A selection keeps the requests it names.
func TestSelectRequests(t *testing.T) {
	for _, test := range []struct {
		name string
		sel  Selection
		want []int
	}{
		{"nothing", Selection{}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"id of the request", Selection{RIDs: []string{"decode-0003"}}, []int{3}},
		{"id of a part", Selection{RIDs: []string{"prefill-0004"}}, []int{4}},
		{"full id", Selection{RIDs: []string{"full-decode-0005"}}, []int{5}},
		{"id of the gateway", Selection{RIDs: []string{"gw-0006"}}, []int{6}},
		{"several ids", Selection{RIDs: []string{"gw-0001", "decode-0008"}}, []int{1, 8}},
		{"a beginning", Selection{RIDs: []string{"prefill-000"}}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"room in hex", Selection{Rooms: []string{"0x12"}}, []int{2}},
		{"room in decimal", Selection{Rooms: []string{"19"}}, []int{3}},
		{"room of none", Selection{Rooms: []string{"0x99"}}, nil},
		{"trace", Selection{Traces: []string{"A"}}, []int{9}},
		{"finished", Selection{Statuses: []Status{Failed, Finished}}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"failed", Selection{Statuses: []Status{Failed, Aborted}}, nil},
		{"slowest", Selection{Slowest: 3}, []int{7, 8, 9}},
		{"slowest ttft", Selection{Slowest: 2, SlowestBy: "ttft"}, []int{0, 1}},
		{"slowest itl", Selection{Slowest: 1, SlowestBy: "itl"}, []int{6}},
		{"more than there are", Selection{Slowest: 99}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"from", Selection{From: 8_500_000}, []int{8, 9}},
		{"to", Selection{To: 1_000_000}, []int{0, 1}},
		{"window", Selection{From: 3_000_000, To: 4_000_000}, []int{3, 4}},
		{"two conditions", Selection{RIDs: []string{"gw-0001", "gw-0002"}, Rooms: []string{"0x12"}}, []int{2}},
		{"stage of all", Selection{Stages: []string{"prefill"}}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{"stage of none", Selection{Stages: []string{"encode"}}, nil},
		{"longer than all", Selection{MinDur: 1e9}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := planted(t, plant{requests: 10, steps: func(r int) int { return 1 + r }})
			if err := s.Select(test.sel); err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, r := range test.want {
				want = append(want, fmt.Sprintf("decode-%04d", r))
			}
			if got := rids(s); !slices.Equal(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
			for i := range s.Rows { // selected rows belong to remaining requests
				r := s.RequestOf(i)
				if s.Kind(i) != Unselected && r == None {
					t.Errorf("row %d of a request that is not there", i)
				}
				if r != None && s.Requests[r].Start > s.Rows[i].Start {
					t.Errorf("row %d is of request %d, which begins later", i, r)
				}
			}
		})
	}
}

// A selection of spans removes others, but keeps the ancestors of selected spans.
func TestSelectSpans(t *testing.T) {
	tp1, err := naming.Parse("TP1")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		sel  Selection
		keep func(s *Set, row *Row) bool // decides for stages
	}{
		{"role", Selection{Roles: []Role{Decode}}, func(s *Set, row *Row) bool { return s.Procs[row.Proc].Role == Decode }},
		{"host", Selection{Hosts: []string{"aaaa"}}, func(s *Set, row *Row) bool { return row.Proc == prefillProc }},
		{"rank", Selection{Ranks: []naming.Want{tp1}}, func(s *Set, row *Row) bool { return row.Proc == decodeProc1 }},
		{"stage", Selection{Stages: []string{"step", "wait"}}, func(s *Set, row *Row) bool { return row.Means == Stepping || row.Means == Queueing }},
		{"length", Selection{MinDur: 150_000}, func(s *Set, row *Row) bool { return row.Dur() >= 150_000 }},
		{"role and stage", Selection{Roles: []Role{Prefill}, Stages: []string{"connect"}}, func(s *Set, row *Row) bool { return row.Means == SendConnecting }},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := planted(t, plant{requests: 2})
			s := planted(t, plant{requests: 2})
			if err := s.Select(test.sel); err != nil {
				t.Fatal(err)
			}
			for i := range s.Rows {
				switch row := &before.Rows[i]; {
				case row.Kind == Stage && (s.Kind(i) == Stage) != test.keep(before, row):
					t.Errorf("stage %s of proc %d: %v", s.Name(i), row.Proc, s.Kind(i))
				case row.Kind == Root && len(test.sel.Stages) > 0 && len(test.sel.Roles) == 0 && s.Kind(i) != Root:
					t.Errorf("the request around a stage is gone")
				}
			}
			if len(s.Requests) != 2 || s.Requests[0].Metrics != before.Requests[0].Metrics {
				t.Error("requests, or the facts about them, have changed")
			}
			again := slices.Clone(s.Rows)
			if err := s.Select(test.sel); err != nil || !slices.Equal(again, s.Rows) {
				t.Errorf("the same selection again selects something else: %v", err)
			}
		})
	}
}

// A sample has about the requested size, and a larger sample contains a smaller one.
func TestSample(t *testing.T) {
	const n = 400
	var before []string
	for _, share := range []float64{0.1, 0.3, 0.6, 0.9} {
		s := planted(t, plant{requests: n, change: func(s *Set, i int, q *Request) { q.RID = s.NewText(fmt.Sprintf("decode-%04d", i)) }})
		if err := s.Select(Selection{Sample: share}); err != nil {
			t.Fatal(err)
		}
		got := rids(s)
		if want := share * n; float64(len(got)) < want-60 || float64(len(got)) > want+60 {
			t.Errorf("%v of %d are %d", share, n, len(got))
		}
		for _, rid := range before {
			if !slices.Contains(got, rid) {
				t.Errorf("%s is in a smaller sample and not in that of %v", rid, share)
			}
		}
		before = got
	}
}

// Errors name what was not found, and suggest what may have been meant.
func TestSelectErrors(t *testing.T) {
	for _, test := range []struct {
		sel  Selection
		said string
	}{
		{Selection{RIDs: []string{"decode-O003"}}, "did you mean decode-0003?"},
		{Selection{RIDs: []string{"dec"}}, `the ID "dec"`},
		{Selection{Slowest: 1, SlowestBy: "luck"}, `"luck"`},
	} {
		s := planted(t, plant{requests: 4})
		if err := s.Select(test.sel); err == nil || !strings.Contains(err.Error(), test.said) {
			t.Errorf("%+v: %v, want %q", test.sel, err, test.said)
		}
		if len(s.Requests) != 4 {
			t.Errorf("%+v: an error leaves %d requests", test.sel, len(s.Requests))
		}
	}
}

// One typo in six characters of an id is tolerated; more would match by chance.
func TestSimilar(t *testing.T) {
	s := planted(t, plant{requests: 1})
	for asked, want := range map[string]string{
		"decode-0O00":      "decode-0000",
		"decdoe-000O":      "",
		"decode-0":         "decode-0", // a prefix, which Select finds before it asks for similar ids
		"prefil-0000":      "",         // two typos: a missing and an extra letter
		"full-prefi1l-000": "full-prefill-000",
		"zzzzzz":           "",
		"gw-00":            "",
	} {
		got := s.Similar(asked)
		if want != "" {
			want = "; did you mean " + want + "?"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", asked, got, want)
		}
	}
}

// Rows outside a time range are removed and counted once.
func TestLeaveOut(t *testing.T) {
	s := planted(t, plant{requests: 3})
	want, first := 0, None
	for i := range s.Rows {
		if s.Rows[i].Start < 1_000_000 || s.Rows[i].End > 1_830_000 {
			if want++; first == None {
				first = i
			}
		}
	}
	if n, at := s.LeaveOut(1_000_000, 1_830_000); n != want || at != first {
		t.Errorf("%d left out, the first is %d; want %d, %d", n, at, want, first)
	}
	if n, at := s.LeaveOut(1_000_000, 1_830_000); n != 0 || at != None {
		t.Errorf("%d more left out", n)
	}
	for i := range s.Rows {
		if inside := s.RequestOf(i) == 1; inside != (s.Kind(i) != Unselected) {
			t.Errorf("row %d is %v", i, s.Kind(i))
		}
	}
	s.LeaveOut(trace.Time(1), 0)
	if s.Any() {
		t.Error("something is left of nothing")
	}
}
