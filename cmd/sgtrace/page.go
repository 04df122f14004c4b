package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/page"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/build"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/selection"
	"github.com/sgtrace/sgtrace/convert/inputs"
)

// pageFlag is -o of commands that make a page instead of a text.
func pageFlag() cli.Flag {
	return &cli.StringFlag{Name: "o", Aliases: []string{"output"}, Usage: "write one HTML page, `FILE`.html"}
}

// writePage writes the page that a function makes to the file that -o names. args are the
// command, with what it takes besides selection and inputs.
func (c *command) writePage(ctx *cli.Context, files []inputs.Input, given, args []string, draw func(page.Made) (page.Page, error)) error {
	name := ctx.String("o")
	out, err := c.createFile(name, files)
	if err != nil {
		return err
	}
	defer out.Output.Abandon()
	command := c.commandLine(ctx, append(args, "-o", c.redactedInput(name)), given)
	drawn, err := draw(page.Made{Version: build.Version(), Command: command, Time: c.now()})
	if err != nil {
		return err
	}
	c.screen.Doing("writing " + name)
	size, err := out.WriteFunc(func(w io.Writer) error { return page.Write(w, drawn) })
	if err == nil {
		fmt.Fprintf(c.screen.Notices, "%s: %s\n", printable(name), bytesText(size))
	}
	return err
}

// commandLine is a command with the selection and inputs as they were given, ready to be
// pasted into a shell.
func (c *command) commandLine(ctx *cli.Context, args, given []string) string {
	return words.QuoteShell(slices.Concat([]string{"sgtrace"}, args, c.exclusionArgs(ctx), selection.Args(ctx), given))
}

// now is the time that a page tells. A build that must be the same every time sets it by
// $SOURCE_DATE_EPOCH.
func (c *command) now() time.Time {
	if s, err := strconv.ParseInt(c.env("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(s, 0)
	}
	return time.Now()
}

// given are inputs as they were given, for command lines.
func (c *command) given(ctx *cli.Context, args []string) []string {
	var list []string
	for _, arg := range shortInputs(args, ctx.StringSlice("exclude")) {
		list = append(list, c.redactedInput(arg))
	}
	return list
}
