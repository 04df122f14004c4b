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

// writeText writes title, aligned table and notes. A table without rows is left out
// if the notes say why.
func (r *Report) writeText(w io.Writer, style Style) error {
	s := r.sheet()
	s.fit(style)
	var table bytes.Buffer
	if len(s.rows) > 0 || len(s.notes) == 0 {
		if err := s.render(&table); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(w)
	if r.Title != "" {
		fmt.Fprintln(out, clean(r.Title))
	}
	if r.Title != "" && table.Len() > 0 {
		fmt.Fprintln(out)
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
	alike := make(map[string]*lookalikes, len(s.rows)) // by how they look
	look := make([]string, len(s.rows))
	for i, row := range s.rows {
		if look[i] = shorten(row[c], width, style); look[i] == row[c] {
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
			look[i] = shortenAround(row[c], names.prefix, width, style)
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
	// What is wider than a column by far is cut without measuring it again and
	// again: a name may have a million characters.
	half := min((len(runes)+1)/2, 2*max(width, minName))
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
