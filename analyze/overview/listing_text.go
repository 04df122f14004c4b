package overview

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// usualWidth is the width of text where that of the terminal is not known: most have it.
const usualWidth = 80

// MostWidth is how wide text gets on a wide terminal: longer lines are hard to read.
const MostWidth = 100

// A Printer writes text in lines that people can read.
type Printer struct {
	Out   *bufio.Writer
	Width int        // of lines, in columns
	Tone  table.Tone // of what is filled
	style table.Style
}

// NewPrinter writes to w, which the caller flushes by Out.
func NewPrinter(w io.Writer, style table.Style) *Printer {
	p := &Printer{Out: bufio.NewWriter(w), Width: usualWidth, style: style}
	if style.Width > 0 {
		p.Width = min(max(style.Width, 40), MostWidth)
	}
	return p
}

// Bare is the style of tables between the lines. They take all of the width that there is.
func (p *Printer) Bare() table.Style { return table.Style{Width: p.style.Width, ASCII: p.style.ASCII} }

// Filled prints a text behind a head, in lines that are indented as far.
func (p *Printer) Filled(head string, indent int, text string) {
	for i, line := range table.Fill(text, p.Width-twwidth.Width(head), p.Width-indent) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		p.Printf("%s\n", strings.TrimRight(head+p.style.Paint(p.Tone, line), " "))
	}
}

// Printf prints as it stands.
func (p *Printer) Printf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.Out.WriteString(p.style.Draw(strings.ReplaceAll(text, "\u00a0", " ")))
}

// severityTones are the tones of findings.
var severityTones = map[finding.Severity]table.Tone{finding.Critical: table.Bad, finding.Warning: table.Warning}

// mostEvidence is how much evidence of a finding people are shown at once.
const mostEvidence = 2

// Print lists the findings that are shown, and what there was too little data for: first where
// nothing was found, so that nobody takes what was not judged for healthy.
func (l *List) Print(p *Printer) {
	little := l.Result.In(finding.TooLittle)
	if len(l.Result.Findings) == 0 {
		for _, text := range little {
			p.Filled("", 0, text)
		}
		little = nil
	}
	p.Printf("%s\n", l.title())
	if len(l.Result.Findings) == 0 {
		p.Filled("", 0, l.looked())
	}
	for i := range l.Result.Findings[:l.shown()] {
		f := &l.Result.Findings[i]
		p.Tone = severityTones[f.Severity]
		p.Filled(fmt.Sprintf("%d  ", i+1), 3, fmt.Sprintf("%s (%s)", f.Text, f.Remark()))
		p.Tone = table.Plain
		shown := len(f.Evidence)
		if !l.Evidence {
			shown = min(mostEvidence, shown)
		}
		for k, text := range finding.Sentences(f.Evidence[:shown]) {
			if more := len(f.Evidence) - shown; k == shown-1 && more > 0 {
				text += fmt.Sprintf(" (%d more with --evidence)", more)
			}
			p.Filled("   - ", 5, text)
		}
		p.Printf("   $ %s\n", f.Command(l.shortAgain()))
	}
	if text := l.SumText(); text != "" {
		p.Filled("", 0, text)
	}
	if len(l.Result.Findings) > 0 && l.manyInputs() {
		p.Filled("INPUT... ", 9, words.QuoteShell(l.Inputs))
	}
	for _, text := range little {
		p.Filled("", 0, text)
	}
}
