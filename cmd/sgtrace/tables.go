package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
)

// write prints a document as the flags say. People get to see at most so many rows of its
// main table unless told otherwise; 0 is all.
func (c *command) write(ctx *cli.Context, f table.Format, d *document.Document, most int) error {
	if name := ctx.String("table"); name != "" {
		if err := d.Choose(name); err != nil {
			return commandline.AsUsage(err)
		}
	}
	if main, err := d.MainTable(); err == nil {
		if err := arrange(ctx, main, peopleOnly(f, most)); err != nil {
			return err
		}
	} else if f == table.FormatCSV {
		return commandline.AsUsage(err)
	}
	d.Inputs = c.inputsRead()
	if d.Warnings == nil {
		d.Warnings = c.warnings()
	}
	if c.redact != nil {
		d.Redact(c.redact)
	}
	return d.Write(c.out, f, c.style())
}

// inputsRead are the files that the command read, with their sizes, without those that
// nothing could be read of.
func (c *command) inputsRead() []document.Input {
	unread := map[string]bool{}
	for _, d := range c.diags.All() {
		if d.Message == trace.InputUnusable {
			unread[d.Pos.File] = true
		}
	}
	var list []document.Input
	for _, in := range c.read {
		if unread[in.Name] {
			continue
		}
		file := document.Input{Name: in.Name, Bytes: request.Unknown}
		if info, err := os.Stat(in.Name); err == nil && info.Mode().IsRegular() {
			file.Bytes = info.Size()
		}
		list = append(list, file)
	}
	return list
}

// warnings are the messages about the inputs.
func (c *command) warnings() []document.Warning {
	var list []document.Warning
	for _, d := range c.diags.All() {
		list = append(list, document.Warning{Severity: d.Severity, Text: d.String()})
	}
	return list
}
