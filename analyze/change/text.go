package change

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// Write lists the changes as text: what happened first, when, and below what
// changed with it.
func (c *Changes) Write(out io.Writer, style table.Style) error {
	p := &changesPrinter{Changes: c, out: bufio.NewWriter(out), style: style}
	p.header()
	for i := range c.List {
		p.change(i + 1)
	}
	p.list("always, and not a change", c.Late, func(f *Shift) string {
		_, after := f.values()
		return "p50 " + after
	})
	p.list("not changes, but the ramp-up or the drain", c.Edges, func(f *Shift) string {
		return fmt.Sprintf("%s at %s", f.change(), words.When(f.Time, f.First, f.Last))
	})
	table.WriteNotes(p.out, style, c.notes())
	return p.out.Flush()
}

type changesPrinter struct {
	*Changes
	out   *bufio.Writer
	style table.Style
}

func (p *changesPrinter) printf(format string, args ...any) {
	p.out.WriteString(p.style.Draw(fmt.Sprintf(format, args...)))
}

func (p *changesPrinter) header() {
	switch {
	case p.Series == 0:
		p.printf("Changes: not searched\n")
	case len(p.List) == 0:
		p.printf("Changes: none\n")
	default:
		at := p.List[0].Time
		p.printf("Changes: %d on %s, times in %s\n", len(p.List), words.Clock(at).Format(time.DateOnly), words.ZoneAt(at))
	}
}

// mostFollowing is how many shifts of one kind are listed below the first one.
const mostFollowing = 8

// change prints a change: a line about what came first, and a table of the rest.
func (p *changesPrinter) change(number int) {
	c := &p.List[number-1]
	f := &c.Shifts[0]
	what, chance := fmt.Sprintf("%d  %s  %s ", number, c.when(), words.Clean(f.subject())), "("+words.Chance(c.P)+")"
	gap := "  "
	if p.style.Width > 0 && twwidth.Width(what+f.change()+gap+chance) > p.style.Width {
		gap = "\n   "
	}
	p.printf("\n%s%s%s%s\n", what, p.style.Paint(f.tone(), f.change()), gap, chance)
	rest := c.Shifts[1:]
	left := max(0, len(rest)-mostFollowing)
	rest = rest[:len(rest)-left]
	width := 0
	for i := range rest {
		width = max(width, twwidth.Width(words.Clean(rest[i].subject())))
	}
	for i := range rest {
		f := &rest[i]
		part := c.part(i + 1)
		if i > 0 && part == c.part(i) {
			part = ""
		}
		before, after := f.values()
		pad := strings.Repeat(" ", width-twwidth.Width(words.Clean(f.subject())))
		p.printf("   %-5s %s%s  %7s → %s\n", part, words.Clean(f.subject()), pad, before, p.style.Paint(f.tone(), after))
	}
	if left > 0 {
		p.printf("         and %d more\n", left)
	}
}

// tone tells whether a duration became better or worse. More load is neither.
func (f *Shift) tone() table.Tone {
	switch {
	case f.Metric.isLoad() || f.Metric.saves():
		return table.Plain
	case f.rises():
		return table.Bad
	}
	return table.Good
}

// list prints shifts that are not part of a change.
func (p *changesPrinter) list(title string, found []Shift, say func(*Shift) string) {
	for i := range found {
		if i == 0 {
			p.printf("\n%s:\n", title)
		}
		p.printf("   %s %s\n", words.Clean(found[i].subject()), say(&found[i]))
	}
}
