package reports

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// Page returns docs/REPORTS.md: what can be asked for, of which inputs, and with which
// flags.
func Page() string {
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
