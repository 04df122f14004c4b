package main

import (
	"io"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/internal/progress"
)

// screenCategory heads them in the help.
const screenCategory = "Screen:"

// screenFlags say how text is shown. They are on all commands that read inputs.
func screenFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "width", Category: screenCategory, Usage: "fit tables into `N` characters by leaving out columns; 0 is no limit", DefaultText: "the terminal's, no limit elsewhere"},
		&cli.StringFlag{Name: "color", Category: screenCategory, Usage: "color severities and changes: auto, always, or never (`WHEN`); auto is on terminals, unless NO_COLOR is set", Value: "auto"},
		&cli.BoolFlag{Name: "no-pager", Category: screenCategory, Usage: "don't show text on a terminal with $SGTRACE_PAGER, $PAGER, or less -FRX", DisableDefaultText: true},
		&cli.BoolFlag{Name: "quiet", Category: screenCategory, Usage: "print no notices and no progress; losses and errors stay", DisableDefaultText: true},
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
	c.quiet = ctx.Bool("quiet")
	c.paged = !ctx.Bool("no-pager") && progress.IsTerminal(c.out) && c.env("TERM") != "dumb"
	switch color := ctx.String("color"); color {
	case "always":
		c.style.Color, c.errStyle.Color = true, true
	case "never":
	case "auto":
		if c.env("NO_COLOR") == "" && c.env("TERM") != "dumb" {
			c.style.Color, c.errStyle.Color = progress.IsTerminal(c.out), progress.IsTerminal(c.err)
		}
	default:
		return commandline.Usage("--color %q: want auto, always, or never", color)
	}
	return nil
}

// talk is where messages go that nobody needs.
func (c *command) talk() io.Writer {
	if c.quiet {
		return io.Discard
	}
	return c.err
}

// meter shows how far reading inputs of some size is.
func (c *command) meter(size int64) *progress.Meter {
	return progress.New(c.talk(), progress.IsTerminal(c.talk()), size)
}

// screenWidth returns the width of the terminal w, which $COLUMNS may overrule; 0 if w is
// none.
func screenWidth(w io.Writer, env func(string) string) int {
	if !progress.IsTerminal(w) {
		return 0
	}
	if width, err := strconv.Atoi(env("COLUMNS")); err == nil && width > 0 {
		return width
	}
	return progress.Columns(w)
}
