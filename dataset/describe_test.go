package dataset

import (
	"flag"
	"os"
	"regexp"
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

// The examples of docs/PYTHON.md name columns that the tables in them have.
func TestPythonColumns(t *testing.T) {
	page, err := os.ReadFile("../docs/PYTHON.md")
	if err != nil {
		t.Fatal(err)
	}
	others := []string{"waited", "sgtrace", "sql", "week"} // made by the example, or a command
	checked := 0
	for _, block := range regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		var columns []string
		for _, m := range regexp.MustCompile(`(\w+)-0\.parquet`).FindAllStringSubmatch(block[1], -1) {
			i := slices.IndexFunc(SolvedTables, func(table Table) bool { return table.Name == m[1] })
			if i < 0 {
				t.Fatalf("docs/PYTHON.md reads %s, which is no table", m[0])
			}
			for _, c := range SolvedTables[i].Columns {
				columns = append(columns, c.Name)
			}
		}
		for _, m := range regexp.MustCompile(`"([a-z][a-z0-9_]*)"`).FindAllStringSubmatch(block[1], -1) {
			if checked++; !slices.Contains(others, m[1]) && !slices.Contains(columns, m[1]) {
				t.Errorf("docs/PYTHON.md names the column %s, which its tables do not have", m[1])
			}
		}
	}
	if checked < 15 {
		t.Errorf("only %d names were checked", checked)
	}
}
