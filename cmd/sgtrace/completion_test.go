package main

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
)

// completed returns what a shell offers for the last word, using its completion script.
func completed(t *testing.T, shell string, words []string) string {
	t.Helper()
	var script string
	switch shell {
	case "bash":
		script = `source <(sgtrace help completion bash)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sgtrace; printf '%s\n' "${COMPREPLY[@]}"`
	case "zsh": // without a line editor, print the candidates
		script = `compdef() {}; _files() {}; compadd() { print -rl -- "${(@)@[5,-1]}" }
source <(sgtrace help completion zsh); words=("$@"); CURRENT=$#; _sgtrace`
	case "fish":
		script = `sgtrace help completion fish | source; complete -C (string join ' ' -- $argv) | string replace -r '\t.*' ''; true`
	}
	args := []string{"-c", script}
	if shell != "fish" {
		args = append(args, shell) // $0
	}
	cmd := exec.Command(shell, append(args, words...)...)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", shell, words, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if _, err := exec.LookPath(shell); err != nil {
			t.Logf("no %s: its completion is not tried", shell)
			continue
		}
		for _, test := range []struct {
			line string
			want string // the complete output
		}{
			{"sgtrace rep", "report"},
			{"sgtrace req", "requests\nrequest"},
			{"sgtrace convert ", "otel2perfetto\nnsys2perfetto\nrocprof2perfetto\nrocpd2perfetto\nrpd2perfetto"},
			{"sgtrace convert n", "nsys2perfetto"},
			{"sgtrace report --timel", "--timeline"},
			{"sgtrace report otel.jsonl --timel", "--timeline"},
			{"sgtrace report --by-", "--by-stage\n--by-rank\n--by-request"},
			{"sgtrace help met", "metrics"},
			{"sgtrace help convert o", "otel2perfetto"},
			{"sgtrace --vers", "--version"},
			{"sgtrace merge --view thread x --no-al", "--no-align"},
			{"sgtrace report --format ", "text\nmarkdown\ncsv\njson\nfolded"},
			{"sgtrace merge --torch x --layout c", "compare"},
			{"sgtrace inspect --table ex", "exports"},
			{"sgtrace help completion z", "zsh"},
			{"sgtrace help formats otlp-trunc", "otlp-truncated"},
			{"sgtrace help metrics unacc", "unaccounted"},
		} {
			have := completed(t, shell, strings.Split(test.line, " "))
			if sorted(have) != sorted(test.want) {
				t.Errorf("%s: %q offers %q, want %q", shell, test.line, have, test.want)
			}
		}
	}
}

func sorted(lines string) string {
	list := strings.Split(lines, "\n")
	for i := range list { // a short list
		for k := range list[:i] {
			if list[i] < list[k] {
				list[i], list[k] = list[k], list[i]
			}
		}
	}
	return strings.Join(list, "\n")
}

// Where a file or a value is wanted, completion offers nothing, so the shell falls back to file names.
func TestCompletionLeavesFiles(t *testing.T) {
	for _, line := range []string{"report ", "report --rid ", "report x.jsonl re", "inspect otel", "nosuch x"} {
		var out bytes.Buffer
		if status := run(append([]string{"sgtrace", commandline.CompleteCommand}, strings.Split(line, " ")...), nil, &out, &out); status != exitOK || out.Len() > 0 {
			t.Errorf("%q: status %d, offers %q", line, status, out.String())
		}
	}
}

// A flag and its value may be one word, or three as bash splits them.
func TestCompletionOfAssignedValues(t *testing.T) {
	for line, want := range map[string]string{
		"report --format=m":   "--format=markdown\n",
		"report --format = m": "markdown\n",
		"report --format =":   "text\nmarkdown\ncsv\njson\nfolded\n",
	} {
		var out bytes.Buffer
		if status := run(append([]string{"sgtrace", commandline.CompleteCommand}, strings.Split(line, " ")...), nil, &out, &out); status != exitOK || out.String() != want {
			t.Errorf("%q: status %d, offers %q, want %q", line, status, out.String(), want)
		}
	}
}

// After the flag of a report, completion offers that report's tables and sort columns, and the
// report accepts them.
func TestCompletionKnowsTheReport(t *testing.T) {
	for _, r := range reports.All {
		if offered := flagValues("report", "table", []string{r.Name}); r.Takes("table") && !slices.Equal(offered, r.Tables) {
			t.Errorf("--%s --table offers %q, want %q", r.Name, offered, r.Tables)
		}
	}
	dir := recordedOf(t, 1, 60)
	for _, of := range []struct{ report, column, inputs string }{
		{"latency", "p99", "otel.jsonl"}, {"by-stage", "p50", "otel.jsonl"}, {"by-rank", "stage", "otel.jsonl"},
		{"kernels", "total", "nsys"}, {"api", "total", "nsys"}, {"nvtx", "total", "nsys"}, {"gaps", "share", "nsys"}, {"ops", "calls", "torch"},
	} {
		offered := flagValues("report", "sort", []string{of.report})
		if !slices.Contains(offered, of.column) {
			t.Errorf("--%s --sort offers %q, want %s among them", of.report, offered, of.column)
		}
		for _, column := range offered[:min(2, len(offered))] {
			if r := sgtrace(t, dir, "report", "--"+of.report, "--sort", column, of.inputs); r.status != exitOK {
				t.Errorf("--%s --sort %s: status %d: %s", of.report, column, r.status, r.err)
			}
		}
	}
}

// The command accepts every value that completion offers: the only error is the empty input.
func TestCompletedValuesAreTaken(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("empty", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	var c command
	var visit func(path []string, commands []*cli.Command)
	visit = func(path []string, commands []*cli.Command) {
		for _, cmd := range commands {
			args := append(path[:len(path):len(path)], cmd.Name)
			visit(args, cmd.Subcommands)
			for _, f := range cmd.Flags {
				for _, value := range flagValues(cmd.Name, f.Names()[0], nil) {
					line, wrong := append(args[:len(args):len(args)], "--"+f.Names()[0], value, "empty"), "the file is empty"
					switch {
					case args[1] == "dataset", cmd.Name == "sql":
						wrong = "empty: not a dataset"
					case cmd.Name == "demo":
						wrong = "empty: not a directory"
					case cmd.Name == "extract":
						line = append(line, "-o", "dataset")
					case cmd.Name == "merge", args[1] == "convert":
						line = append(line, "-o", "x.pftrace")
					case cmd.Name == "inspect" && value == "csv":
						line = append(line, "--table", "ranks")
					case cmd.Name == "diff":
						line = append(line, "empty")
					case cmd.Name == "live":
						line = append(line, "--at", "+1s")
					case cmd.Name == "request":
						line = slices.Insert(line, len(args), "7ca07386")
					case value == string(table.FormatFolded):
						line = append(line, "--stacks")
					case f.Names()[0] == "classes":
						line = append(line, "--by-rank")
					case f.Names()[0] == "metric":
						line = append(line, "--tail")
					case cmd.Name == "report" && f.Names()[0] == "table":
						has := func(r *reports.Report) bool { return r.Takes("table") && slices.Contains(r.Tables, value) }
						line = append(line, "--"+reports.All[slices.IndexFunc(reports.All, has)].Name)
					}
					var out bytes.Buffer
					if status := run(line, nil, &out, &out); status != exitFailed || !strings.Contains(out.String(), wrong) {
						t.Errorf("%q: status %d: %s", line, status, out.String())
					}
				}
			}
		}
	}
	visit([]string{"sgtrace"}, c.app().Commands)
}

func TestNoCompletionOfOtherShells(t *testing.T) {
	var out, errOut bytes.Buffer
	if status := run([]string{"sgtrace", "help", "completion", "tcsh"}, nil, &out, &errOut); status != exitUsage || !strings.Contains(errOut.String(), "bash, fish, zsh") {
		t.Errorf("tcsh: status %d: %s", status, errOut.String())
	}
}
