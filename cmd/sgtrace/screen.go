package main

import (
	"io"
	"strconv"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// screenFlags say how text is shown. They are on all commands that read inputs.
func screenFlags() []cli.Flag {
	const category = "Screen:"
	return []cli.Flag{
		&cli.IntFlag{Name: "width", Category: category, Usage: "fit tables into `N` characters by leaving out columns; 0 is no limit", DefaultText: "the terminal's, no limit elsewhere"},
	}
}

// allowScreen gives commands that read inputs the flags about the screen.
func (c *command) allowScreen(commands []*cli.Command) {
	forReaders(commands, func(cmd *cli.Command) {
		cmd.Flags = append(cmd.Flags, screenFlags()...)
		before := cmd.Before
		cmd.Before = func(ctx *cli.Context) error {
			if before != nil {
				if err := before(ctx); err != nil {
					return err
				}
			}
			return c.startScreen(ctx)
		}
	})
}

// startScreen finds out how text is shown.
func (c *command) startScreen(ctx *cli.Context) error {
	c.style.ASCII = !utf8Locale(c.env)
	c.style.Width = screenWidth(c.out, c.env)
	if ctx.IsSet("width") {
		if c.style.Width = ctx.Int("width"); c.style.Width < 0 {
			return commandline.Usage("--width %d: want 0 or more", c.style.Width)
		}
	}
	return nil
}

// screenWidth returns the width of the terminal w, which $COLUMNS may overrule; 0 if w is
// none.
func screenWidth(w io.Writer, env func(string) string) int {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if width, err := strconv.Atoi(env("COLUMNS")); err == nil && width > 0 {
		return width
	}
	width, _, _ := term.GetSize(int(f.Fd()))
	return width
}
