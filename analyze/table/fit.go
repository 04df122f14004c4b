package table

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace/naming"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// An Importance is how long a column stays as the table is narrowed to fit the terminal.
type Importance int8

const (
	Minor     Importance = iota - 1 // removed first
	Usual                           // removed next, from the right
	Major                           // removed last
	nameOfRow                       // distinguishes rows: removed only if rows still differ without it
)

// MinName is the width below which a name is not cut.
const MinName = 12

// readable is the width to which long names are cut before columns are removed.
const readable = 32

// fit makes the table fit the terminal. First, names beyond readable are cut if they still differ, and then columns
// are removed. Only if the columns that distinguish rows still don't fit are short names cut, too. Numbers are never
// cut.
func (s *textTable) fit(style Style) {
	widths := s.widths()
	for c, most := range s.most {
		if most > 0 {
			widths[c] = min(widths[c], most)
		}
	}
	if style.Width > 0 && total(widths) > style.Width {
		least := s.leastWidths(widths, style)
		widths, least = s.leaveOut(widths, least, style.Width)
		shrink(widths, least, style.Width)
		for c := range least {
			if !s.right[c] {
				least[c] = min(least[c], max(MinName, textWidth(s.header[c])))
			}
		}
		shrink(widths, least, style.Width)
	}
	for c, right := range s.right {
		if !right {
			for i, text := range shortened(s.column(c), widths[c], style) {
				s.rows[i][c] = text
			}
		}
	}
}

// total returns the width of a table with columns of the given widths.
func total(widths []int) int {
	return 2*(len(widths)-1) + order.Total(widths)
}

// leastWidths returns the smallest widths of columns at which names are readable and differ as before.
func (s *textTable) leastWidths(widths []int, style Style) []int {
	least := slices.Clone(widths)
	for c, right := range s.right {
		if right || widths[c] <= readable {
			continue
		}
		at := max(readable, textWidth(s.header[c]))
		if names := s.column(c); different(shortened(names, at, style)) == different(shortened(names, widths[c], style)) {
			least[c] = at
		}
	}
	return least
}

// shrink narrows the widest columns until the table fits, or no column can be narrowed.
func shrink(widths, least []int, width int) {
	for excess := total(widths) - width; excess > 0; excess-- {
		widest := -1
		for c := range widths {
			if widths[c] > least[c] && (widest < 0 || widths[c] > widths[widest]) {
				widest = c
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// leaveOut removes columns until the others fit, and notes which. It returns the widths of the remaining columns.
func (s *textTable) leaveOut(widths, least []int, width int) (_, _ []int) {
	all := slices.Clone(s.names)
	for total(least) > width {
		c := s.leastImportant()
		if c < 0 {
			break
		}
		widths, least = slices.Delete(widths, c, c+1), slices.Delete(least, c, c+1)
		s.remove(c)
	}
	if left := slices.DeleteFunc(all, func(name string) bool { return slices.Contains(s.names, name) }); len(left) > 0 {
		s.tooWide = fmt.Sprintf("columns left out at a width of %d: %s (--width 0 shows all)", width, strings.Join(left, ", "))
	}
	return widths, least
}

// leastImportant returns the next column to remove, the rightmost of equal ones; -1 if there is none. A text stays if
// rows would look alike without it, and at least one other column stays next to the names.
func (s *textTable) leastImportant() int {
	others := order.Count(s.importance, func(importance Importance) bool { return importance != nameOfRow })
	next, least := -1, Importance(math.MaxInt8)
	for c := len(s.header) - 1; c > 0; c-- {
		name := s.importance[c] == nameOfRow
		if s.importance[c] < least && (name || others > 1) && (s.right[c] && !name || s.redundant(c)) {
			next, least = c, s.importance[c]
		}
	}
	return next
}

// redundant reports whether the other texts distinguish the rows as well without column c.
func (s *textTable) redundant(c int) bool {
	with, without := make([]string, len(s.rows)), make([]string, len(s.rows))
	for i, row := range s.rows {
		for k, text := range row {
			if s.right[k] && s.importance[k] != nameOfRow {
				continue
			}
			with[i] += text + "\x00"
			if k != c {
				without[i] += text + "\x00"
			}
		}
	}
	return different(with) == different(without)
}

// remove removes column c.
func (s *textTable) remove(c int) {
	s.columns, s.names, s.header = slices.Delete(s.columns, c, c+1), slices.Delete(s.names, c, c+1), slices.Delete(s.header, c, c+1)
	s.right, s.most = slices.Delete(s.right, c, c+1), slices.Delete(s.most, c, c+1)
	s.importance = slices.Delete(s.importance, c, c+1)
	for i := range s.rows {
		s.rows[i], s.tones[i] = slices.Delete(s.rows[i], c, c+1), slices.Delete(s.tones[i], c, c+1)
	}
}

// column returns the texts of column c.
func (s *textTable) column(c int) []string {
	return order.Each(s.rows, func(row []string) string { return row[c] })
}

// different returns the number of different texts.
func different(texts []string) int {
	return len(order.Set(texts))
}

// shortened returns texts cut to a width. Different texts that would look the same are cut so that the difference
// shows.
func shortened(texts []string, width int, style Style) []string {
	alike := make(map[string]*lookalikes, len(texts)) // by shortened text
	look := make([]string, len(texts))
	for i, text := range texts {
		if look[i] = CutMiddle(text, width, style); look[i] == text {
			continue
		}
		if names := alike[look[i]]; names != nil {
			names.add(text)
		} else {
			alike[look[i]] = &lookalikes{first: []rune(text)}
		}
	}
	for i, text := range texts {
		if names := alike[look[i]]; names != nil && names.differ {
			look[i] = cutAround(text, names.prefix, width, style)
		}
	}
	return look
}

// lookalikes are texts that look the same when shortened.
type lookalikes struct {
	first  []rune
	differ bool
	prefix int // length of their common prefix in characters, if they differ
}

func (l *lookalikes) add(name string) {
	n, same := 0, true
	for _, r := range name {
		if same = n < len(l.first) && l.first[n] == r; !same {
			break
		}
		n++
	}
	if same && n == len(l.first) {
		return
	}
	if !l.differ || n < l.prefix {
		l.differ, l.prefix = true, n
	}
}

// cutAround is CutMiddle, but it also keeps what is at position at. Near an end there is one cut, and everything
// between it and that end stays.
func cutAround(s string, at, width int, style Style) string {
	runes, mark := []rune(s), len([]rune(style.mark()))
	side := width / 4
	room := width - 2*side - 2*mark
	from := max(0, at-min(4, room/2)) // some context before the position
	to := from + room
	switch {
	case from >= to || len(runes) <= width:
		return CutMiddle(s, width, style)
	case from <= side:
		s = string(runes[:to]) + style.mark() + string(runes[len(runes)-(width-mark-to):])
	case to >= len(runes)-side:
		s = string(runes[:width-mark-(len(runes)-from)]) + style.mark() + string(runes[from:])
	default:
		s = string(runes[:side]) + style.mark() + string(runes[from:to]) + style.mark() + string(runes[len(runes)-side:])
	}
	return CutMiddle(s, width, style)
}

// mark stands for the text that was cut out.
func (s Style) mark() string {
	if s.ASCII {
		return "..."
	}
	return "…"
}

// CutMiddle cuts the middle out of s until it is at most width wide: the ends of the name of a kernel or a request
// say more than its middle.
func CutMiddle(s string, width int, style Style) string {
	if textWidth(s) <= width {
		return s
	}
	mark := style.mark()
	runes := []rune(s)
	// If a name is far wider than the column, cut most of it without measuring it repeatedly: it may have a million
	// characters.
	half := min((len(runes)+1)/2, 2*max(width, MinName))
	head, tail := half, len(runes)-min(half, len(runes)/2)
	for head > 0 {
		over := twwidth.Width(string(runes[:head])+mark+string(runes[tail:])) - width
		if over <= 0 {
			break
		}
		for range min((over+1)/2, head+len(runes)-tail) { // no character is wider than two columns
			if head > len(runes)-tail {
				head--
			} else {
				tail++
			}
		}
	}
	return string(runes[:head]) + mark + string(runes[tail:])
}

// FormatFolded is for tables whose rows are stacks: each row becomes a line with its frames and its weight, as read
// by flamegraph.pl, inferno, and speedscope. The output has nothing else.
const FormatFolded Format = "folded"

// A Folding names the columns for the lines of FormatFolded.
type Folding struct {
	Stack  string // a text made by [FoldStack]
	Weight string // a number
}

// FoldStack joins the frames of a stack, outermost first. It replaces semicolons, which separate frames, and a space
// before a number at the end, which would be a weight: "a;b" becomes "a:b", "layer 12" becomes "layer_12".
func FoldStack(frames []string) string {
	var b strings.Builder
	for i, f := range frames {
		if i > 0 {
			b.WriteByte(';')
		}
		b.WriteString(foldFrame(f))
	}
	return b.String()
}

func foldFrame(name string) string {
	name = strings.TrimSpace(words.Clean(strings.ReplaceAll(name, ";", ":")))
	if name == "" {
		return "(no name)"
	}
	if i := strings.LastIndexByte(name, ' '); i >= 0 && strings.Trim(name[i+1:], "0123456789.") == "" {
		return name[:i] + "_" + name[i+1:]
	}
	return name
}

// writeFolded writes the rows as folded stacks. It fails if the rows are not stacks, or the table is empty.
func (r *Table) writeFolded(w io.Writer) error {
	if r.Folding == nil {
		return fmt.Errorf("the rows of table %s are no stacks", r.Name())
	}
	if r.Len() == 0 {
		return fmt.Errorf("table %s is empty: %s", r.Name(), strings.Join(r.Footnotes, "; "))
	}
	stack, err := r.Column(r.Folding.Stack)
	if err != nil {
		return err
	}
	weight, err := r.Column(r.Folding.Weight)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	for row := range r.Len() {
		out.WriteString(r.Cell(row, stack).Text)
		out.WriteByte(' ')
		out.WriteString(strconv.FormatInt(r.Cell(row, weight).N, 10))
		out.WriteByte('\n')
	}
	return out.Flush()
}

// A Rendered is a table formatted for people, as in text and Markdown: strings, without empty columns. Names are not
// cut.
type Rendered struct {
	Columns []RenderedColumn
	Rows    [][]string // "-" is unknown
	Notes   []string
}

// A RenderedColumn is a column of a rendered table.
type RenderedColumn struct {
	Header string // name and unit
	Doc    string
	Right  bool // aligned to the right, as numbers are
}

// Render formats the table for people.
func (r *Table) Render() *Rendered {
	from := r.textTable()
	s := &Rendered{Rows: from.rows, Notes: from.notes}
	for i, c := range from.columns {
		s.Columns = append(s.Columns, RenderedColumn{Header: from.header[i], Doc: r.Columns[c].Doc, Right: from.right[i]})
	}
	return s
}

// Shorten makes names printable and cuts out their middle until they are at most width characters wide: the ends of
// the name of a kernel or a request say more. Different names that would look the same are cut so that the difference
// shows.
func Shorten(names []string, width int) []string {
	clean := order.Each(names, words.Clean)
	return shortened(clean, width, Style{})
}

// Printable makes a string from a file safe to show: characters that don't simply draw themselves, such as control
// characters and bidirectional overrides, appear as \x1b or \u202e.
func Printable(s string) string { return words.Clean(s) }

// PrintableAll applies [Printable] to all strings.
func PrintableAll(list []string) []string {
	return order.Each(list, Printable)
}

// Redact replaces names in the texts of a report. Most texts were made from redacted data already, but not those that
// an inventory takes from files.
func (r *Table) Redact(by *redact.Redactor) {
	for _, c := range r.Columns {
		if c.Name == "host" {
			r.eachText(c.Name, func(text string) {
				host, _, _ := strings.Cut(text, naming.ServerMark)
				by.LearnHost(host)
			})
		}
	}
	r.Title = by.Scrub(r.Title)
	for i, note := range r.Footnotes {
		r.Footnotes[i] = by.Scrub(note)
	}
	inner := r.cell
	r.cell = func(row, column int) Cell {
		c := inner(row, column)
		switch {
		case r.Columns[column].Unit != Text || c.Unknown:
		case r.Columns[column].Name == "host":
			host, server, numbered := strings.Cut(c.Text, naming.ServerMark)
			if c.Text = by.Host(host); numbered {
				c.Text += naming.ServerMark + server
			}
		default:
			c.Text = by.Scrub(c.Text)
		}
		return c
	}
}

// eachText calls f for the known texts of a column.
func (r *Table) eachText(column string, f func(string)) {
	k, err := r.Column(column)
	if err != nil {
		return
	}
	for _, row := range r.order {
		if c := r.cell(int(row), k); !c.Unknown {
			f(c.Text)
		}
	}
}
