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

// rankLike finds whatever looks like a rank, in any form that a producer or a report ever
// gave it, with the word before it if that is a role.
var rankLike = regexp.MustCompile(`\b(?:(?:prefill|decode|unified) )?(?:[TPDE]P\d+)(?:[- ](?:[TPDE]P\d+))*(?: of decode| of prefill)?(?: \([^()\n]*\))?`)

// demoRanks are the names of the ranks of the demo, and of groups of them; bare parts
// stand where a role is said beside them.
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

// namesIn returns what the texts of a drawing call its tracks.
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

// TestOneName: whatever is printed about the demo, a rank and a host have one name.
func TestOneName(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "demo --requests 24 d")
	var truth simulator.Truth
	data, err := os.ReadFile(filepath.Join(dir, "d", "truth.json"))
	if err == nil {
		err = json.Unmarshal(data, &truth)
	}
	if err != nil {
		t.Fatal(err)
	}
	const all, requests = " d/otel.jsonl d/torch d/nsys", " d/otel.jsonl"
	sizes := regexp.MustCompile(`(?m)^servers .*$|"size": "[^"]*"`) // "decode TP2 DP2" are how many there are
	allowed, met := demoRanks(), map[string]bool{}
	check := func(what, text string) {
		for _, name := range rankLike.FindAllString(sizes.ReplaceAllString(text, ""), -1) {
			name = strings.TrimSpace(name)
			if i := strings.Index(name, " ("); i > 0 && !slices.Contains([]string{" (prefill-0)", " (decode-0)"}, name[i:]) {
				name = name[:i] // what it is about, not the host
			}
			met[name] = true
			if !allowed[name] {
				t.Errorf("%s: a rank is called %q", what, name)
			}
		}
	}
	for _, command := range []string{
		"report" + all, "report --format json" + all, "report --by-rank" + all, "report --by-rank --format json" + requests, "report --timeline" + all,
		"report --tail" + all, "report --by rank" + requests, "report --kernels --by-rank d/torch", "report --launches --by-rank d/nsys",
		"inspect" + all, "inspect --format json" + all, "diff --by-rank d/torch d/nsys", "diff --by-rank" + requests + requests,
		"request " + strings.TrimSpace(firstRID(t, dir)) + requests,
	} {
		r := sgtrace(t, dir, strings.Fields(command)...)
		if r.status != exitOK && r.status != exitPartial {
			t.Fatalf("%s: status %d: %s", command, r.status, r.err)
		}
		check(command, r.out)
		for _, h := range truth.Hosts {
			if strings.HasPrefix(command, "report") && strings.HasSuffix(command, all) && strings.Contains(r.out, h.HostID[:8]) {
				t.Errorf("%s: %s is called %s", command, h.Name, h.HostID[:8])
			}
		}
	}
	m := sgtrace(t, dir, strings.Fields("merge d/otel.jsonl d/torch d/nsys --args none -o merged.json")...)
	tracks := namesIn(t, filepath.Join(dir, "merged.json"))
	check("merge", m.out+m.err+tracks)
	for _, h := range truth.Hosts {
		if strings.Contains(tracks+m.err, h.HostID[:8]) {
			t.Errorf("merge: %s is called %s", h.Name, h.HostID[:8])
		}
		if strings.HasPrefix(h.Name, "router") {
			continue // tells no host
		}
		if !strings.Contains(tracks, "By process > "+h.Name+" > ") {
			t.Errorf("merge: no process is on %s", h.Name)
		}
		mustRun(t, dir, "report --by-rank --host "+h.Name+" d/otel.jsonl d/torch")
	}
	for _, name := range []string{"prefill TP0", "prefill TP1", "decode DP0 TP0", "decode DP0 TP1", "decode DP1 TP0", "decode DP1 TP1"} {
		if !met[name] {
			t.Errorf("nothing is called %s", name)
		}
		selects(t, dir, name, name, "report --kernels --by-rank --format csv d/torch")
		for _, given := range []string{name, oldForm(name), processForm(name)} {
			selects(t, dir, given, name, "report --by rank --format csv"+requests)
		}
	}
}

// oldForm is what a dump calls a rank, with the role.
func oldForm(name string) string {
	words := strings.Fields(name)
	slices.Reverse(words[1:])
	return words[0] + " " + strings.Join(words[1:], "-")
}

// processForm is what a timeline calls the process of a rank.
func processForm(name string) string {
	role, rank, _ := strings.Cut(name, " ")
	return rank + " · " + role + " scheduler"
}

// selects checks that --rank leaves the named rank, and no other.
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
