package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxREADME is the maximum number of lines in the README.
const maxREADME = 100

// Every command in the README runs as typed, in order, and prints every line that its example
// shows; "..." stands for omitted lines. Installation and the viewer, which waits for a browser,
// are not tested.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(readme), "\n"); n > maxREADME {
		t.Errorf("the README has %d lines, want %d at most", n, maxREADME)
	}
	t.Chdir(t.TempDir())
	t.Setenv("LANG", "en_US.UTF-8")
	printed, examples := "", 0
	for line := range strings.Lines(string(readme)) {
		line = strings.TrimRight(line, "\n")
		shown, isExample := strings.CutPrefix(line, "$ ")
		typed, isCommand := strings.CutPrefix(line, "    ")
		switch {
		case line == "```":
			printed = ""
		case isExample:
			printed = runREADME(t, shown)
			examples++
		case isCommand && strings.HasPrefix(typed, "sgtrace ") && !strings.HasPrefix(typed, "sgtrace open "):
			runREADME(t, typed)
		case printed != "" && line != "..." && !strings.Contains(printed, strings.TrimSpace(line)):
			t.Errorf("an example shows %q, which its command does not print", line)
		}
	}
	if examples == 0 {
		t.Error("the README has no examples")
	}
}

// runREADME runs a command line of the README and returns all that it prints.
func runREADME(t *testing.T, line string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if status := run(strings.Fields(line), nil, &out, &errOut); status != exitOK {
		t.Fatalf("%s: status %d: %s", line, status, errOut.String())
	}
	return out.String() + errOut.String()
}
