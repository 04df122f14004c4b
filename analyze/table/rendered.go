package table

import "github.com/sgtrace/sgtrace/analyze/words"

// A Rendered is a table made ready for people, as text and Markdown have it: strings,
// in the columns that have anything to show. Names are whole.
type Rendered struct {
	Columns []RenderedColumn
	Rows    [][]string // "-" is unknown
	Notes   []string
}

// A RenderedColumn is a column of a rendered table.
type RenderedColumn struct {
	Header string // name and unit
	Doc    string
	Right  bool // numbers, which are aligned to the right
}

// Render returns the table made ready for people.
func (r *Table) Render() *Rendered {
	from := r.textTable()
	s := &Rendered{Rows: from.rows, Notes: from.notes}
	for i, c := range from.columns {
		s.Columns = append(s.Columns, RenderedColumn{Header: from.header[i], Doc: r.Columns[c].Doc, Right: from.right[i]})
	}
	return s
}

// Shorten makes names printable and cuts their middle out until they are as wide as
// width characters: the ends of a kernel's or a request's name tell more. Different
// names that would look the same show where they differ.
func Shorten(names []string, width int) []string {
	s := &textTable{}
	for _, name := range names {
		s.rows = append(s.rows, []string{words.Clean(name)})
	}
	s.cut(0, width, Style{})
	short := make([]string, len(names))
	for i, row := range s.rows {
		short[i] = row[0]
	}
	return short
}

// Printable makes a string from a file safe to show: what does not simply draw
// itself, such as control characters and bidirectional overrides, appears as \x1b or
// \u202e.
func Printable(s string) string { return words.Clean(s) }

// PrintableAll makes strings safe to show, each as [Printable] does.
func PrintableAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Printable(s)
	}
	return out
}
