package analyze

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// writeText writes title, aligned table and notes.
func (r *Report) writeText(w io.Writer, style Style) error {
	s := r.sheet()
	s.fit(style)
	var table bytes.Buffer
	if err := s.render(&table); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if r.Title != "" {
		fmt.Fprintf(out, "%s\n\n", clean(r.Title))
	}
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
	for i, note := range s.notes {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "note: %s\n", note)
	}
	return out.Flush()
}

// render draws the table: no borders, a rule under the header.
func (s *sheet) render(w io.Writer) error {
	lines := tw.Lines{ShowHeaderLine: tw.On}
	symbols := tw.NewSymbolCustom("plain").WithColumn("  ").WithRow("-").WithCenter("  ")
	align := make(tw.Alignment, len(s.right))
	for i, right := range s.right {
		align[i] = tw.AlignLeft
		if right {
			align[i] = tw.AlignRight
		}
	}
	t := tablewriter.NewTable(w,
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
	if err := t.Bulk(s.rows); err != nil {
		return err
	}
	return t.Render()
}

// minName is the width below which a name is not cut.
const minName = 12

// fit cuts the longest names until the table is as wide as the terminal, or no
// name can be cut further. Numbers are never cut.
func (s *sheet) fit(style Style) {
	if style.Width <= 0 {
		return
	}
	widths := make([]int, len(s.header))
	excess := 2*(len(widths)-1) - style.Width
	for c := range widths {
		widths[c] = twwidth.Width(s.header[c])
		for _, row := range s.rows {
			widths[c] = max(widths[c], twwidth.Width(row[c]))
		}
		excess += widths[c]
	}
	for ; excess > 0; excess-- {
		widest := -1
		for c := range widths {
			if !s.right[c] && widths[c] > max(minName, twwidth.Width(s.header[c])) && (widest < 0 || widths[c] > widths[widest]) {
				widest = c
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	for c, right := range s.right {
		for _, row := range s.rows {
			if !right {
				row[c] = shorten(row[c], widths[c], style)
			}
		}
	}
}

// shorten cuts the middle out of s until it is as wide as width: the ends of
// a kernel's or a request's name tell more than its middle.
func shorten(s string, width int, style Style) string {
	if twwidth.Width(s) <= width {
		return s
	}
	mark := "…"
	if style.ASCII {
		mark = "..."
	}
	runes := []rune(s)
	head, tail := (len(runes)+1)/2, (len(runes)+1)/2
	for head > 0 && twwidth.Width(string(runes[:head])+mark+string(runes[tail:])) > width {
		if head > len(runes)-tail {
			head--
		} else {
			tail++
		}
	}
	return string(runes[:head]) + mark + string(runes[tail:])
}
