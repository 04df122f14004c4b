package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/golden/simulator"
)

// rankLike matches anything that looks like a rank, in any form that a producer or a report ever
// used, with the role before it, if any.
var rankLike = regexp.MustCompile(`\b(?:(?:prefill|decode|unified) )?(?:[TPDE]P\d+)(?:[- ](?:[TPDE]P\d+))*(?: of decode| of prefill)?(?: \([^()\n]*\))?`)

// demoRanks returns the allowed names of the demo's ranks and groups of ranks. Names without a role
// are for rows that state the role separately.
func demoRanks() map[string]bool {
	names := map[string]bool{}
	for _, rank := range []string{"TP0", "TP1"} {
		names[rank], names["prefill "+rank] = true, true
		for _, dp := range []string{"DP0", "DP1"} {
			for _, name := range []string{dp, dp + " " + rank} {
				names[name], names["decode "+name] = true, true
			}
		}
	}
	return names
}

// namesIn returns the names of the tracks in a Chrome JSON timeline.
func namesIn(t *testing.T, file string) string {
	t.Helper()
	var drawn struct {
		TraceEvents []struct {
			Ph, Name string
			Args     struct{ Name string }
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &drawn); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range drawn.TraceEvents {
		switch e.Ph {
		case "M":
			names[e.Args.Name] = true
		case "C":
			names[e.Name] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), "\n")
}

// A nameCheck collects the names of the demo's ranks that outputs use.
type nameCheck struct {
	*testing.T
	allowed, met map[string]bool
}

// sizes matches group sizes, which are not ranks, as in "decode TP2 DP2".
var sizes = regexp.MustCompile(`(?m)^servers .*$|"size": ?"[^"]*"`)

// ranksIn checks the names of ranks in a text.
func (c *nameCheck) ranksIn(what, text string) {
	for _, name := range rankLike.FindAllString(sizes.ReplaceAllString(text, ""), -1) {
		if i := strings.Index(name, " ("); i > 0 && name[i:] != " (prefill-0)" && name[i:] != " (decode-0)" {
			name = name[:i] // the parentheses hold the subject, not the host
		}
		c.met[name] = true
		if !c.allowed[name] {
			c.Errorf("%s: a rank is called %q", what, name)
		}
	}
}

// demoCommands print names of ranks and hosts.
var demoCommands = []string{
	"report d/otel.jsonl d/torch d/nsys", "report --format json d/otel.jsonl d/torch", "report --by-rank d/otel.jsonl d/torch d/nsys",
	"report --by-rank --format json d/otel.jsonl", "report --timeline d/otel.jsonl d/torch", "report --tail d/otel.jsonl d/torch",
	"report --by rank d/otel.jsonl", "report --kernels --by-rank d/torch", "report --launches --by-rank d/nsys",
	"inspect d/otel.jsonl d/torch d/nsys", "inspect --format json d/otel.jsonl", "diff --by-rank d/torch d/nsys", "diff --by-rank d/otel.jsonl d/otel.jsonl",
}

// TestOneName checks that all output about the demo uses one name per rank and per host.
func TestOneName(t *testing.T) {
	dir := t.TempDir()
	demoOf(t, filepath.Join(dir, "d"), 1, 24)
	var truth simulator.Truth
	data, err := os.ReadFile(filepath.Join(dir, "d", "truth.json"))
	if err == nil {
		err = json.Unmarshal(data, &truth)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &nameCheck{t, demoRanks(), map[string]bool{}}
	ids := regexp.MustCompile(truth.Hosts[0].HostID[:8] + "|" + truth.Hosts[1].HostID[:8] + "|" + truth.Hosts[2].HostID[:8])
	for _, command := range append(demoCommands, "request "+firstRID(t, dir)+" d/otel.jsonl") {
		r := sgtrace(t, dir, strings.Fields(command)...)
		if r.status != exitOK && r.status != exitPartial {
			t.Fatalf("%s: status %d: %s", command, r.status, r.err)
		}
		c.ranksIn(command, r.out)
		if strings.HasPrefix(command, "report") && strings.Contains(command, "torch") && ids.MatchString(r.out) {
			t.Errorf("%s: a host is called by its id, %s", command, ids.FindString(r.out))
		}
	}
	merged := sgtrace(t, dir, strings.Fields("merge d/otel.jsonl d/torch d/nsys --args none -o merged.json")...)
	tracks := namesIn(t, filepath.Join(dir, "merged.json"))
	c.ranksIn("merge", merged.out+merged.err+tracks)
	if id := ids.FindString(tracks + merged.err); id != "" {
		t.Errorf("merge: a host is called by its id, %s", id)
	}
	for _, host := range []string{"prefill-0", "decode-0"} {
		if !strings.Contains(tracks, "By process > "+host+" > ") {
			t.Errorf("merge: no process is on %s", host)
		}
		mustRun(t, dir, "report --by-rank --host "+host+" d/otel.jsonl d/torch")
	}
	c.giveBack(dir)
}

// giveBack passes the names of the demo's ranks to --rank, in each form.
func (c *nameCheck) giveBack(dir string) {
	for _, name := range []string{"prefill TP0", "prefill TP1", "decode DP0 TP0", "decode DP0 TP1", "decode DP1 TP0", "decode DP1 TP1"} {
		if !c.met[name] {
			c.Errorf("nothing is called %s", name)
		}
		selects(c.T, dir, name, name, "report --kernels --by-rank --format csv d/torch")
		for _, given := range []string{name, oldForm(name), processForm(name)} {
			selects(c.T, dir, given, name, "report --by rank --format csv d/otel.jsonl")
		}
	}
}

// oldForm returns the name of a rank in a dump, with the role.
func oldForm(name string) string {
	words := strings.Fields(name)
	slices.Reverse(words[1:])
	return words[0] + " " + strings.Join(words[1:], "-")
}

// processForm returns the name of a rank's process in a timeline.
func processForm(name string) string {
	role, rank, _ := strings.Cut(name, " ")
	return rank + " · " + role + " scheduler"
}

// selects checks that --rank keeps the named rank, and no other.
func selects(t *testing.T, dir, given, name, command string) {
	t.Helper()
	r := sgtrace(t, dir, append(strings.Fields(command), "--rank", given)...)
	left := map[string]bool{}
	for _, rank := range rankLike.FindAllString(r.out, -1) {
		left[rank] = true
	}
	if r.status != exitOK || len(left) != 1 || !left[name] {
		t.Errorf("%s --rank %q: status %d, %v is left: %s", command, given, r.status, left, r.err)
	}
}

// firstRID returns the id of a request of the demo.
func firstRID(t *testing.T, dir string) string {
	t.Helper()
	_, rows, _ := strings.Cut(mustRun(t, dir, "requests --limit 1 --format csv d/otel.jsonl").out, "\n")
	fields := strings.Split(rows, ",")
	return fields[1]
}
