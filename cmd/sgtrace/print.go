package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// A printed says how a document is printed.
type printed struct {
	format table.Format
	table  string // the only table to print; "" is all
	sort   string // column to sort the main table by, descending with a leading -; "" is unsorted
	limit  int    // rows of the main table; 0 is all
}

// printing reads the flags that say how a document is printed. most is the default limit on the main
// table's rows in text and Markdown; 0 is all. formats are accepted in addition to the formats of every table.
func printing(ctx *cli.Context, most int, formats ...table.Format) (p printed, err error) {
	p.table, p.sort = ctx.String("table"), ctx.String("sort")
	if p.format, err = format(ctx, formats); err != nil {
		return p, err
	}
	if p.format == table.FormatText || p.format == table.FormatMarkdown {
		p.limit = most
	}
	if ctx.IsSet("limit") {
		if p.limit = ctx.Int("limit"); p.limit < 0 {
			return p, commandline.Usage("--limit %d: want 0 or more", p.limit)
		}
	}
	return p, nil
}

// arrange sorts and limits the main table.
func (p *printed) arrange(d *document.Document) error {
	main, err := d.MainTable()
	switch {
	case err != nil && (p.format == table.FormatCSV || p.format == table.FormatFolded || p.sort != ""):
		return commandline.AsUsage(err)
	case err != nil:
		return nil
	}
	if column, descending := strings.CutPrefix(p.sort, "-"); column != "" {
		if err := main.Sort(column, descending); err != nil {
			return commandline.AsUsage(err)
		}
	}
	if p.limit > 0 {
		for _, t := range d.Tables {
			if t == main || d.LimitAll {
				t.Limit(p.limit)
			}
		}
	}
	return nil
}

// giveScreen gives a command that reads no inputs the flags that say how text is shown.
func (c *command) giveScreen(cmd *cli.Command) {
	cmd.Flags = append(cmd.Flags, screen.Flags()...)
	cmd.Before = c.startScreen
}

// startScreen reads the flags that say how text is shown.
func (c *command) startScreen(ctx *cli.Context) (err error) {
	c.screen, err = screen.New(ctx, c.out, c.err, c.env)
	return err
}

// startZone reads --tz. CSV and JSON stay in UTC.
func (c *command) startZone(ctx *cli.Context) (err error) {
	if c.zone, err = commandline.Zone(ctx); err != nil {
		return err
	}
	words.SetZone(c.zone)
	switch table.Format(ctx.String("format")) {
	case table.FormatCSV, table.FormatJSON:
		words.SetZone(time.UTC)
	}
	return nil
}

// write prints a document. It returns the error of the document's gate, if it did not pass.
func (c *command) write(d *document.Document, how printed) error {
	if how.table != "" {
		if err := d.Choose(how.table); err != nil {
			return commandline.Usage("--table: %v", err)
		}
	}
	if err := how.arrange(d); err != nil {
		return err
	}
	d.NoteSample(&c.diags)
	d.Inputs = c.inputsRead()
	switch text := how.format == table.FormatText || how.format == table.FormatMarkdown; {
	case d.Warnings == nil:
		d.Warnings = c.warnings()
	case text && d.Text != nil && how.table == "":
		c.told = d.Warnings
	}
	if c.redact != nil {
		d.Redact(c.redact)
	}
	c.screen.Printing()
	if how.format != table.FormatText {
		return cmp.Or(d.Write(c.out, how.format, c.screen.Style), d.Failure)
	}
	return cmp.Or(c.show(func(w io.Writer) error { return d.Write(w, how.format, c.screen.Style) }), d.Failure)
}

// show writes text to the output, through a pager if there is one.
func (c *command) show(write func(io.Writer) error) error {
	if c.screen.Pager == "" {
		return write(c.out)
	}
	terminal := c.out
	if s, ok := terminal.(*redact.Writer); ok {
		terminal = s.W // the pager needs the terminal itself
	}
	return screen.PageThrough(c.screen.Pager, terminal, c.err, c.redacted(write))
}

// inputsRead returns the files that the command read, with their sizes, except unusable ones.
func (c *command) inputsRead() []document.Input {
	unread := map[string]bool{}
	for _, d := range c.diags.All() {
		if d.Message == trace.InputUnusable {
			unread[d.Pos.File] = true
		}
	}
	var list []document.Input
	for _, in := range c.read {
		if unread[inputs.MessageName(in.Name)] {
			continue
		}
		file := document.Input{Name: in.Name, Bytes: request.Unknown}
		if size, folder := in.Size(); size >= 0 && !folder {
			file.Bytes = size
		}
		list = append(list, file)
	}
	return list
}

// warnings returns the messages about the inputs.
func (c *command) warnings() []document.Warning {
	return order.Each(c.diags.All(), func(d trace.Diag) document.Warning { return document.Warning{Severity: d.Severity, Text: d.String()} })
}

// printDiags prints the problems of the inputs, and reports whether any of them makes the result
// incomplete.
func (c *command) printDiags() (lost bool) {
	told := func(code string) bool {
		return slices.ContainsFunc(c.told, func(w document.Warning) bool { return strings.Contains(w.Text, "["+code+"]") })
	}
	c.screen.PrintDiags(c.err, screen.Width(c.err, c.env), c.diags.All(), told)
	return c.diags.Worst() >= trace.DataLoss
}

// verifyFlag is on every command that writes a timeline.
func (c *command) verifyFlag() cli.Flag {
	return &cli.BoolFlag{Name: "verify", Destination: &c.verify, DisableDefaultText: true,
		Usage: "read the output back and compare it with what should have been written"}
}

// keepSecretsFlag is on every command that writes attributes.
func keepSecretsFlag() cli.Flag {
	return &cli.BoolFlag{Name: "keep-secrets", DisableDefaultText: true,
		Usage: "keep attributes that may hold prompts, credentials, or environments (default: leave them out and count them)"}
}

// writeVerified writes and verifies t, and prints that the file matches.
func (c *command) writeVerified(out *convert.Output, t *trace.Trace) (int64, error) {
	size, equal, err := out.WriteVerified(t)
	if err == nil {
		fmt.Fprintf(c.screen.Notices, "%s verified: %s match the model\n", screen.Printable(out.Name()), equal)
	}
	return size, err
}
