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
	"github.com/sgtrace/sgtrace/internal/order"
)

// writeText writes the title, the aligned table, and the notes. A table without rows is left out if there are notes,
// which say why.
func (r *Table) writeText(w io.Writer, style Style) error {
	s := r.textTable()
	s.fit(style)
	out := bufio.NewWriter(w)
	if r.Title != "" {
		WriteFilled(out, style, "", words.Clean(r.Title))
	}
	if len(s.header) > 0 && (len(s.rows) > 0 || len(s.notes) == 0) {
		if r.Title != "" {
			fmt.Fprintln(out)
		}
		if err := s.writeAligned(out, style, true); err != nil {
			return err
		}
	}
	notes := s.notes
	if s.tooWide != "" {
		notes = append(notes, s.tooWide)
	}
	WriteNotes(out, style, notes)
	return out.Flush()
}

// WriteBare writes only the table: no title, no rule under the header, and only the note about columns that do not
// fit the terminal.
func (r *Table) WriteBare(out *bufio.Writer, style Style) error {
	s := r.textTable()
	s.fit(style)
	if err := s.writeAligned(out, style, false); err != nil {
		return err
	}
	if s.tooWide != "" {
		WriteFilled(out, style, noteHead, s.tooWide)
	}
	return nil
}

const noteHead = "note: "

// WriteNotes writes notes below a table or a drawing.
func WriteNotes(out *bufio.Writer, style Style, notes []string) {
	for i, note := range notes {
		if i == 0 {
			fmt.Fprintln(out)
		}
		WriteFilled(out, style, noteHead, words.Clean(note))
	}
}

// WriteFilled writes text behind a head, wrapped at the width of the terminal.
func WriteFilled(out io.Writer, style Style, head, text string) {
	text = style.Draw(text)
	if style.Width == 0 {
		fmt.Fprintln(out, head+text)
		return
	}
	for i, line := range Fill(text, style.Width-len(head), style.Width-len(head)) {
		start := head
		if i > 0 {
			start = strings.Repeat(" ", len(head))
		}
		fmt.Fprintln(out, start+strings.ReplaceAll(line, "\u00a0", " "))
	}
}

// writeAligned writes the table without borders, with or without a rule under the header.
func (s *textTable) writeAligned(out *bufio.Writer, style Style, ruled bool) error {
	widths := s.widths()
	header, rule, err := s.head(widths)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, header)
	if ruled {
		fmt.Fprintln(out, rule)
	}
	s.writeRows(out, style, widths)
	return nil
}

// widths returns the widths of the columns.
func (s *textTable) widths() []int {
	widths := order.Each(s.header, textWidth)
	for _, row := range s.rows {
		for c, text := range row {
			widths[c] = max(widths[c], textWidth(text))
		}
	}
	return widths
}

// textWidth is twwidth.Width with a fast path for ASCII, which nearly all texts are.
func textWidth(text string) int {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return twwidth.Width(text)
		}
	}
	return len(text)
}

// writeRows writes the rows below the head. tablewriter would take ten times as long for them as computing the cells,
// and there may be a million.
func (s *textTable) writeRows(out *bufio.Writer, style Style, widths []int) {
	const gap = "  "
	var line []byte
	for i, row := range s.rows {
		line = line[:0]
		for c, text := range row {
			if c > 0 {
				line = append(line, gap...)
			}
			pad := strings.Repeat(" ", widths[c]-textWidth(text))
			if s.right[c] {
				line = append(line, pad...)
			}
			if line = append(line, style.Paint(s.tones[i][c], text)...); !s.right[c] {
				line = append(line, pad...)
			}
		}
		out.Write(append(bytes.TrimRight(line, " "), '\n'))
	}
}

// head returns the header and the rule.
func (s *textTable) head(widths []int) (header, rule string, err error) {
	widest := make([]string, len(widths)) // a row that gives columns their widths
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
		tablewriter.WithEastAsian(tw.Off), // the locale must not affect the output
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
