package overview

import (
	"fmt"
	"io"

	"github.com/sgtrace/sgtrace/analyze/table"
)

// An overviewPrinter writes text.
type overviewPrinter struct {
	*Overview
	*Printer
}

func (o *Overview) writeText(w io.Writer, style table.Style) error {
	p := &overviewPrinter{o, NewPrinter(w, style)}
	const margin = 10 // of what facts say
	for _, f := range o.facts() {
		p.Filled(fmt.Sprintf("%-*s", margin, f.name), margin, f.text)
	}
	if len(o.Warnings) == 0 {
		p.Filled(fmt.Sprintf("%-*s", margin, "trust"), margin, p.trustText())
	}
	for i := range o.Warnings {
		name := ""
		if i == 0 {
			name = "trust"
		}
		if mark := warningMark(&o.Warnings[i]); mark != "" {
			p.Tone = table.Bad
		}
		p.Filled(fmt.Sprintf("%-*s", margin, name), margin, warningMark(&o.Warnings[i])+o.Warnings[i].Text)
		p.Tone = table.Plain
	}
	if err := p.latencies(); err != nil {
		return err
	}
	if err := p.shares(); err != nil {
		return err
	}
	p.Printf("\n")
	p.list().Print(p.Printer)
	return p.Out.Flush()
}

func (p *overviewPrinter) latencies() error {
	if len(p.Latencies) == 0 {
		return nil
	}
	p.Printf("\n")
	// The rows are few enough without a rule.
	return latencyReport(p.Seen()).WriteBare(p.Out, p.Bare())
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
	p.Printf("\n")
	r := p.profileReport()
	if n := len(p.GPUs.GPUs); n > mostDevices {
		_ = r.Sort("idle", true) // there is such a column
		r.Limit(mostDevices)
	}
	style := p.Bare()
	if err := r.WriteBare(p.Out, style); err != nil {
		return err
	}
	kernels := p.kernelReport()
	if kernels.Len() == 0 {
		return nil
	}
	p.Printf("\n")
	kernels.Limit(mostKernels)
	if err := kernels.WriteBare(p.Out, style); err != nil {
		return err
	}
	p.Printf("$ %s\n", p.list().CommandFor([]string{"--kernels"}))
	return nil
}
