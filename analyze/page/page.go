package page

import (
	"io"

	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/overview"
)

// A Page is a report.
type Page struct {
	Title    string
	Facts    []overview.Fact // what was read
	Notes    []string        // what is doubtful about it
	Sections []Section
}

// A Section is figures about one question.
type Section struct {
	Title string
	// Lead is the answer in a sentence, and Points are what it rests on.
	Lead    string
	Points  []string
	Note    string // what it was looked for in
	Figures []*Figure
}

// A Figure is something to look at.
type Figure struct {
	Title   string
	Caption string // how to read it
	// Defined is the heading in docs/METRICS.md under which the numbers are defined.
	Defined string
	// Command is the command line that prints the same numbers.
	Command string
	Notes   []string // what is doubtful, or left out
	Body    chart.Body
}

// Write writes the page.
func Write(w io.Writer, p Page) error {
	view, err := newPageView(&p)
	if err != nil {
		return err
	}
	return pageTemplate.Execute(w, view)
}
