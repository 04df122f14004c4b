package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// untraced writes the folder of an incident without traces, as in its script, with canaries
// wherever such files have prompts and keys.
func untraced(t *testing.T, dir string) {
	t.Helper()
	all, err := txtar.ParseFile(filepath.Join(scriptDir, "incident.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	canaries := 0
	for _, f := range all.Files {
		name, ok := strings.CutPrefix(f.Name, "incident/")
		if !ok {
			continue
		}
		canaries += strings.Count(string(f.Data), "CANARY")
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const enough = 8
	if canaries < enough {
		t.Fatalf("%d canaries", canaries)
	}
}

// Datasets of logs, metrics, and orchestrator events contain no prompts or keys; redacted ones
// contain no server, host, or path, either.
func TestDatasetsOfUntracedInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	untraced(t, "acme-7")
	mustRun(t, ".", "extract -o set acme-7")
	// Reports reread logs, so a dataset that does not know its originals is of little use. extract says so.
	if r := sgtrace(t, ".", "extract", "-o", "shared", "--redact", "acme-7"); r.status != exitPartial || !strings.Contains(r.err, "does not know its originals") {
		t.Errorf("status %d: %s", r.status, r.err)
	}
	for where, text := range textsIn(t, "set") {
		if strings.Contains(text, "CANARY") {
			t.Errorf("%s of a dataset has a canary", where)
		}
	}
	for where, text := range textsIn(t, "shared") {
		for _, name := range []string{"CANARY", "acme", "sgl-1", "sgl-0", "node1", "router.log", "10.0.0"} {
			if i := strings.Index(text, name); i >= 0 {
				t.Errorf("%s of a redacted dataset has %q: ...%q...", where, name, text[max(0, i-80):min(len(text), i+80)])
			}
		}
	}
}

// No output contains a prompt or a key: tables, pages, timelines, and comparisons.
func TestOutputsOfUntracedInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	untraced(t, "folder")
	mustRun(t, ".", "merge folder -o timeline.pftrace")
	mustRun(t, ".", "report folder -o page.html")
	outputs := map[string]string{"timeline": string(readFile(t, "timeline.pftrace")), "page": string(readFile(t, "page.html"))}
	for _, command := range []string{"diff folder folder", "inspect --format json folder", "report --format json --evidence folder", "report --timeline --format json folder", "report --by-rank --format json folder", "report --hang --format json folder"} {
		r := sgtrace(t, ".", strings.Fields(command)...)
		outputs[command] = r.out + r.err
	}
	for where, text := range outputs {
		if strings.Contains(text, "CANARY") {
			t.Errorf("%s has a canary", where)
		}
	}
}
