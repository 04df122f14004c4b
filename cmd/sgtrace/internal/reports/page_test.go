package reports

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/docs"
)

var update = flag.Bool("update", false, "write docs/REPORTS.md")

// docs/REPORTS.md is what the table says, and docs/METRICS.md has the schema of every
// report.
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
	for _, r := range All {
		if !strings.Contains(docs.Metrics, r.Schema()) {
			t.Errorf("%s, the answer of report --%s as JSON, is not in docs/METRICS.md: add it to the row of `schema`", r.Schema(), r.Name)
		}
	}
}

// page returns docs/REPORTS.md: what can be asked for, of which inputs, and with which
// flags.
func page() string {
	var b strings.Builder
	b.WriteString("# Reports\n\n`sgtrace report` prints one report at a time: the summary, unless a flag asks for another. Every report takes\n" +
		"`--format`, `--from`, `--to`, `--host`, and `--rank`. [METRICS.md](METRICS.md) defines the columns of the tables.\n" +
		"`make docs` makes this page of the table of reports in the source.\n")
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

// code lists names as code.
func code(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
