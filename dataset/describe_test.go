package dataset

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/internal/tablefile"
)

var update = flag.Bool("update", false, "write docs/DATASET.md")

// docs/DATASET.md has the columns of all tables, and documents each.
func TestReference(t *testing.T) {
	const path, mark = "../docs/DATASET.md", "<!-- tables -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	intro, tables, ok := strings.Cut(string(page), mark)
	want := "\n" + reference(Tables) + "## Tables of all captures\n\n" +
		"`sgtrace dataset solve` writes these to `solved=<hash>`, from the captures that are there at the time. `sgtrace sql` does so first if any has\nchanged since.\n\n" +
		strings.TrimRight(reference(SolvedTables), "\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(intro+mark+want), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if !ok || tables != want {
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

// files are the names of the files of the table.
func (t *Table) files() (names []string) {
	for _, part := range t.Parts {
		names = append(names, t.Name+"-"+part+tablefile.ParquetSuffix)
	}
	return names
}

// reference describes tables in Markdown, for docs/DATASET.md.
func reference(tables []Table) string {
	var b strings.Builder
	for i := range tables {
		t := &tables[i]
		fmt.Fprintf(&b, "### %s\n\n%s Files: `%s`.\n\n| column | type | unit | null | meaning |\n|---|---|---|---|---|\n", t.Name, t.Doc, strings.Join(t.files(), "`, `"))
		for _, c := range t.Columns {
			null := ""
			if c.Null {
				null = "yes"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c.Name, c.Type, c.Unit, null, c.Doc)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The examples in docs/PYTHON.md use columns that exist in their tables.
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
