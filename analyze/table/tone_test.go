package table_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

var escapes = regexp.MustCompile("\x1b\\[[0-9]*m")

// Tones only add colors, at any width, and only in the text format.
func TestTones(t *testing.T) {
	rows := []pair{{"worse", 1}, {"better", 2}, {"as it was", 3}}
	tones := map[string]table.Tone{"worse": table.Bad, "better": table.Good}
	r := table.New("sgtrace.test/v1", "Test", rows, []table.Field[pair]{
		{Column: table.Column{Name: "minor", Importance: table.Minor}, Cell: func(*pair) table.Cell { return table.TextCell("same") }},
		{Column: table.Column{Name: "name"}, Cell: func(p *pair) table.Cell { return table.Cell{Text: p.name, Tone: tones[p.name]} }},
		{Column: table.Column{Name: "time", Unit: table.Count}, Cell: func(p *pair) table.Cell { return table.Cell{N: p.ns} }},
		{Column: table.Column{Name: "gone", Unit: table.Count, Importance: table.Minor}, Cell: func(p *pair) table.Cell { return table.Cell{N: p.ns} }},
	})
	for _, width := range []int{0, 22, 17} {
		plain, colored := testset.Text(t, r, table.FormatText, table.Style{Width: width}), testset.Text(t, r, table.FormatText, table.Style{Width: width, Color: true})
		if got := escapes.ReplaceAllString(colored, ""); got != plain {
			t.Errorf("width %d: without colors %q, want %q", width, got, plain)
		}
		if !strings.Contains(colored, "\x1b[31mworse\x1b[0m") || !strings.Contains(colored, "\x1b[32mbetter\x1b[0m") || strings.Count(colored, "\x1b") != 4 {
			t.Errorf("width %d: %q", width, colored)
		}
	}
	for _, f := range []table.Format{table.FormatCSV, table.FormatJSON, table.FormatMarkdown} {
		if got := testset.Text(t, r, f, table.Style{Color: true}); strings.Contains(got, "\x1b") {
			t.Errorf("%s has colors: %q", f, got)
		}
	}
}
