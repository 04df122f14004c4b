package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

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
	return "", commandline.Usage("--format %q: want text, markdown, csv, or json", f)
}

// style fits text to the terminal, if the output is one.
func (c *command) style() table.Style {
	s := table.Style{ASCII: !utf8Locale(c.env)}
	if f, ok := c.out.(interface{ Fd() uintptr }); ok && term.IsTerminal(int(f.Fd())) {
		s.Width, _, _ = term.GetSize(int(f.Fd()))
	}
	return s
}

// utf8Locale reports whether the environment says that text is UTF-8. Without a
// word it is taken for that: containers have no locale and terminals that can.
func utf8Locale(env func(string) string) bool {
	for _, name := range [...]string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := env(name); v != "" {
			return v != "C" && v != "POSIX" && !strings.Contains(v, "8859")
		}
	}
	return true
}
