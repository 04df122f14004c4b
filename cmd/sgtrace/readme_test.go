package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the README shows is what the program prints: every line of its examples,
// but for those that "..." leaves out.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("LANG", "en_US.UTF-8")
	sgtrace := func(args ...string) string {
		var out, errOut bytes.Buffer
		if status := run(append([]string{"sgtrace"}, args...), nil, &out, &errOut); status != exitOK {
			t.Fatalf("%v: status %d: %s", args, status, errOut.String())
		}
		return out.String() + errOut.String()
	}
	sgtrace("demo", "demo")
	examples := 0
	for block := range strings.SplitSeq(string(readme), "```\n") {
		command, shown, ok := strings.Cut(block, "\n")
		args, isExample := strings.CutPrefix(command, "$ bin/sgtrace ")
		if !ok || !isExample {
			continue
		}
		examples++
		printed := sgtrace(strings.Fields(args)...)
		for line := range strings.Lines(shown) {
			if line = strings.TrimSpace(line); line != "..." && !strings.Contains(printed, line) {
				t.Errorf("%s does not print %q", command, line)
			}
		}
	}
	if examples == 0 {
		t.Error("the README has no examples")
	}
}
