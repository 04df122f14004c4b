package reports

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/docs"
)

var update = flag.Bool("update", false, "write docs/REPORTS.md")

// docs/REPORTS.md is what the table says, and docs/METRICS.md has the schema of every
// report.
func TestPage(t *testing.T) {
	const path = "../../../../docs/REPORTS.md"
	if *update {
		if err := os.WriteFile(path, []byte(Page()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != Page() {
		t.Error("docs/REPORTS.md is stale: make docs")
	}
	for _, r := range All {
		if !strings.Contains(docs.Metrics, r.Schema()) {
			t.Errorf("%s is not in docs/METRICS.md", r.Schema())
		}
	}
}
