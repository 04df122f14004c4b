package overview_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finders"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/page"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// toyFinder is a finder that only this test has.
var toyFinder = finders.Finder{
	Kind: "toy", Doc: "toys that run out", Needs: finders.Requests, Severity: finding.Warning, Confidence: finding.Certain,
	CostOf: finding.RequestTime, Show: []string{"--by-toy"},
	Find: func(m *finders.Measured) ([]finding.Finding, finding.Check) {
		check := finding.Check{What: "toys", Of: "request", N: len(m.Of.Requests.Requests), Needed: 1}
		return []finding.Finding{{Text: "the toys ran out", Cost: 0.99}}, check
	},
}

// A finder is one row of a table: its findings then appear in the summary in every
// format, on the page, and in the lists of the help and docs.
func TestOneRowAddsAFinder(t *testing.T) {
	before := finders.All
	t.Cleanup(func() { finders.All = before })
	finders.All = append(finders.All[:len(before):len(before)], toyFinder)

	o := overview.New(overview.Input{Requests: testset.Fixture(t), Inputs: []string{"dump.jsonl"}})
	said := map[string][]string{
		string(table.FormatText):     {"1  the toys ran out (certain; accounts for 99 % of total request time)", "$ sgtrace report --by-toy dump.jsonl"},
		string(table.FormatMarkdown): {"1. **the toys ran out** (certain; accounts for 99 % of total request time)"},
		string(table.FormatJSON): {`"kind":"toy","severity":"warning","confidence":"certain","text":"the toys ran out"`,
			`"commands":[["sgtrace","report","--by-toy","dump.jsonl"]]`, `{"kind":"toy","finds":"toys that run out","state":"looked at","what":"toys"`},
		string(table.FormatCSV): {",toy,warning,certain,"},
	}
	for _, f := range table.Formats {
		var b bytes.Buffer
		if err := o.Document().Write(&b, f, table.Style{Width: 100}); err != nil {
			t.Fatal(err)
		}
		for _, want := range said[string(f)] {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s has no %q:\n%s", f, want, b.String())
			}
		}
	}
	p, err := page.Overview(o, page.Provenance{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := page.Write(&b, p); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<span>toy</span>", "the toys ran out", "accounts for 99 % of total request time"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if row := "| `toy` | toys that run out | requests | warning | request time |\n"; !strings.Contains(finders.Markdown(finders.All), row) {
		t.Errorf("docs and help have no row %s", row)
	}
}
