package analyze

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
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

// fit cuts names that are wider than their column may be, and the longest ones
// until the table is as wide as the terminal, or no name can be cut further. Numbers
// are never cut.
func (s *sheet) fit(style Style) {
	widths := make([]int, len(s.header))
	excess := 2*(len(widths)-1) - style.Width
	for c := range widths {
		widths[c] = twwidth.Width(s.header[c])
		for _, row := range s.rows {
			widths[c] = max(widths[c], twwidth.Width(row[c]))
		}
		if s.most[c] > 0 {
			widths[c] = min(widths[c], s.most[c])
		}
		excess += widths[c]
	}
	for ; style.Width > 0 && excess > 0; excess-- {
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
		if !right {
			s.cut(c, widths[c], style)
		}
	}
}

// cut shortens the texts of a column. Those that would look the same show where they
// differ.
func (s *sheet) cut(c, width int, style Style) {
	whole := make(map[string][]string, len(s.rows)) // by how they look
	look := make([]string, len(s.rows))
	for i, row := range s.rows {
		look[i] = shorten(row[c], width, style)
		if names := whole[look[i]]; look[i] != row[c] && !slices.Contains(names, row[c]) {
			whole[look[i]] = append(names, row[c])
		}
	}
	for i, row := range s.rows {
		if names := whole[look[i]]; len(names) > 1 {
			look[i] = shortenAround(row[c], commonPrefix(names), width, style)
		}
		row[c] = look[i]
	}
}

// commonPrefix returns how many characters all names begin with alike.
func commonPrefix(names []string) int {
	prefix := []rune(names[0])
	for _, name := range names[1:] {
		n := 0
		for _, r := range name {
			if n == len(prefix) || prefix[n] != r {
				break
			}
			n++
		}
		prefix = prefix[:n]
	}
	return len(prefix)
}

// shortenAround is shorten, but leaves what is at a place in the middle, too.
func shortenAround(s string, at, width int, style Style) string {
	const context = 4 // characters before the place
	runes := []rune(s)
	side := width / 4
	from, to := at-context, at-context+width-2*side-2*len([]rune(style.mark()))
	if from <= side || to >= len(runes)-side || from >= to {
		return shorten(s, width, style)
	}
	return shorten(string(runes[:side])+style.mark()+string(runes[from:to])+style.mark()+string(runes[len(runes)-side:]), width, style)
}

// mark stands for what was cut out.
func (s Style) mark() string {
	if s.ASCII {
		return "..."
	}
	return "…"
}

// shorten cuts the middle out of s until it is as wide as width: the ends of
// a kernel's or a request's name tell more than its middle.
func shorten(s string, width int, style Style) string {
	if twwidth.Width(s) <= width {
		return s
	}
	mark := style.mark()
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
