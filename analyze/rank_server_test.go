package analyze

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/request"
)

// A servedBy is a request: when it began, in ms, and the threads that worked on it.
type servedBy struct {
	at      int
	threads []servedThread
}

type servedThread struct {
	host string
	tp   int // -1 is the tokenizer
	pid  int
}

// served makes a set of requests.
func served(t *testing.T, list []servedBy) *request.Set {
	var d dumpWriter
	for i, r := range list {
		from := float64(1000 * r.at)
		root := wireSpan{trace: fmt.Sprintf("%032x", i+1), name: fmt.Sprintf(" Req %08x", i), from: from, to: from + 900,
			attrs: attrs{"rid": fmt.Sprintf("%012x", i), "module": "sglang::request", "gen_ai.usage.completion_tokens": 1, "gen_ai.usage.prompt_tokens": 10}}
		id := d.add(root)
		for _, th := range r.threads {
			label, stage := "Scheduler", "prefill_forward"
			if th.tp < 0 {
				label, stage = "Tokenizer", "tokenize"
			}
			d.thread(root, id, th.host, label, th.tp, th.pid, wireSpan{name: stage, from: from, to: from + 800})
		}
	}
	return d.set(t)
}

// loadsOf prints the ranks of a set with their requests.
func loadsOf(s *request.Set) string {
	r := MeasureRanks(s)
	var out []string
	for i := range r.Loads {
		out = append(out, fmt.Sprintf("%s: %d", r.Loads[i].Where.String(), r.Loads[i].Requests))
	}
	return strings.Join(out, ", ")
}

// Servers of one role on one host are told apart by who works with whom, and by the
// times at which they were.
func TestServersOnOneHost(t *testing.T) {
	server := func(host string, pid, ranks int) []servedThread {
		threads := []servedThread{{host, -1, pid}}
		for tp := range ranks {
			threads = append(threads, servedThread{host, tp, pid + 1 + tp})
		}
		return threads
	}
	a, b, c := server(decodeHost, 300, 2), server(decodeHost, 100, 2), server(prefillHost, 100, 2)
	const host, other = "unified c94b1e02", "unified 0a6c2f77"
	for _, test := range []struct {
		name string
		list []servedBy
		want string
	}{
		{"in turn: numbered by process id, ranks with their servers",
			[]servedBy{{0, a}, {1, b}, {2, a}, {3, b}, {4, a}},
			host + " #1 TP0: 2, " + host + " #1 TP1: 2, " + host + " #2 TP0: 3, " + host + " #2 TP1: 3"},
		{"one after the other: a restart",
			[]servedBy{{0, a}, {1, a}, {2, b}, {3, b}},
			host + " TP0: 4, " + host + " TP1: 4"},
		{"on two hosts: equal process ids are no matter",
			[]servedBy{{0, a}, {1, c}, {2, a}, {3, c}},
			other + " TP0: 2, " + other + " TP1: 2, " + host + " TP0: 2, " + host + " TP1: 2"},
		{"ranks that have no request together are of one server",
			[]servedBy{{0, a[1:2]}, {1, a[2:]}, {2, a[1:2]}, {3, a[2:]}},
			host + " TP0: 2, " + host + " TP1: 2"},
		{"one of two started anew",
			[]servedBy{{0, a}, {1, b}, {2, a}, {3, b}, {4, server(decodeHost, 500, 2)}, {5, b}, {6, server(decodeHost, 500, 2)}},
			host + " #1 TP0: 3, " + host + " #1 TP1: 3, " + host + " #2 TP0: 4, " + host + " #2 TP1: 4"},
	} {
		if got := loadsOf(served(t, test.list)); strings.ReplaceAll(got, "-PP0-DP0-EP0", "") != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// Process ids that change with every request tell no servers.
func TestTooManyServersAreNone(t *testing.T) {
	var list []servedBy
	for turn := range 2 {
		for i := range 300 {
			list = append(list, servedBy{300*turn + i, []servedThread{{decodeHost, 0, 1000 + i}}})
		}
	}
	s := served(t, list)
	for i := range s.Procs {
		if n := s.Server(i); n != 0 {
			t.Fatalf("proc %d is of server %d", i, n)
		}
	}
}

// The summary says that servers do not tell their hosts, if there may be several.
func TestHostsThatAreNotTold(t *testing.T) {
	a, b := []servedThread{{"", 0, 100}}, []servedThread{{"", 0, 200}}
	for _, test := range []struct {
		list []servedBy
		want bool
	}{
		{[]servedBy{{0, a}, {1, b}, {2, a}, {3, b}}, true},
		{[]servedBy{{0, a}, {1, a}, {2, b}}, false},
		{[]servedBy{{0, []servedThread{{decodeHost, 0, 100}}}, {1, []servedThread{{decodeHost, 0, 200}}}, {2, []servedThread{{decodeHost, 0, 100}}}}, false},
	} {
		o := &Overview{OverviewInput: OverviewInput{Requests: served(t, test.list)}}
		said := slices.ContainsFunc(o.hostDoubts(), func(d Doubt) bool { return strings.Contains(d.Text, "do not tell their hosts") })
		if said != test.want {
			t.Errorf("%v: said %v, want %v", test.list, said, test.want)
		}
	}
}
