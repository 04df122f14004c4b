package page

import (
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/place"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/internal/lazyregexp"
)

// A links knows where things are on a page.
type links struct {
	charts []*Figure          // figures with Shows, in page order
	tables map[string]*Figure // by table name
	// requests maps the IDs of the requests shown to their anchors.
	requests map[string]string
}

// newLinks indexes the sections of a page.
func newLinks(sections []Section) *links {
	l := &links{tables: map[string]*Figure{}, requests: map[string]string{}}
	for _, s := range sections {
		for _, f := range s.Figures {
			switch body := f.Body.(type) {
			case *Table:
				l.tables[body.Report.Name()] = f
			case *RequestList:
				for i := range body.List {
					l.requests[body.List[i].RID] = "#" + body.List[i].Anchor
				}
			}
			if len(f.Shows) > 0 {
				l.charts = append(l.charts, f)
			}
		}
	}
	return l
}

// word matches a possible request ID.
var word = lazyregexp.New(`[\w.:-]{4,}`)

// text links the request IDs in a sentence to their waterfalls.
func (l *links) text(sentence string) Text {
	var t Text
	from := 0
	for _, at := range word.FindAllStringIndex(sentence, -1) {
		href := l.requests[sentence[at[0]:at[1]]]
		if href == "" {
			continue
		}
		t = append(t, Piece{Text: sentence[from:at[0]]}, Piece{sentence[at[0]:at[1]], href})
		from = at[1]
	}
	return append(t, Piece{Text: sentence[from:]})
}

// ofFinding returns links to the figures for a finding: one chart, and the tables with its numbers.
func (l *links) ofFinding(f *finding.Finding) []Piece {
	var list []Piece
	if c := l.chart(f); c != nil {
		list = append(list, Piece{"chart: " + c.Title, "#" + c.ID})
	}
	for i := range f.Evidence {
		t := l.tables[f.Evidence[i].Table]
		if t == nil || slices.ContainsFunc(list, func(p Piece) bool { return p.Href == "#"+t.ID }) {
			continue
		}
		list = append(list, Piece{"rows: " + t.Body.(*Table).Report.Name(), "#" + t.ID})
	}
	return list
}

// chart returns the first chart for a finding, preferably one about its role; nil if there is none.
func (l *links) chart(f *finding.Finding) *Figure {
	role := ""
	if f.At.Scope != place.Everywhere {
		role, _, _ = f.At.Parts()
	}
	var best *Figure
	for _, c := range l.charts {
		switch {
		case !slices.Contains(c.Shows, f.Kind):
		case role != "" && c.Role == role:
			return c
		case best == nil:
			best = c
		}
	}
	return best
}

// ofEvidence links a sentence to the table row with its number.
func (l *links) ofEvidence(e *finding.Evidence) Text {
	t := l.tables[e.Table]
	text := l.text(e.Text)
	if t == nil {
		return text
	}
	body := t.Body.(*Table)
	row := findRow(body.Report, e.Row)
	if row < 0 || body.Rows > 0 && row >= body.Rows {
		return text
	}
	return append(text, Piece{Text: " "}, Piece{"row", "#" + rowID(body.Report.Name(), row)})
}

// findRow returns the first row whose cells have the texts of all keys; -1 if there is none.
func findRow(r *table.Table, keys []finding.Key) int {
	if len(keys) == 0 {
		return -1
	}
	columns := make([]int, len(keys))
	for i, k := range keys {
		if columns[i] = slices.IndexFunc(r.Columns, func(c table.Column) bool { return c.Key() == k.Column }); columns[i] < 0 {
			return -1
		}
	}
	for row := range r.Len() {
		named := true
		for i, k := range keys {
			named = named && r.Cell(row, columns[i]).Text == k.Text
		}
		if named {
			return row
		}
	}
	return -1
}

// rowID returns the anchor of a table's row, from 0.
func rowID(name string, row int) string { return fmt.Sprintf("%s-row%d", name, row+1) }
