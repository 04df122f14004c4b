package dataset

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/DATASET.md")

// docs/DATASET.md has the columns of all tables, and each says what it means.
func TestReference(t *testing.T) {
	const path, mark = "../docs/DATASET.md", "<!-- tables -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	intro, reference, ok := strings.Cut(string(page), mark)
	want := "\n" + Reference(Tables) + "## Tables of all captures\n\n" +
		"`sgtrace dataset solve` writes these to `solved=<hash>`, from the captures that are there at the time. `sgtrace sql` does so first if any has\nchanged since.\n\n" +
		strings.TrimRight(Reference(SolvedTables), "\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(intro+mark+want), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if !ok || reference != want {
		t.Error("docs/DATASET.md is stale: make docs")
	}
	for _, table := range slices.Concat(Tables, SolvedTables) {
		for _, c := range table.Columns {
			if c.Name == "" || c.Type == "" || c.Doc == "" {
				t.Errorf("column %q of %s lacks a type or a meaning", c.Name, table.Name)
			}
		}
	}
}
