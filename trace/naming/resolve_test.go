package naming

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// TestResolveOne resolves single files; conflict is a part of the message, or "".
func TestResolveOne(t *testing.T) {
	const sgl = id + "-TP-3.trace.json.gz"
	procs := func(p ...string) []string { return p }
	for _, c := range []struct {
		what     string
		in       Input
		rank     trace.Rank
		from     string
		host     string // host:from
		conflict string
	}{
		{"nothing", Input{Path: "trace.json"}, trace.NoRank, "", ":", ""},
		{"name", Input{Path: sgl, HeaderRank: -1}, tp(3), "name", ":", ""},
		{"zero header is none", Input{Path: sgl}, tp(3), "name", ":", ""},
		{"header adds global", Input{Path: sgl, HeaderRank: 3, WorldSize: 8}, rk(3, -1, -1, -1, 3), "header", ":", ""},
		{"header alone", Input{Path: "trace.json", HeaderRank: 3, WorldSize: 8, HeaderHost: "n1"}, global(3), "header", "n1:header", ""},
		{"header against TP", Input{Path: sgl, HeaderRank: 4, WorldSize: 8}, global(4), "header", ":", "name says TP3, the header rank 4 of 8"},
		{"header without its world", Input{Path: "t.json", HeaderRank: 3, WorldSize: -1}, global(3), "header", ":", ""},
		{"header without its world beside TP", Input{Path: id + "-TP-1.trace.json", HeaderRank: 3, WorldSize: -1}, rk(1, -1, -1, -1, 3), "header", ":", ""},
		{"header without its world against a name", Input{Path: "rank1.json", HeaderRank: 3, WorldSize: -1}, global(3), "header", ":", "name says rank 1, the header rank 3;"},
		{"graph capture", Input{Path: "graph_capture_rank_0.json", HeaderRank: 5, WorldSize: 8}, global(5), "header", ":", ""},
		{"graph capture of an unknown rank", Input{Path: "graph_capture_rank_0.json", HeaderRank: -1, WorldSize: -1}, trace.NoRank, "", ":", ""},
		{"header outside its world", Input{Path: sgl, HeaderRank: 8, WorldSize: 8}, tp(3), "name", ":", "rank 8 of 8"},
		{"PP shifts", Input{Path: id + "-TP-3-PP-1.trace.json", HeaderRank: 7, WorldSize: 8}, rk(3, -1, 1, -1, 7), "header", ":", ""},
		{"PP 0 does not", Input{Path: id + "-TP-3-PP-0.trace.json", HeaderRank: 7, WorldSize: 8}, global(7), "header", ":", "header"},
		{"PP shifts by the TP size only", Input{Path: id + "-TP-3-PP-1.trace.json", HeaderRank: 6, WorldSize: 8}, global(6), "header", ":", "header"},
		{"DP attention", Input{Path: id + "-TP-5-DP-2-EP-5.trace.json", HeaderRank: 5, WorldSize: 8}, rk(5, 2, -1, 5, 5), "header", ":", ""},
		{"DP replica, own world", Input{Path: id + "-TP-1-DP-2.trace.json", HeaderRank: 1, WorldSize: 2}, rk(1, 2, -1, -1, 1), "header", ":", ""},
		{"DP replica of one", Input{Path: id + "-TP-0-DP-2.trace.json", HeaderRank: 0, WorldSize: 1}, rk(0, 2, -1, -1, 0), "header", ":", ""},
		{"alone in its world", Input{Path: "rank3.json", HeaderRank: 0, WorldSize: 1}, global(3), "name", ":", ""},
		{"vLLM DP, shared world", Input{Path: "dp1_pp0_tp1_dcp0_ep3_rank1.1787888523192512434.pt.trace.json", HeaderRank: 3, WorldSize: 4}, rk(1, 1, 0, 3, 3), "header", ":", ""},
		{"vLLM DP, own world", Input{Path: "dp1_pp0_tp1_dcp0_ep1_rank1.1787888523192512434.pt.trace.json", HeaderRank: 1, WorldSize: 2}, rk(1, 1, 0, 1, 1), "header", ":", ""},
		{"vLLM DP, wrong", Input{Path: "dp0_pp0_tp1_dcp0_ep1_rank1.1787888523192512434.pt.trace.json", HeaderRank: 3, WorldSize: 4}, global(3), "header", ":", "header"},
		{"old vLLM DP", Input{Path: "ab12c-rank-1.1787888523192512434.pt.trace.json", HeaderRank: 3, WorldSize: 4}, global(3), "header", ":", ""},
		{"old vLLM, wrong", Input{Path: "ab12c-rank-3.1787888523192512434.pt.trace.json", HeaderRank: 1, WorldSize: 4}, global(1), "header", ":", "header"},
		{"plain, wrong", Input{Path: "rank1.json", HeaderRank: 3, WorldSize: 4}, global(3), "header", ":", "name says rank 1, the header rank 3 of 4"},
		{"process adds", Input{Path: id + "-TP-3.trace.json", Processes: procs("python3", "sglang::scheduler_DP1_TP3")}, rk(3, 1, -1, -1, -1), "process", ":", ""},
		{"process alone", Input{Path: "t.json", Processes: procs("sglang::scheduler_TP3")}, tp(3), "process", ":", ""},
		{"process against name", Input{Path: id + "-TP-3-EP-3.trace.json", Processes: procs("sglang::scheduler_TP4")}, tp(4), "process", ":", "the process name TP4"},
		{"several processes", Input{Path: sgl, Processes: procs("sglang::scheduler_TP4", "sglang::scheduler_TP5")}, tp(3), "name", ":", "several ranks"},
		{"process and header", Input{Path: "t.json", Processes: procs("sglang::scheduler_TP3"), HeaderRank: 3, WorldSize: 4}, rk(3, -1, -1, -1, 3), "header", ":", ""},
		{"label completes", Input{Path: "t.json", Label: "n1/TP3", HeaderRank: 3, WorldSize: 4}, rk(3, -1, -1, -1, 3), "label", "n1:label", ""},
		{"label rank of a TP", Input{Path: sgl, Label: "3"}, rk(3, -1, -1, -1, 3), "label", ":", ""},
		{"label rank, not of that TP", Input{Path: sgl, Label: "4"}, global(4), "label", ":", "label says rank 4, the file's name TP3"},
		{"label against all", Input{Path: sgl, Label: "TP4", HeaderRank: 3, WorldSize: 8}, tp(4), "label", ":", "label says TP4, the file's header TP3 (rank 3)"},
		{"label host", Input{Path: sgl, Label: "n2", HeaderHost: "n1"}, tp(3), "name", "n2:label", ""},
		{"bad label", Input{Path: sgl, Label: "a/b"}, tp(3), "name", ":", "ignored"},
		{"name's host", Input{Path: "n1_77.1683204321123.pt.trace.json"}, trace.NoRank, "", "n1:name", ""},
		{"hosts agree", Input{Path: "n1_77.1683204321123.pt.trace.json", HeaderHost: "N1.example.com"}, trace.NoRank, "", "N1.example.com:header", ""},
		{"hosts differ", Input{Path: "n1_77.1683204321123.pt.trace.json", HeaderHost: "n2"}, trace.NoRank, "", "n2:header", "host n1, the header n2"},
		{"merged", Input{Path: "merged-" + id + ".trace.json.gz", HeaderRank: 0, WorldSize: 8, Processes: procs("sglang::scheduler_TP0")}, trace.NoRank, "", ":", ""},
	} {
		out, conflicts := Resolve([]Input{c.in})
		r := out[0]
		if r.Rank != c.rank || r.From != c.from || r.Host+":"+r.HostFrom != c.host || r.hostKnown() != (r.Host != "") {
			t.Errorf("%s: %s from %q, host %s:%s; want %s from %q, host %s", c.what, text(r.Rank), r.From, r.Host, r.HostFrom, text(c.rank), c.from, c.host)
		}
		said := ""
		if len(conflicts) > 0 {
			said = conflicts[0].What
		}
		if (c.conflict == "") != (said == "") || !strings.Contains(said, c.conflict) {
			t.Errorf("%s: conflict %q, want %q", c.what, said, c.conflict)
		}
	}
}

func TestResolveNotRank(t *testing.T) {
	out, _ := Resolve([]Input{{Path: "merged-" + id + ".trace.json"}, {Path: "merged-" + id + ".trace.json", Label: "TP0"},
		{Path: id + "-TP-3-memory.pickle", HeaderRank: 3, WorldSize: 4}})
	if !out[0].NotRank || out[1].NotRank || out[1].Rank != tp(0) || !out[2].NotRank || out[2].Rank != rk(3, -1, -1, -1, 3) {
		t.Errorf("%+v", out)
	}
}

// TestResolveAll resolves the files of one merge.
func TestResolveAll(t *testing.T) {
	for _, c := range []struct {
		what  string
		paths []string
		want  []string // path: kind
	}{
		{"a deployment", []string{id + "-TP-0.trace.json.gz", id + "-TP-1.trace.json.gz"}, nil},
		{"stages", []string{id + "-TP-0-EXTEND.trace.json.gz", id + "-TP-0-DECODE.trace.json.gz"}, nil},
		{"two captures", []string{id + "-TP-0.trace.json.gz", "1758513999.5-TP-0.trace.json.gz"}, nil},
		{"iterations", []string{"iteration_1/rank0_trace.json", "iteration_2/rank0_trace.json"}, nil},
		{"packed and unpacked", []string{id + "-TP-0.trace.json.gz", id + "-TP-0.trace.json"}, []string{id + "-TP-0.trace.json.gz: duplicate"}},
		{"copied", []string{"b/" + id + "-TP-0.trace.json", "a/" + id + "-TP-0.trace.json"}, []string{"b/" + id + "-TP-0.trace.json: duplicate"}},
		{"plain, packed and unpacked", []string{"rank0.json", "rank0.json.gz", "rank0.json.zst"}, []string{"rank0.json.gz: duplicate", "rank0.json.zst: duplicate"}},
		{"unknown", []string{"a.json", "rank1.json"}, []string{"a.json: rank-unknown"}},
		{"one of one", []string{"a.json", "merged-1.json"}, nil},
	} {
		var in []Input
		for _, p := range c.paths {
			in = append(in, Input{Path: p})
		}
		_, conflicts := Resolve(in)
		var got []string
		for _, f := range conflicts {
			kind := "duplicate"
			if f.Message != nil {
				kind = f.Message.Code
			}
			got = append(got, f.Path+": "+kind)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

// TestCaptures compares the groups as text, in any order of the files.
func TestCaptures(t *testing.T) {
	f := func(path string, add ...any) Input {
		in := Input{Path: path}
		for _, a := range add {
			switch a := a.(type) {
			case string:
				in.HeaderHost = a
			case int:
				in.HeaderRank, in.WorldSize = int32(a), 8
			}
		}
		return in
	}
	const t1, t2 = "1758513624.5", "1758513999.5"
	for _, c := range []struct {
		what string
		in   []Input
		want string
	}{
		{"stages and captures", []Input{f(t2 + "-TP-0.json"), f(t1 + "-TP-0-DECODE.json"), f(t1 + "-TP-0-EXTEND.part1.json"), f(t1 + "-TP-0-EXTEND.part0.json"), f(t1 + "-TP-1-EXTEND.json"), f("merged-" + t1 + ".json")},
			"TP0 []: 3 2 1 0; TP1 []: 4"},
		{"hosts", []Input{f(t1+"-TP-0.json", "a"), f(t1+"-TP-0-x.json", "b", 0), f(t2+"-TP-0.json", "b.example", 0)},
			"TP0 [a]: 0; TP0 (rank 0) [b]: 1 2"},
		{"one host unknown", []Input{f(t1 + "-TP-0.json"), f(t2+"-TP-0.json", "b")}, "TP0 [b]: 0 1"},
		{"which host", []Input{f(t1+"-TP-0.json", 0), f(t2+"-TP-0.json", "a"), f(t2+"-TP-0.json", "b")},
			"TP0 [a]: 1; TP0 [b]: 2; TP0 (rank 0) []: 0"},
		{"header in one", []Input{f("rank0.json"), f(t1+"-TP-0.json", 0), f(t1+"-TP-1.json", 1)}, "TP0 (rank 0) []: 0 1; TP1 (rank 1) []: 2"},
		{"replicas", []Input{f(t1+"-TP-0-DP-0.json", 0), f(t1+"-TP-0-DP-1.json", 0), f("rank0.json")},
			"rank 0 []: 2; DP0 TP0 (rank 0) []: 0; DP1 TP0 (rank 0) []: 1"},
		{"unknown ranks", []Input{f("b.json"), f("a.json")}, " []: 1;  []: 0"},
		{"process", []Input{f("n_7.1683204321124.pt.trace.json"), f("n_7.1683204321123.pt.trace.json"), f("n_8.1683204321123.pt.trace.json")},
			" [n]: 1 0;  [n]: 2"},
		{"encoder", []Input{f("encoder-rank0-" + t1 + ".trace.json"), f("rank0.json")}, "rank 0 []: 1; rank 0 []: 0"},
	} {
		for range 2 {
			out, _ := Resolve(c.in)
			var got []string
			for _, g := range Captures(out) {
				s := fmt.Sprintf("%s [%s]:", text(g.Rank), strings.TrimSuffix(g.Host, ".example"))
				for _, i := range g.Files {
					s += fmt.Sprint(" ", i)
				}
				got = append(got, s)
			}
			if s := strings.Join(got, "; "); s != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.what, s, c.want)
			}
			slices.Reverse(c.in)
			c.want = reversed(c.want, len(c.in))
		}
	}
}

// reversed renumbers the files in want, which has n files.
func reversed(want string, n int) string {
	words := strings.Split(want, " ")
	seen := false
	for i, w := range words {
		tail := strings.TrimLeft(w, "0123456789")
		if seen && tail != w {
			var k int
			fmt.Sscan(w, &k)
			words[i] = fmt.Sprint(n-1-k) + tail
		}
		seen = strings.HasSuffix(w, "]:") || seen && tail == ""
	}
	return strings.Join(words, " ")
}

func TestSame(t *testing.T) {
	at := func(host string, r trace.Rank) *Resolved { return &Resolved{Rank: r, Host: host} }
	for _, c := range []struct {
		a, b *Resolved
		want bool
	}{
		{at("", tp(0)), at("", tp(0)), true},
		{at("", tp(0)), at("", tp(1)), false},
		{at("a", tp(0)), at("b", tp(0)), false},
		{at("a", tp(0)), at("", tp(0)), true},
		{at("a", tp(0)), at("A.b", tp(0)), true},
		{at("", tp(0)), at("", global(0)), false},
		{at("", rk(0, -1, -1, -1, 0)), at("", global(0)), true},
		{at("", rk(0, 1, -1, -1, 0)), at("", rk(0, 2, -1, -1, 0)), false},
		{at("", trace.NoRank), at("", trace.NoRank), false},
		{at("", tp(0)), &Resolved{Rank: tp(0), NotRank: true}, false},
	} {
		if same(c.a, c.b) != c.want || same(c.b, c.a) != c.want {
			t.Errorf("Same(%+v, %+v) is not %v", c.a, c.b, c.want)
		}
	}
}

// Ranks in communicator groups complete the ranks in process names unless they contradict them.
func TestHints(t *testing.T) {
	nccl := func(pairs ...int32) (hints []Hint) {
		for i := 0; i < len(pairs); i += 2 {
			hints = append(hints, Hint{"NCCL", pairs[i], pairs[i+1]})
		}
		return hints
	}
	for name, c := range map[string]struct {
		in   Input
		want trace.Rank
		from string
	}{
		"nothing else":        {Input{Hints: nccl(3, 8)}, trace.Rank{TP: -1, PP: -1, DP: -1, EP: -1, Global: 3}, "NCCL"},
		"the TP group's":      {Input{Processes: []string{"sglang::scheduler_TP3"}, Hints: nccl(3, 8)}, trace.Rank{TP: 3, PP: -1, DP: -1, EP: -1, Global: 3}, "process"},
		"of the second block": {Input{Processes: []string{"sglang::scheduler_TP0"}, Hints: nccl(4, 8)}, trace.Rank{TP: 0, PP: -1, DP: -1, EP: -1, Global: 4}, "process"},
		"of a stage":          {Input{Processes: []string{"sglang::scheduler_PP1_TP2"}, Hints: nccl(6, 8, 2, 4)}, trace.Rank{TP: 2, PP: 1, DP: -1, EP: -1, Global: 6}, "process"},
		"of another group":    {Input{Processes: []string{"sglang::scheduler_TP2"}, Hints: nccl(3, 8, 2, 4)}, trace.Rank{TP: 2, PP: -1, DP: -1, EP: -1, Global: 2}, "process"},
		"impossible":          {Input{Processes: []string{"sglang::scheduler_TP2"}, Hints: nccl(3, 8, 9, 4, 0, 1)}, trace.Rank{TP: 2, PP: -1, DP: -1, EP: -1, Global: -1}, "process"},
		"the header is known": {Input{HeaderRank: 5, WorldSize: 8, Hints: nccl(3, 4)}, trace.Rank{TP: -1, PP: -1, DP: -1, EP: -1, Global: 5}, "header"},
		"a shared file":       {Input{Path: "rank7.sqlite", Shared: true, HeaderRank: -1}, trace.NoRank, ""},
		"a file of its own":   {Input{Path: "rank7.sqlite", HeaderRank: -1}, trace.Rank{TP: -1, PP: -1, DP: -1, EP: -1, Global: 7}, "name"},
		"a label for several": {Input{Path: "x.sqlite", Label: "node1/TP3", Shared: true, HeaderRank: -1}, trace.NoRank, ""},
	} {
		if c.in.WorldSize == 0 {
			c.in.HeaderRank = -1
		}
		got, _ := Resolve([]Input{c.in})
		if got[0].Rank != c.want || got[0].From != c.from {
			t.Errorf("%s: %+v from %q, want %+v from %q", name, got[0].Rank, got[0].From, c.want, c.from)
		}
	}
}

// Consecutive sessions of one process belong to one rank, whatever is known about it.
func TestSameProcess(t *testing.T) {
	in := []Input{
		{Path: "a.sqlite", HeaderHost: "node0", PID: 4100, HeaderRank: -1, Hints: []Hint{{"NCCL", 1, 2}}},
		{Path: "b.sqlite", HeaderHost: "node0", PID: 4100, HeaderRank: -1},
		{Path: "c.sqlite", HeaderHost: "node1", PID: 4100, HeaderRank: -1},
		{Path: "d.sqlite", PID: 4100, HeaderRank: -1},
	}
	r, _ := Resolve(in)
	if groups := Captures(r); len(groups) != 3 {
		t.Errorf("%d groups: %+v", len(groups), groups)
	}
}
