package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/testkit/testset"
)

// docs/SKILL.md matches the help tables, in the form of SGLang's own skills.
func TestSkill(t *testing.T) {
	const path = "../../docs/SKILL.md"
	var b strings.Builder
	if err := (&command{out: &b, err: io.Discard, env: os.Getenv}).help([]string{"skill"}); err != nil {
		t.Fatal(err)
	}
	if *testset.Update {
		if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != b.String() {
		t.Error("docs/SKILL.md is stale: make docs")
	}
	for _, part := range []string{"---\nname: sgtrace-incident\ndescription: ", "\n## Overview\n", "\n## Output Contract\n", "\n## When To Use It\n", "\n## Workflow\n", "\n### 1. ", "\n## References\n"} {
		if !strings.Contains(string(text), part) {
			t.Errorf("no %q", part)
		}
	}
	if strings.ContainsAny(string(text), "{}") && strings.Contains(string(text), "{reports}") {
		t.Error("a table is missing")
	}
}
