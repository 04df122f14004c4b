package naming

import (
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// rank parses a rank as written in dumps.
func rank(t *testing.T, text string) trace.Rank {
	t.Helper()
	if text == "" {
		return trace.NoRank
	}
	r, err := trace.ParseRank(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRank names the ranks of whole deployments, and finds each by its name.
func TestRank(t *testing.T) {
	type row struct {
		role, host string
		server     int
		rank, want string
	}
	for _, c := range []struct {
		what string
		rows []row
	}{
		{"prefill and decode, with a constant PP", []row{
			{"prefill", "a", 0, "TP0-PP0", "prefill TP0"}, {"prefill", "a", 0, "TP1-PP0", "prefill TP1"},
			{"decode", "b", 0, "TP0-PP0-DP0", "decode DP0 TP0"}, {"decode", "b", 0, "TP1-PP0-DP1", "decode DP1 TP1"}}},
		{"one server", []row{{"unified", "a", 0, "TP0", "TP0"}, {"unified", "a", 0, "TP1", "TP1"}}},
		{"one rank", []row{{"unified", "a", 0, "TP0-PP0", "TP0"}}},
		{"TP of one says nothing beside DP", []row{{"decode", "a", 0, "TP0-DP0", "decode DP0"}, {"decode", "a", 0, "TP0-DP1", "decode DP1"}}},
		{"two servers have the rank", []row{
			{"decode", "a", 0, "TP0", "decode TP0 (a)"}, {"decode", "b", 0, "TP0", "decode TP0 (b)"}, {"decode", "b", 0, "TP1", "decode TP1 (b)"},
			{"prefill", "c", 0, "TP0", "prefill TP0"}}},
		{"two servers on one host", []row{{"unified", "a", 1, "TP0", "TP0 (a #1)"}, {"unified", "a", 2, "TP0", "TP0 (a #2)"}}},
		{"one server on two hosts", []row{{"unified", "a", 0, "TP0", "TP0"}, {"unified", "b", 0, "TP1", "TP1"}}},
		{"no ranks", []row{{"unified", "a", 0, "", "unified (a)"}, {"unified", "b", 0, "", "unified (b)"}}},
		{"numbers", []row{{"", "a", 0, "0", "rank 0"}, {"", "a", 0, "7", "rank 7"}}},
		{"numbers beside parts", []row{{"", "a", 0, "TP0-0", "TP0"}}},
		{"pipelines", []row{{"unified", "a", 0, "TP0-PP0", "PP0"}, {"unified", "a", 0, "TP0-PP1", "PP1"}}},
		{"both kinds of servers", []row{{"unified", "a", 0, "TP0", "unified TP0"}, {"decode", "b", 0, "TP0", "decode TP0"}}},
	} {
		places := make([]Place, len(c.rows))
		for i, r := range c.rows {
			places[i] = Place{r.role, r.host, r.server, rank(t, r.rank)}
		}
		n := New(places, nil)
		for i, r := range c.rows {
			if got := n.Rank(places[i]); got != r.want {
				t.Errorf("%s: %+v is %q, want %q", c.what, r, got, r.want)
			}
			w, err := Parse(r.want)
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			for k := range places {
				if n.Is(places[k], w) != (k == i) {
					t.Errorf("%s: %q selects %+v: %t", c.what, r.want, c.rows[k], k != i)
				}
			}
		}
	}
}

// TestHost checks that a host gets the name that any input knows, unless two hosts share it.
func TestHost(t *testing.T) {
	ids := []string{"8d92c5fc00aa11bb", "443ee9c0aaaa", "443ee9c0aabb", "node7.example", "cafecafe01", "cafecafe02", ""}
	known := map[string]string{"8d92c5fc00aa11bb": "decode-0", "cafecafe01": "twin", "cafecafe02": "twin"}
	var places []Place
	for _, id := range ids {
		places = append(places, Place{Host: id, Rank: trace.NoRank})
	}
	n := New(places, known)
	for i, want := range []string{"decode-0", "443ee9c0aaa", "443ee9c0aab", "node7.example", "cafecafe01", "cafecafe02", "?"} {
		if got := n.Host(ids[i]); got != want {
			t.Errorf("%s is %s, want %s", ids[i], got, want)
		}
		if got := n.Host(n.Host(ids[i])); got != want && ids[i] != "" {
			t.Errorf("%s has another name, %s", want, got)
		}
		for k, host := range ids {
			if host != "" && n.IsHost(host, want) != (k == i) {
				t.Errorf("%s selects %s: %t", want, host, k != i)
			}
		}
	}
	if !n.IsHost("8d92c5fc00aa11bb", "8d92c5fc") {
		t.Error("an id does not select its host any more")
	}
	hidden := n.Rename(strings.ToUpper)
	for _, id := range ids[:4] {
		if got, want := hidden.Host(strings.ToUpper(id)), strings.ToUpper(n.Host(id)); !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s after all have new names, want %s", id, got, want)
		}
	}
}

func TestProcess(t *testing.T) {
	decode := Place{Role: "decode", Rank: trace.Rank{TP: 0, PP: 0, DP: 1, EP: -1, Global: -1}}
	tokenizer := Place{Role: "decode", Rank: trace.NoRank}
	n := New([]Place{decode, tokenizer, {Role: "prefill", Rank: trace.Rank{TP: 1, PP: 0, DP: -1, EP: -1, Global: -1}}}, nil)
	for _, c := range []struct {
		place       Place
		label, want string
	}{
		{decode, "Decode Scheduler", "DP1 TP0 · decode scheduler"},
		{decode, "Scheduler", "DP1 TP0 · decode scheduler"},
		{tokenizer, "DecodeTokenizer", "DecodeTokenizer"},
		{tokenizer, "Decode DP Controller", "Decode DP Controller"},
		{Place{Rank: trace.NoRank}, "", ""},
	} {
		if got := n.Process(c.place, c.label); got != c.want {
			t.Errorf("%s is %q, want %q", c.label, got, c.want)
		}
	}
	if w, err := Parse("DP1 TP0 · decode scheduler"); err != nil || !n.Is(decode, w) || n.Is(tokenizer, w) {
		t.Errorf("the name of a process selects no rank: %+v, %v", w, err)
	}
}

// TestNil checks that without names, everything known is shown.
func TestNil(t *testing.T) {
	var n *Names
	p := Place{"unified", "8d92c5fc00aa11bb", 2, trace.Rank{TP: 0, PP: 0, DP: -1, EP: -1, Global: -1}}
	if got, want := n.Rank(p), "unified PP0 TP0 (8d92c5fc #2)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Want{
		"decode DP1 TP0 (node7 #2)": {"decode", "node7 #2", rank(t, "DP1-TP0")},
		"TP0-PP0-DP1":               {"", "", rank(t, "TP0-PP0-DP1")},
		"7":                         {"", "", rank(t, "7")},
		"decode rank 7":             {"decode", "", rank(t, "7")},
		"unified (a)":               {"unified", "a", trace.NoRank},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "node7", "decode node7", "(a)", "TP", "· decode"} {
		if w, err := Parse(text); err == nil {
			t.Errorf("%q is %+v", text, w)
		}
	}
}

// TestProcesses checks that a process without a rank is named after its program, with its host or
// file only if another process has the same name.
func TestProcesses(t *testing.T) {
	for _, c := range []struct {
		what string
		all  []Process
		want []string
	}{
		{"one", []Process{{"python3", 111, "a", "x/run.sqlite"}}, []string{"python3 111"}},
		{"two of a host", []Process{{"python3", 111, "a", "run.sqlite"}, {"python3", 112, "a", "run.sqlite"}}, []string{"python3 111", "python3 112"}},
		{"one of each host", []Process{{"python3", 111, "a", "1.sqlite"}, {"python3", 111, "b", "2.sqlite"}, {"bash", 7, "b", "2.sqlite"}},
			[]string{"a python3 111", "b python3 111", "bash 7"}},
		{"hosts that are known by ids", []Process{{"machine", 0, "cafecafe0123", ""}, {"machine", 0, "deadbeef0123", ""}}, []string{"cafecafe machine", "deadbeef machine"}},
		{"a host is not known", []Process{{"python", 1, "", "1.json"}, {"python", 1, "b", "2.json"}}, []string{"python 1", "b python 1"}},
		{"one host, two files", []Process{{"python", 1, "a", "d/1.pt.trace.json.gz"}, {"python", 1, "a", "d/2.json"}}, []string{"python 1 of 1", "python 1 of 2"}},
		{"two hosts, one of them with two files", []Process{{"python", 1, "a", "1.json"}, {"python", 1, "a", "2.json"}, {"python", 1, "b", "3.json"}},
			[]string{"a python 1 of 1", "a python 1 of 2", "b python 1"}},
		{"no name", []Process{{PID: 1234, File: "1.json"}}, []string{"process 1234"}},
		{"nothing", []Process{{File: "1.json"}}, []string{"process"}},
		{"nothing of two files", []Process{{File: "1.json"}, {File: "2.json"}}, []string{"process of 1", "process of 2"}},
		{"nothing differs", []Process{{Name: "a", File: "x/1.json"}, {Name: "a", File: "y/1.json"}}, []string{"a", "a"}},
	} {
		var places []Place
		for _, p := range c.all {
			places = append(places, Place{Host: p.Host, Rank: trace.NoRank})
		}
		if got := New(places, nil).Processes(c.all); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
