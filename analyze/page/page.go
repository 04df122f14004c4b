package page

import (
	"io"
	"slices"
	"time"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gate"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/page/chart"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/trace"
)

// A Page is a report.
type Page struct {
	Title    string
	Subtitle string // when and where it was
	Tiles    []Tile
	Sections []Section
	// RequestCommands show a request of which the page has no waterfall; RID stands for it.
	RequestCommands []string
	Made            Made
}

// Made is how a page came to be.
type Made struct {
	Version string // of sgtrace
	Command string // as it was given
	Time    time.Time
}

// A Section is figures about one question.
type Section struct {
	ID    string // its anchor; "" is by number
	Title string
	// Lead is the answer in a sentence, and Points are what it rests on.
	Lead    string
	Points  []string
	Facts   []overview.Fact
	Note    string   // what it was looked for in
	Notes   []string // what is doubtful
	Figures []*Figure
	// Requests are those of which its figures have values for the script; nil is none.
	Requests *RequestTimes
}

// A Figure is something to look at.
type Figure struct {
	ID      string // its anchor; "" is by number
	Title   string
	Caption string // how to read it
	// Defined is the heading in docs/METRICS.md under which the numbers are defined.
	Defined string
	// Command is the command line that prints the same numbers.
	Command string
	Notes   []string // what is doubtful, or left out
	// Shows are the findings that can be seen in it, and Role the servers that it is
	// about; "" is all.
	Shows []finding.Kind
	Role  string
	Body  chart.Body
}

// AddGate shows behind the summary what came of a gate. command prints the same.
func (p *Page) AddGate(r *gate.Result, command string) {
	f := TableOf(r.Report(), 0, "", command)
	s := Section{ID: "gate", Title: "Gate", Lead: f.Title, Figures: []*Figure{f}}
	f.Title = "Conditions"
	p.Sections = slices.Insert(p.Sections, 1, s)
}

// Write writes the page.
func Write(w io.Writer, p Page) error {
	view, err := newPageView(&p)
	if err != nil {
		return err
	}
	return pageTemplate().Execute(w, view)
}

// When is the time as the page shows it.
func (m Made) When() string {
	at := trace.Time(m.Time.UnixNano())
	return words.Clock(at).Format("2006-01-02 15:04 ") + words.ZoneAt(at)
}
