package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/dataset/tasks"
	"github.com/sgtrace/sgtrace/request"
	"github.com/sgtrace/sgtrace/trace"
	"github.com/sgtrace/sgtrace/trace/redact"
)

// minKey is the minimum size of a key in bytes; a shorter one could be guessed.
const minKey = 16

// startRedaction redacts everything that is printed from now on, if --redact is given.
func (c *command) startRedaction(ctx *cli.Context) error {
	if !ctx.Bool("redact") && ctx.String("redact-key") == "" {
		return nil
	}
	key, notice, err := c.redactionKey(ctx)
	if err != nil {
		return err
	}
	c.redact = redact.New(key)
	for _, flag := range [...]string{"o", "clock-report", "html", "redact-key"} {
		if name := ctx.String(flag); name != "" && name != "-" {
			c.redact.Keep(name)
			c.redact.Keep(tasks.KeyFile(name))
		}
	}
	args := ctx.Args().Slice()
	for _, flag := range [...]string{"torch", "nsys", "otel"} {
		args = append(args, ctx.StringSlice(flag)...)
	}
	for _, arg := range args {
		inputs, err := inputs.Find([]string{arg}, ctx.StringSlice("exclude")...)
		if err != nil {
			continue // the command will report it
		}
		for _, in := range inputs {
			c.redact.LearnFile(in.Name)
			if in.Search != nil {
				c.redact.LearnFile(in.Search.Name)
			}
		}
	}
	c.out, c.err = &redact.Writer{W: c.out, By: c.redact}, &redact.Writer{W: c.err, By: c.redact}
	if notice != "" {
		fmt.Fprintln(c.err, notice)
	}
	return nil
}

// redactionKey returns the key for --redact, nil for a random one, and a notice about it.
func (c *command) redactionKey(ctx *cli.Context) (key []byte, notice string, err error) {
	name, output := ctx.String("redact-key"), ctx.String("output")
	if name == "" && ctx.Command.Name == "extract" && output != "" {
		key, err = tasks.Key(output)
		return key, "names are redacted with the key in " + tasks.KeyFile(output) + ", which tells who is who: keep it, and don't share it", err
	}
	if name == "" {
		return nil, "names are redacted with a key for this run only; --redact-key FILE gives the same pseudonyms in every run", nil
	}
	if key, err = os.ReadFile(name); err != nil {
		return nil, "", commandline.Usage("--redact-key: %v; 'head -c 32 /dev/urandom > FILE' makes one", err)
	}
	if len(key) < minKey {
		return nil, "", commandline.Usage("--redact-key %s: a key of %d bytes is easy to guess; want %d or more", name, len(key), minKey)
	}
	c.beside = append(c.beside, name)
	return key, "", nil
}

// The functions below do nothing without --redact.

// redactRequests redacts the selected requests.
func (c *command) redactRequests(set *request.Set) {
	if c.redact != nil {
		set.Learn(c.redact)
		set.Syms.Rename(c.redact.Scrub)
		set.Redact(c.redact)
	}
}

// redactEvidence redacts what was selected for a report.
func (c *command) redactEvidence(e *convert.ReportData) {
	if c.redact != nil {
		e.Redact(c.redact)
	}
}

// redactTrace redacts the rest of a trace that was drawn from redacted tables.
func (c *command) redactTrace(t *trace.Trace) {
	if c.redact != nil {
		convert.RedactTrace(t, c.redact)
	}
}

// redactedInput returns the redacted name of an input argument: a directory or pattern reveals as much as
// the name of a file.
func (c *command) redactedInput(arg string) string {
	if c.redact == nil {
		return arg
	}
	if info, err := os.Stat(arg); err == nil && info.IsDir() || strings.ContainsAny(arg, "*?[") {
		return c.redact.Path(arg)
	}
	return c.redact.Scrub(arg)
}

// redacted returns a function that redacts the lines of text that write writes.
func (c *command) redacted(write func(w io.Writer) error) func(w io.Writer) error {
	if c.redact == nil {
		return write
	}
	return func(w io.Writer) error {
		s := &redact.Writer{W: w, By: c.redact}
		if err := write(s); err != nil {
			return err
		}
		return s.Flush()
	}
}

// flushScrubbed writes the last, incomplete line of each output.
func (c *command) flushScrubbed() {
	for _, w := range [...]io.Writer{c.out, c.err} {
		if s, ok := w.(*redact.Writer); ok {
			s.Flush()
		}
	}
}
