package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/sgtrace/sgtrace/testkit/testexport"
	"github.com/urfave/cli/v2"
)

// minExamples is the number of examples that the help of a command must have.
const minExamples = 3

// unending are examples that run until interrupted; other tests cover them.
var unending = []string{"requests --follow", "sgtrace open"}

// Every example in the help of a command works as shown, on simulated incidents with the same file
// names.
func TestExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	named := examplesData(t)
	var c command
	var visit func(path string, commands []*cli.Command)
	visit = func(path string, commands []*cli.Command) {
		for _, cmd := range commands {
			name := path + " " + cmd.Name
			if len(cmd.Subcommands) > 0 {
				visit(name, cmd.Subcommands)
				continue
			}
			if cmd.Name == "version" { // takes no arguments
				continue
			}
			_, text, _ := strings.Cut(cmd.Description, "\nExamples:\n")
			examples := strings.Split(strings.TrimSpace(text), "\n")
			if len(examples) < minExamples {
				t.Errorf("the help of %s has %d examples under \"Examples:\", want %d (a command of convert has them in converters in convert.go)", name, len(examples), minExamples)
			}
			for _, example := range examples {
				if !strings.Contains(example, name+" ") {
					t.Errorf("an example of %s is of something else: %s", name, example)
				}
				runExample(t, strings.TrimSpace(example), named)
			}
		}
	}
	visit("sgtrace", c.app().Commands)
}

// runExample runs an example after replacing its names with those in the data.
func runExample(t *testing.T, example string, named *strings.Replacer) {
	for _, part := range unending {
		if strings.Contains(example, part) {
			return
		}
	}
	line, _, _ := strings.Cut(example, "  #")
	var out, errOut bytes.Buffer
	if status := run(shellWords(named.Replace(line)), strings.NewReader(""), &out, &errOut); status != exitOK {
		t.Errorf("%s\n(%s): status %d: %s", example, named.Replace(line), status, errOut.String())
	}
}

// shellWords splits a command line at blanks outside single quotes.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		switch {
		case i%2 == 1: // in quotes, maybe after "label="
			if n := len(words); n > 0 && strings.HasSuffix(words[n-1], "=") {
				words[n-1] += part
				continue
			}
			words = append(words, part)
		default:
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// examplesData writes the files that the examples read, and returns replacements for the ids and
// hosts in the examples.
func examplesData(t *testing.T) *strings.Replacer {
	t.Helper()
	demoOf(t, "demo", 1, 60)
	demoOf(t, "other", 2, 60)
	others, err := filepath.Glob("*/torch/*-DP-1.trace.json.gz") // decode ranks that resemble DP0's
	if err != nil || len(others) == 0 {
		t.Fatalf("no traces of DP1: %v", err)
	}
	for _, name := range others {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	dump, err := os.ReadFile("demo/otel.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]string{
		"otel_trace.json": "demo/otel.jsonl", "otel.jsonl": "demo/otel.jsonl",
		"healthy.jsonl": "other/otel.jsonl", "incident.jsonl": "demo/otel.jsonl", "a.jsonl": "other/otel.jsonl", "b.jsonl": "demo/otel.jsonl",
		"traces": "demo/torch", "node0.sqlite": "demo/nsys/prefill-0.sqlite", "node1.sqlite": "demo/nsys/decode-0.sqlite",
		"profiles/monday": "other/torch", "profiles/tuesday": "demo/torch",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(strings.Repeat("../", strings.Count(name, "/"))+from, name); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"server.log":  "[2026-08-17 20:53:21 TP0] Decode batch. #running-req: 7, #token: 4210, token usage: 0.02, gen throughput (token/s): 812.40, #queue-req: 0\n",
		"metrics.txt": "# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs{model_name=\"m\"} 7 1787000001000\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	r := testexport.NewROCm(1, 2, 20)
	for _, err := range []error{r.WriteRocpd("4000_results.db", true, 0), r.WriteRPD("trace.rpd"), r.WriteJSON("4001_results.json", 1)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("dumps", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("dumps/otel.zst", z.EncodeAll(dump, nil), 0o666); err != nil {
		t.Fatal(err)
	}
	return idsOfData(t)
}

// idsOfData returns a replacer from the ids in the examples to ids in the data.
func idsOfData(t *testing.T) *strings.Replacer {
	t.Helper()
	var out, errOut bytes.Buffer
	if status := run(strings.Fields("sgtrace requests --sort -e2e --limit 1 --format json otel.jsonl"), nil, &out, &errOut); status != exitOK {
		t.Fatal(errOut.String())
	}
	var requests struct {
		Tables []struct {
			Rows []struct{ RID, Room string }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &requests); err != nil || len(requests.Tables) != 1 || len(requests.Tables[0].Rows) != 1 {
		t.Fatalf("no request: %v\n%s", err, out.String())
	}
	slowest := requests.Tables[0].Rows[0]
	return strings.NewReplacer("7ca07386", slowest.RID[:8], "0x7c54428c6c5744bc", slowest.Room,
		"node1=", "decode-0=", "4100=", "prefill-0:245=",
		// Simulated incidents are short.
		"+30s", "+2s", "+60s", "+6s", "+2s", "+100ms", "+3s", "+300ms", "--requests 5000", "--requests 60")
}
