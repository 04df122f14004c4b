package table

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/sgtrace/sgtrace/analyze/words"
)

// writeText writes title, aligned table and notes. A table without rows is left out
// if the notes say why.
func (r *Table) writeText(w io.Writer, style Style) error {
	s := r.textTable()
	s.fit(style)
	out := bufio.NewWriter(w)
	if r.Title != "" {
		fmt.Fprintln(out, words.Clean(r.Title))
	}
	if len(s.header) > 0 && (len(s.rows) > 0 || len(s.notes) == 0) {
		if r.Title != "" {
			fmt.Fprintln(out)
		}
		if err := s.writeAligned(out, true); err != nil {
			return err
		}
	}
	for i, note := range s.notes {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "note: %s\n", note)
	}
	return out.Flush()
}

// WriteBare writes the table alone: no title, no rule under the header, no notes.
func (r *Table) WriteBare(out *bufio.Writer, style Style) error {
	s := r.textTable()
	s.fit(style)
	return s.writeAligned(out, false)
}

// writeAligned writes the table without borders, with or without a rule under the header.
func (s *textTable) writeAligned(out *bufio.Writer, ruled bool) error {
	widths := s.widths()
	header, rule, err := s.head(widths)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, header)
	if ruled {
		fmt.Fprintln(out, rule)
	}
	s.writeRows(out, widths)
	return nil
}

// widths returns how wide the columns are.
func (s *textTable) widths() []int {
	widths := make([]int, len(s.header))
	for c, text := range s.header {
		widths[c] = textWidth(text)
	}
	for _, row := range s.rows {
		for c, text := range row {
			widths[c] = max(widths[c], textWidth(text))
		}
	}
	return widths
}

// textWidth is twwidth.Width, which looks everything up in a table. Nearly all is ASCII.
func textWidth(text string) int {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return twwidth.Width(text)
		}
	}
	return len(text)
}

// writeRows writes the rows below the head. tablewriter would take ten times as long
// for them as it took to find out what they say, and there may be a million.
func (s *textTable) writeRows(out *bufio.Writer, widths []int) {
	const gap = "  "
	var line []byte
	for _, row := range s.rows {
		line = line[:0]
		for c, text := range row {
			if c > 0 {
				line = append(line, gap...)
			}
			pad := strings.Repeat(" ", widths[c]-textWidth(text))
			if s.right[c] {
				line = append(line, pad...)
			}
			if line = append(line, text...); !s.right[c] {
				line = append(line, pad...)
			}
		}
		out.Write(append(bytes.TrimRight(line, " "), '\n'))
	}
}

// head returns the lines above the rows.
func (s *textTable) head(widths []int) (header, rule string, err error) {
	widest := make([]string, len(widths)) // a row to make columns as wide as they are
	for c, width := range widths {
		widest[c] = strings.Repeat("x", width)
	}
	var table bytes.Buffer
	lines := tw.Lines{ShowHeaderLine: tw.On}
	symbols := tw.NewSymbolCustom("plain").WithColumn("  ").WithRow("-").WithCenter("  ")
	align := make(tw.Alignment, len(s.right))
	for i, right := range s.right {
		align[i] = tw.AlignLeft
		if right {
			align[i] = tw.AlignRight
		}
	}
	t := tablewriter.NewTable(&table,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  symbols,
			Settings: tw.Settings{Lines: lines, Separators: tw.Separators{BetweenColumns: tw.On}},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off), // else p50_us becomes P 50 US
		tablewriter.WithHeaderAutoWrap(tw.WrapNone), tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithTrimSpace(tw.Off), // names are indented
		tablewriter.WithEastAsian(tw.Off), // the locale must not decide the output
		tablewriter.WithAlignment(align),
		tablewriter.WithPadding(tw.Padding{Overwrite: true}),
	)
	t.Header(s.header)
	if err := t.Append(widest); err != nil {
		return "", "", err
	}
	if err := t.Render(); err != nil {
		return "", "", err
	}
	header, rest, _ := strings.Cut(table.String(), "\n")
	rule, _, _ = strings.Cut(rest, "\n")
	return strings.TrimRight(header, " "), rule, nil
}

// MinName is the width below which a name is not cut.
const MinName = 12

// fit cuts names that are wider than their column may be, and the longest ones
// until the table is as wide as the terminal, or no name can be cut further. Numbers
// are never cut.
func (s *textTable) fit(style Style) {
	widths := s.widths()
	excess := 2*(len(widths)-1) - style.Width
	for c := range widths {
		if s.most[c] > 0 {
			widths[c] = min(widths[c], s.most[c])
		}
		excess += widths[c]
	}
	for ; style.Width > 0 && excess > 0; excess-- {
		widest := -1
		for c := range widths {
			if !s.right[c] && widths[c] > max(MinName, textWidth(s.header[c])) && (widest < 0 || widths[c] > widths[widest]) {
				widest = c
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	for c, right := range s.right {
		if !right {
			s.cut(c, widths[c], style)
		}
	}
}

// cut shortens the texts of a column. Those that would look the same show where they
// differ.
func (s *textTable) cut(c, width int, style Style) {
	alike := make(map[string]*lookalikes, len(s.rows)) // by how they look
	look := make([]string, len(s.rows))
	for i, row := range s.rows {
		if look[i] = CutMiddle(row[c], width, style); look[i] == row[c] {
			continue
		}
		if names := alike[look[i]]; names != nil {
			names.add(row[c])
		} else {
			alike[look[i]] = &lookalikes{first: []rune(row[c])}
		}
	}
	for i, row := range s.rows {
		if names := alike[look[i]]; names != nil && names.differ {
			look[i] = cutAround(row[c], names.prefix, width, style)
		}
		row[c] = look[i]
	}
}

// lookalikes are texts that look the same when they are shortened.
type lookalikes struct {
	first  []rune
	differ bool
	prefix int // how many characters all begin with alike, if they differ
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

// cutAround is CutMiddle, but leaves what is at a place in the middle, too.
func cutAround(s string, at, width int, style Style) string {
	const context = 4 // characters before the place
	runes := []rune(s)
	side := width / 4
	from, to := at-context, at-context+width-2*side-2*len([]rune(style.mark()))
	if from <= side || to >= len(runes)-side || from >= to {
		return CutMiddle(s, width, style)
	}
	return CutMiddle(string(runes[:side])+style.mark()+string(runes[from:to])+style.mark()+string(runes[len(runes)-side:]), width, style)
}

// mark stands for what was cut out.
func (s Style) mark() string {
	if s.ASCII {
		return "..."
	}
	return "…"
}

// CutMiddle cuts the middle out of s until it is as wide as width: the ends of
// a kernel's or a request's name tell more than its middle.
func CutMiddle(s string, width int, style Style) string {
	if textWidth(s) <= width {
		return s
	}
	mark := style.mark()
	runes := []rune(s)
	// What is wider than a column by far is cut without measuring it again and
	// again: a name may have a million characters.
	half := min((len(runes)+1)/2, 2*max(width, MinName))
	head, tail := half, len(runes)-min(half, len(runes)/2)
	for head > 0 && twwidth.Width(string(runes[:head])+mark+string(runes[tail:])) > width {
		if head > len(runes)-tail {
			head--
		} else {
			tail++
		}
	}
	return string(runes[:head]) + mark + string(runes[tail:])
}
