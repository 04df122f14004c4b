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

// Text is filled to the width of the terminal, or to one that most have, and no further
// than a line can be read. Tables take all of the width that there is.
const (
	usualWidth = 80
	mostWidth  = 100
)

// An overviewPrinter writes text.
type overviewPrinter struct {
	*Overview
	out   *bufio.Writer
	style table.Style
	width int
	tone  table.Tone // of what is filled
}

// severityTones are the tones of findings.
var severityTones = map[finding.Severity]table.Tone{finding.Critical: table.Bad, finding.Warning: table.Warning}

func (o *Overview) writeText(w io.Writer, style table.Style) error {
	p := &overviewPrinter{Overview: o, out: bufio.NewWriter(w), style: style, width: usualWidth}
	if style.Width > 0 {
		p.width = min(max(style.Width, 40), mostWidth)
	}
	const margin = 10 // of what facts say
	for _, f := range o.facts() {
		p.filled(fmt.Sprintf("%-*s", margin, f.name), margin, f.text)
	}
	if len(o.Warnings) == 0 {
		p.filled(fmt.Sprintf("%-*s", margin, "trust"), margin, p.trustText())
	}
	for i := range o.Warnings {
		name := ""
		if i == 0 {
			name = "trust"
		}
		if mark := warningMark(&o.Warnings[i]); mark != "" {
			p.tone = table.Bad
		}
		p.filled(fmt.Sprintf("%-*s", margin, name), margin, warningMark(&o.Warnings[i])+o.Warnings[i].Text)
		p.tone = table.Plain
	}
	if err := p.latencies(); err != nil {
		return err
	}
	if err := p.shares(); err != nil {
		return err
	}
	p.findings()
	return p.out.Flush()
}

func (p *overviewPrinter) latencies() error {
	if len(p.Latencies) == 0 {
		return nil
	}
	p.printf("\n")
	// The rows are few enough without a rule.
	return p.latencyReport().WriteBare(p.out, table.Style{Width: p.style.Width, ASCII: p.style.ASCII})
}

// mostDevices is how many devices people are shown where there are only profiles.
const mostDevices = 8

// mostKernels is how many kernels people are shown there.
const mostKernels = 5

// shares shows where the time of devices went, those that are idle for longest first, and
// which kernels take most of it.
func (p *overviewPrinter) shares() error {
	if p.Requests != nil || p.GPUs == nil || len(p.GPUs.GPUs) == 0 {
		return nil
	}
	p.printf("\n")
	r := p.profileReport()
	if n := len(p.GPUs.GPUs); n > mostDevices {
		_ = r.Sort("idle", true) // there is such a column
		r.Limit(mostDevices)
	}
	style := table.Style{Width: p.style.Width, ASCII: p.style.ASCII}
	if err := r.WriteBare(p.out, style); err != nil {
		return err
	}
	kernels := p.kernelReport()
	if kernels.Len() == 0 {
		return nil
	}
	p.printf("\n")
	kernels.Limit(mostKernels)
	if err := kernels.WriteBare(p.out, style); err != nil {
		return err
	}
	p.printf("$ %s\n", p.commandFor([]string{"--kernels"}))
	return nil
}

// mostEvidence is how much evidence of a finding people are shown at once.
const mostEvidence = 2

func (p *overviewPrinter) findings() {
	p.printf("\n%s\n", p.findingsTitle())
	if len(p.Findings) == 0 {
		p.filled("", 0, p.lookedText())
	}
	for i := range p.Findings[:p.shown()] {
		f := &p.Findings[i]
		p.tone = severityTones[f.Severity]
		p.filled(fmt.Sprintf("%d  ", i+1), 3, fmt.Sprintf("%s (%s)", f.Text, f.Remark()))
		p.tone = table.Plain
		for k, text := range finding.Sentences(f.Evidence[:min(mostEvidence, len(f.Evidence))]) {
			if more := len(f.Evidence) - mostEvidence; k == mostEvidence-1 && more > 0 {
				text += fmt.Sprintf(" (and %d more)", more)
			}
			p.filled("   - ", 5, text)
		}
		p.printf("   $ %s\n", p.shortCommand(f))
	}
	if len(p.Findings) > 0 && p.manyInputs() {
		p.filled("INPUT... ", 9, words.QuoteShell(p.Inputs))
	}
	for _, text := range p.In(finding.TooLittle) {
		p.filled("", 0, text)
	}
}

// filled prints a text behind a head, in lines that are indented as far.
func (p *overviewPrinter) filled(head string, indent int, text string) {
	for i, line := range table.Fill(text, p.width-twwidth.Width(head), p.width-indent) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		p.printf("%s\n", strings.TrimRight(head+p.style.Paint(p.tone, line), " "))
	}
}

func (p *overviewPrinter) printf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.out.WriteString(p.style.Draw(strings.ReplaceAll(text, "\u00a0", " ")))
}
