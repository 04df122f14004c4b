package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testset"
)

// elided stands for lines that an example omits.
const elided = "..."

// The program prints exactly what the tutorial shows: stdout, then stderr. An example may have one
// line "...", between the first lines and the last lines of the output. "go test ./cmd/sgtrace -run
// TestTutorial -update" rewrites the outputs, with the same number of lines on each side, or twenty
// where there were none.
func TestTutorial(t *testing.T) {
	path, err := filepath.Abs(filepath.Join("..", "..", "docs", "TUTORIAL.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("LANG", "en_US.UTF-8")
	const fence = "```\n"
	blocks := strings.Split(string(page), fence)
	for i := 1; i < len(blocks); i += 2 {
		command, shown, _ := strings.Cut(blocks[i], "\n")
		line, ok := strings.CutPrefix(command, "$ ")
		if !ok {
			t.Fatalf("an example begins with %q, want a command behind $", command)
		}
		var out, errOut bytes.Buffer
		if status := run(shellWords(line), nil, &out, &errOut); status != exitOK {
			t.Errorf("%s: status %d: %s", command, status, errOut.String())
			continue
		}
		printed := out.String() + errOut.String()
		if *testset.Update {
			blocks[i] = command + "\n" + abridged(printed, shown)
			continue
		}
		if want := abridged(printed, shown); want != shown {
			t.Errorf("%s prints\n%s\nand docs/TUTORIAL.md shows\n%s\n'make docs' writes it again", command, want, shown)
		}
	}
	if *testset.Update {
		if err := os.WriteFile(path, []byte(strings.Join(blocks, fence)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// abridged shortens the output to the number of lines shown above and below "...", or returns all
// of it if there is no "...". It drops trailing blanks.
func abridged(printed, shown string) string {
	var lines []string
	for line := range strings.Lines(printed) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	above, below, cut := strings.Cut("\n"+shown, "\n"+elided+"\n")
	head, tail := strings.Count(above, "\n"), strings.Count(below, "\n")
	if cut && head+tail == 0 {
		const some = 20
		head = some
	}
	if cut && head+tail < len(lines) {
		lines = append(append(lines[:head:head], elided), lines[len(lines)-tail:]...)
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestAbridged(t *testing.T) {
	const printed = "a\nb  \nc\nd\n"
	for shown, want := range map[string]string{
		"":                  "a\nb\nc\nd\n",
		"x\n":               "a\nb\nc\nd\n",
		"x\n...\n":          "a\n...\n",
		"x\n...\ny\n":       "a\n...\nd\n",
		"...\ny\nz\n":       "...\nc\nd\n",
		"...\n":             "a\nb\nc\nd\n", // fewer lines than are shown
		"1\n2\n3\n...\n4\n": "a\nb\nc\nd\n",
	} {
		if have := abridged(printed, shown); have != want {
			t.Errorf("shown %q: %q, want %q", shown, have, want)
		}
	}
}
