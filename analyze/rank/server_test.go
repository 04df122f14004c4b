package rank

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// loadsOf formats the ranks of a set with their numbers of requests.
func loadsOf(s *request.Set) string {
	r := Measure(place.Of(s))
	var out []string
	for i := range r.Loads {
		out = append(out, fmt.Sprintf("%s: %d", r.Loads[i].Location.String(), r.Loads[i].Requests))
	}
	return strings.Join(out, ", ")
}

// Servers of one role on one host are separated by their ranks' common requests, and
// by the times at which they ran.
func TestServersOnOneHost(t *testing.T) {
	server := func(host string, pid, ranks int) []testset.ServedThread {
		threads := []testset.ServedThread{{Host: host, TP: -1, PID: pid}}
		for tp := range ranks {
			threads = append(threads, testset.ServedThread{Host: host, TP: tp, PID: pid + 1 + tp})
		}
		return threads
	}
	a, b, c := server(testset.DecodeHost, 300, 2), server(testset.DecodeHost, 100, 2), server(testset.PrefillHost, 100, 2)
	for _, test := range []struct {
		name string
		list []testset.ServedBy
		want string
	}{
		{"in turn: numbered by process id, ranks with their servers",
			[]testset.ServedBy{{At: 0, Threads: a}, {At: 1, Threads: b}, {At: 2, Threads: a}, {At: 3, Threads: b}, {At: 4, Threads: a}},
			"TP0 (c94b1e02 #1): 2, TP1 (c94b1e02 #1): 2, TP0 (c94b1e02 #2): 3, TP1 (c94b1e02 #2): 3"},
		{"one after the other: a restart",
			[]testset.ServedBy{{At: 0, Threads: a}, {At: 1, Threads: a}, {At: 2, Threads: b}, {At: 3, Threads: b}},
			"TP0: 4, TP1: 4"},
		{"on two hosts: equal process ids are no matter",
			[]testset.ServedBy{{At: 0, Threads: a}, {At: 1, Threads: c}, {At: 2, Threads: a}, {At: 3, Threads: c}},
			"TP0 (0a6c2f77): 2, TP1 (0a6c2f77): 2, TP0 (c94b1e02): 2, TP1 (c94b1e02): 2"},
		{"ranks that have no request together are of one server",
			[]testset.ServedBy{{At: 0, Threads: a[1:2]}, {At: 1, Threads: a[2:]}, {At: 2, Threads: a[1:2]}, {At: 3, Threads: a[2:]}},
			"TP0: 2, TP1: 2"},
		{"one of two started anew",
			[]testset.ServedBy{{At: 0, Threads: a}, {At: 1, Threads: b}, {At: 2, Threads: a}, {At: 3, Threads: b}, {At: 4, Threads: server(testset.DecodeHost, 500, 2)}, {At: 5, Threads: b}, {At: 6, Threads: server(testset.DecodeHost, 500, 2)}},
			"TP0 (c94b1e02 #1): 3, TP1 (c94b1e02 #1): 3, TP0 (c94b1e02 #2): 4, TP1 (c94b1e02 #2): 4"},
	} {
		if got := loadsOf(testset.Served(t, test.list)); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// Process ids that change with every request do not identify servers.
func TestTooManyServersAreNone(t *testing.T) {
	var list []testset.ServedBy
	for turn := range 2 {
		for i := range 300 {
			list = append(list, testset.ServedBy{At: 300*turn + i, Threads: []testset.ServedThread{{Host: testset.DecodeHost, TP: 0, PID: 1000 + i}}})
		}
	}
	s := testset.Served(t, list)
	for i := range s.Procs {
		if n := s.Server(i); n != 0 {
			t.Fatalf("proc %d is of server %d", i, n)
		}
	}
}
