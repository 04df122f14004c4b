package screen

import (
	"fmt"
	"github.com/sgtrace/sgtrace/internal/order"
	"io"
	"strings"
	"unicode/utf8"
)

// Write prints the page, at most width columns wide.
func (p *Page) Write(w io.Writer, width int) error {
	for i := range p.Sections {
		if s := &p.Sections[i]; s.Title != "" || len(s.Blocks) > 0 {
			if err := s.Write(w, width); err != nil {
				return err
			}
		}
	}
	return nil
}

// Write prints the section with its heading.
func (s *Section) Write(w io.Writer, width int) error {
	var b strings.Builder
	s.heading(&b)
	for i := range s.Blocks {
		block := &s.Blocks[i]
		if i > 0 && !(block.Item != "" && s.Blocks[i-1].Item != "") {
			b.WriteByte('\n')
		}
		block.write(&b, width)
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Section) heading(b *strings.Builder) {
	title := plain(s.Title)
	switch {
	case title == "":
	case s.Level == 1:
		fmt.Fprintf(b, "%s\n%s\n\n", strings.ToUpper(title), strings.Repeat("=", utf8.RuneCountInString(title)))
	case s.Level == 2:
		fmt.Fprintf(b, "%s\n%s\n\n", title, strings.Repeat("-", utf8.RuneCountInString(title)))
	default:
		fmt.Fprintf(b, "%s\n\n", title)
	}
}

func (k *Block) write(b *strings.Builder, width int) {
	switch {
	case k.Table != nil:
		writeTable(b, k.Table, width)
	case k.Code != nil:
		for _, line := range k.Code {
			fmt.Fprintf(b, "    %s\n", line)
		}
	case k.Item != "":
		head := strings.Repeat("  ", k.Depth) + k.Item + " "
		fill(b, head, len(head), plain(k.Text), width)
	default:
		fill(b, "", 0, plain(k.Text), width)
	}
}

// fill wraps text after head, which is empty or as wide as the indent of the lines.
func fill(b *strings.Builder, head string, indent int, text string, width int) {
	used, first := utf8.RuneCountInString(head), true
	b.WriteString(head)
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		if !first && used+1+n > width {
			b.WriteByte('\n')
			used, first = 0, true
		}
		if first {
			b.WriteString(strings.Repeat(" ", max(0, indent-used)))
			used = max(used, indent)
		} else {
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used, first = used+n, false
	}
	b.WriteByte('\n')
}

// writeTable prints a table as columns if it fits, or else row by row: the first cell, and the other cells
// indented below it.
func writeTable(b *strings.Builder, rows [][]string, width int) {
	if widths, fits := columnWidths(rows, width); fits {
		for i, row := range rows {
			writeRow(b, row, widths)
			if i == 0 {
				rule := order.Each(widths, func(w int) string { return strings.Repeat("-", w) })
				writeRow(b, rule, widths)
			}
		}
		return
	}
	for _, row := range rows[1:] {
		writeEntry(b, rows[0], row, width)
	}
}

// columnWidths returns the width of each column, and whether all fit.
func columnWidths(rows [][]string, width int) (widths []int, fit bool) {
	widths = make([]int, len(rows[0]))
	for _, row := range rows {
		for c := range min(len(row), len(widths)) {
			widths[c] = max(widths[c], utf8.RuneCountInString(plain(row[c])))
		}
	}
	all := 2*(len(widths)-1) + order.Total(widths)
	return widths, all <= width
}

func writeRow(b *strings.Builder, row []string, widths []int) {
	line := ""
	for c, w := range widths {
		text := ""
		if c < len(row) {
			text = plain(row[c])
		}
		line += text + strings.Repeat(" ", w-utf8.RuneCountInString(text)+2)
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// entryIndent is the indent of the text about an entry.
const entryIndent = 18

// writeEntry prints a row: its first cell, the second cell as its description, and the others with their
// headers.
func writeEntry(b *strings.Builder, header, row []string, width int) {
	const margin = "  "
	text := ""
	if len(row) > 1 {
		text = plain(row[1])
	}
	if head := margin + plain(row[0]); utf8.RuneCountInString(head) < entryIndent {
		fill(b, fmt.Sprintf("%-*s", entryIndent, head), entryIndent, text, width)
	} else {
		fill(b, margin, len(margin), plain(row[0]), width)
		fill(b, "", entryIndent, text, width)
	}
	for c := 2; c < min(len(row), len(header)); c++ {
		if cell := plain(row[c]); cell != "" {
			fill(b, "", entryIndent, plain(header[c])+": "+cell, width)
		}
	}
}
