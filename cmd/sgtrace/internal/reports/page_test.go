package reports

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

var update = flag.Bool("update", false, "write docs/REPORTS.md, and the schemas in docs/METRICS.md")

// docs/REPORTS.md matches the table of reports.
func TestPage(t *testing.T) {
	const path = "../../../../docs/REPORTS.md"
	if *update {
		if err := os.WriteFile(path, []byte(page()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != page() {
		t.Error("docs/REPORTS.md is stale: make docs")
	}
}

// docs/METRICS.md lists the JSON schema of every report.
func TestPageOfSchemas(t *testing.T) {
	const path, before, behind = "../../../../docs/METRICS.md", "its version is that of this object: ", ", `sgtrace.requests/"
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, rest, _ := strings.Cut(string(raw), before)
	listed, end, found := strings.Cut(rest, behind)
	if !found {
		t.Fatalf("docs/METRICS.md has no row of `schema` with %q and %q", before, behind)
	}
	var schemas []string
	for _, r := range All {
		if s := r.Schema(); !slices.Contains(schemas, s) {
			schemas = append(schemas, s)
		}
	}
	if want := code(schemas); listed != want && *update {
		if err := os.WriteFile(path, []byte(begin+before+want+behind+end), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if listed != want {
		t.Errorf("docs/METRICS.md lists the schemas %s, the reports have %s: make docs", listed, want)
	}
}

// page returns docs/REPORTS.md: each report with its inputs and flags.
func page() string {
	var b strings.Builder
	b.WriteString("# Reports\n\n`sgtrace report` prints one report at a time: the summary, unless a flag asks for another. Every report takes\n" +
		"`--format`, `--from`, `--to`, `--host`, and `--rank`. [METRICS.md](METRICS.md) defines the columns of the tables.\n" +
		"`make docs` generates this page from the table of reports in the source.\n")
	for needs, heading := range groups {
		title, _, _ := strings.Cut(heading, ":")
		fmt.Fprintf(&b, "\n## %s\n\n| flag | what it says | also takes | tables, the main one first |\n|---|---|---|---|\n", title)
		for _, r := range All {
			if int(r.Needs) == needs {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", commandline.Dashed(r.Name), strings.ReplaceAll(r.Usage, "`", ""),
					code(dashedAll(r.Options)), code(r.Tables))
			}
		}
	}
	return b.String()
}

// code formats names as code.
func code(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
