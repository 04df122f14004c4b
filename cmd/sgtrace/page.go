package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/page"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// pageFlags are the flags of the report as a page to look at.
func pageFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "o", Usage: "write everything as one page to look at, `FILE`.html, that needs no network"},
	}
}

// reportPage writes the page of inputs of any kind.
func (c *command) reportPage(ctx *cli.Context) error {
	name := ctx.String("o")
	if ext := strings.ToLower(filepath.Ext(name)); ext != ".html" && ext != ".htm" {
		return commandline.Usage("-o %s: want a name that ends in .html; tables go to standard output, with --format csv or json for programs", name)
	}
	for _, other := range append([]string{"format"}, otherReports...) {
		if ctx.IsSet(other) {
			return commandline.Usage("--%s has no meaning with -o, which writes a page of everything", other)
		}
	}
	files, err := findInputs(ctx, ctx.Args().Slice())
	if err != nil {
		return err
	}
	out, err := c.createFile(name, files)
	if err != nil {
		return err
	}
	defer out.Abandon()
	e, sel, err := c.readEvidence(ctx, everything())
	if err != nil {
		return err
	}
	defer e.Close()
	drawn, err := page.Overview(c.overview(ctx, e, sel))
	if err != nil {
		return err
	}
	size, err := out.WriteFunc(func(w io.Writer) error { return page.Write(w, drawn) })
	if err == nil {
		fmt.Fprintf(c.err, "%s: %s\n", printable(name), bytesText(size))
	}
	return err
}
