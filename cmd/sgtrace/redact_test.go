package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sgtrace/sgtrace/golden"
	"github.com/sgtrace/sgtrace/golden/nsys"
	"github.com/sgtrace/sgtrace/golden/simulator"
	"github.com/sgtrace/sgtrace/golden/torch"
)

// incident writes a small simulated incident, recorded in all formats. It returns the secret that
// is in all exports.
func incident(t *testing.T, dir string) string {
	t.Helper()
	config := simulator.DefaultConfig(5)
	config.Requests = 20
	run, err := simulator.Play(config)
	if err != nil {
		t.Fatal(err)
	}
	traces, exports := torch.DefaultConfig(run), nsys.DefaultConfig(run)
	for _, c := range []*torch.Config{&traces, &exports.Torch} {
		c.To, c.Layers = c.From+150*time.Millisecond, 2
	}
	if err := golden.WriteDir(dir, run, &traces, &exports); err != nil {
		t.Fatal(err)
	}
	return exports.Secret
}

// identities returns the hosts, ids, and paths in the inputs of an incident, found by patterns over
// the files themselves.
func identities(t *testing.T, dir string) (all []string) {
	t.Helper()
	add := func(text []byte, patterns ...string) {
		for _, p := range patterns {
			for _, m := range regexp.MustCompile(p).FindAllSubmatch(text, -1) {
				if s := string(m[1]); len(s) >= 6 {
					all = append(all, s)
				}
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, filepath.Join(dir, "otel.jsonl")) {
		stem, _, _ := strings.Cut(filepath.Base(name), ".")
		if all = append(all, filepath.Base(name)); stem != "otel" {
			all = append(all, stem)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			z, err := gzip.NewReader(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if text, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
			add(text, `"name": *"([^"():]+\.py)\(`, `"host_name": *"([^"]+)"`, `"(/[^"]+)"`)
			continue
		}
		add(text, `"(?:host_id|rid|gen_ai\.request\.id|request_id|service\.instance\.id|host\.name)","value":\{"stringValue":"([^"]+)"`,
			`"traceId":"([0-9a-f]+)"`)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// commandsOn are commands that print or write contents of their inputs, by what they read.
var commandsOn = []struct{ name, args string }{
	{"requests", "requests OTEL"},
	{"requests csv", "requests OTEL --format csv"},
	{"stages by host", "report --by rank,host,file OTEL"},
	{"by request", "report --by-request OTEL --format json"},
	{"tail", "report --tail OTEL"},
	{"timeline", "report --timeline OTEL"},
	{"ranks", "report --by-rank OTEL TORCH NSYS"},
	{"ranks json", "report --by-rank OTEL TORCH NSYS --format json"},
	{"kernels", "report --kernels --by-rank TORCH NSYS --format markdown"},
	{"nvtx", "report --nvtx --by-rank TORCH NSYS --format csv"},
	{"request", "request RID OTEL"},
	{"request json", "request RID OTEL --format json"},
	{"inspect", "inspect OTEL TORCH NSYS"},
	{"inspect json", "inspect OTEL TORCH NSYS --format json"},
	{"merge", "merge OTEL TORCH NSYS --verify --clock-report OUT/clocks.json -o OUT/m.pftrace"},
	{"merge json", "merge OTEL TORCH NSYS --verify -o OUT/m.json"},
	{"split", "merge OTEL TORCH --split 5s -o OUT/part.json"},
	{"convert", "convert otel2perfetto OTEL -o OUT/c.json --verify"},
	{"nsys", "convert nsys2perfetto NSYS -o OUT/n.json"},
	{"diff", "diff OTEL OTEL --format json"},
	{"wrong file", "requests DIR/nowhere.jsonl OTEL"},
	{"wrong id", "request nobody OTEL"},
}

// runOn runs a command on an incident and returns all its output, by stream and file.
func runOn(t *testing.T, dir, rid, args string, more ...string) map[string]string {
	t.Helper()
	out := t.TempDir()
	args = strings.NewReplacer("OTEL", filepath.Join(dir, "otel.jsonl"), "TORCH", filepath.Join(dir, "torch"), "NSYS", filepath.Join(dir, "nsys"),
		"OUT", out, "RID", rid, "DIR", dir).Replace(args)
	var stdout, stderr bytes.Buffer
	run(append(append([]string{"sgtrace"}, strings.Fields(args)...), more...), strings.NewReader(""), &stdout, &stderr)
	got := map[string]string{"stdout": stdout.String(), "stderr": strings.ReplaceAll(stderr.String(), out, "")}
	files, _ := filepath.Glob(filepath.Join(out, "*"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.Base(name)] = string(text)
	}
	return got
}

// No command prints or writes a host, an id, or a path of a redacted incident.
func TestRedactedOutputsNameNobody(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "acme-incident-7")
	incident(t, dir)
	names := append(identities(t, dir), "acme-incident")
	if len(names) < 100 {
		t.Fatalf("only %d identities were found", len(names))
	}
	first, _, _ := strings.Cut(runOn(t, dir, "", "requests OTEL --format csv --limit 1")["stdout"], "\n\n")
	rid := strings.Split(strings.Split(first, "\n")[1], ",")[slices.Index(strings.Split(strings.Split(first, "\n")[0], ","), "rid")]
	if !strings.Contains(runOn(t, dir, rid, "request RID OTEL")["stdout"], rid) {
		t.Fatalf("%s is no request", rid)
	}
	for _, c := range commandsOn {
		for where, text := range runOn(t, dir, rid, c.args, "--redact") {
			found := 0
			for _, name := range names {
				if i := strings.Index(text, name); i >= 0 {
					if found++; found <= 3 {
						t.Errorf("%s: %s has %q: ...%q...", c.name, where, name, text[max(0, i-80):min(len(text), i+80)])
					}
				}
			}
		}
	}
}

// The same holds if inputs are given as directories and patterns, which messages repeat.
func TestRedactedInputsNameNobody(t *testing.T) {
	dir := t.TempDir()
	incident(t, filepath.Join(dir, "acme-prod"))
	t.Chdir(dir)
	for _, args := range []string{"report acme-prod", "report --by-rank acme-prod/torch", "diff acme-prod/torch acme-prod/torch", "inspect acme-prod",
		"report acme-prod/t*/* acme-prod/otel.jsonl", "merge acme-prod -o OUT/m.json"} {
		for where, text := range runOn(t, dir, "", args, "--redact") {
			if i := strings.Index(text, "acme"); i >= 0 {
				t.Errorf("%s: %s has %q", args, where, text[max(0, i-80):min(len(text), i+80)])
			}
			if m := regexp.MustCompile(`\s[0-9.]+ path-[a-z2-7]{10}\b`).FindString(text); m != "" {
				t.Errorf("%s: %s has a unit that is taken for a path: %s", args, where, m)
			}
		}
	}
}

// namesInText matches the pseudonyms of --redact.
var namesInText = regexp.MustCompile(`(?:host|req|path|text|url)-[a-z2-7]{10}(?:\.[a-z.]+)?`)

// numbersOf returns JSON without texts, and with lists sorted by their remaining values, because
// rows with equal numbers are ordered by name.
func numbersOf(t *testing.T, v any) string {
	t.Helper()
	switch v := v.(type) {
	case string:
		return ""
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, numbersOf(t, e))
		}
		slices.Sort(all)
		return "[" + strings.Join(all, "\n") + "]"
	case map[string]any:
		var all []string
		for key, e := range v {
			all = append(all, key+" "+numbersOf(t, e))
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A redacted report has the same numbers as the report.
func TestRedactedReportsHaveTheSameNumbers(t *testing.T) {
	dir := t.TempDir()
	incident(t, dir)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	numbers := func(text string) string {
		var all any
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
		return numbersOf(t, all)
	}
	for _, args := range []string{"requests OTEL", "report --by rank OTEL", "report --by-request OTEL", "report --timeline OTEL",
		"report --kernels --by-rank TORCH NSYS", "report --nvtx TORCH NSYS"} {
		plain, redacted := runOn(t, dir, "", args+" --format json")["stdout"], runOn(t, dir, "", args+" --format json", "--redact-key", key)["stdout"]
		if have, want := numbers(redacted), numbers(plain); have != want {
			t.Errorf("%s: redacted\n%.600s\nwant\n%.600s", args, have, want)
		}
	}
	// The timeline is the same except for names: it has the same number of slices, arrows, and arguments.
	drawn := regexp.MustCompile(`verified: .*`)
	merge := "merge OTEL TORCH NSYS --verify -o OUT/m.pftrace"
	plain, redacted := drawn.FindString(runOn(t, dir, "", merge)["stderr"]), drawn.FindString(runOn(t, dir, "", merge, "--redact-key", key)["stderr"])
	if plain != redacted || plain == "" {
		t.Errorf("redacted: %s; want %s", redacted, plain)
	}
	// With the same key, a text gets the same pseudonym in every run; without a key, it gets a different one.
	first := namesInText.FindAllString(runOn(t, dir, "", "requests OTEL", "--redact-key", key)["stdout"], -1)
	if len(first) == 0 || !slices.Equal(first, namesInText.FindAllString(runOn(t, dir, "", "requests OTEL", "--redact-key", key)["stdout"], -1)) {
		t.Errorf("names of two runs with one key differ, or there are none")
	}
	if other := namesInText.FindAllString(runOn(t, dir, "", "requests OTEL", "--redact")["stdout"], -1); slices.Equal(first, other) {
		t.Errorf("a run without a key has the names of one with")
	}
}
