package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// formatFlag is on every command that prints tables. more are words about other formats.
func formatFlag(more ...string) cli.Flag {
	return &cli.StringFlag{Name: "format", Value: string(table.FormatText), Usage: "print as `FORMAT`: text, markdown, csv, or json" + strings.Join(more, "")}
}

// format reads --format, which takes more formats besides those that every table has.
func format(ctx *cli.Context, more []table.Format) (table.Format, error) {
	f := table.Format(ctx.String("format"))
	if f == "md" {
		f = table.FormatMarkdown
	}
	switch {
	case slices.Contains(table.Formats, f), slices.Contains(more, f):
		return f, nil
	case f == table.FormatFolded:
		return "", commandline.Usage("--format folded is for 'sgtrace report --stacks'")
	}
	return "", commandline.OneOf("--format", string(f), "text", "markdown", "csv", "json")
}
