// Package screen decides how a run shows its text: how wide, in which characters and
// colors, through which pager, and with how many notices. It decides from the flags of
// [Flags], the environment, and whether the output is a terminal. It knows neither the
// commands nor what they print.
package screen

import (
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// Category heads the flags of [Flags] in the help.
const Category = "Screen:"

// Flags say how text is shown.
func Flags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "width", Category: Category, Usage: "fit tables into `N` characters by leaving out columns; 0 is no limit", DefaultText: "the terminal's, no limit elsewhere"},
		&cli.StringFlag{Name: "color", Category: Category, Usage: "color severities and changes: auto, always, or never (`WHEN`); auto is on terminals, unless NO_COLOR is set", Value: "auto"},
		&cli.BoolFlag{Name: "no-pager", Category: Category, Usage: "don't show text on a terminal with $SGTRACE_PAGER, $PAGER, or less -FRX", DisableDefaultText: true},
		&cli.BoolFlag{Name: "quiet", Category: Category, Usage: "print no notices and no progress; losses and errors stay", DisableDefaultText: true},
	}
}

// A Screen is how a run shows its text. The zero Screen shows it plainly.
type Screen struct {
	Style    table.Style // of text that goes to the output
	ErrStyle table.Style // of messages
	Pager    string      // the shell command that shows long text; "" is none
	Quiet    bool        // print no messages but losses and errors
	Notices  io.Writer   // where messages go that nobody needs

	activity *activity
	toFile   bool // text goes to a file
}

// New reads the flags of [Flags]. out and errOut are where text and messages go, and env
// looks up variables of the environment. Its errors are of type [commandline.UsageError].
func New(ctx *cli.Context, out, errOut io.Writer, env func(name string) string) (Screen, error) {
	s := Screen{Style: table.Style{ASCII: !utf8Locale(env), Width: Width(out, env)}, Quiet: ctx.Bool("quiet"), toFile: isFile(out)}
	s.activity = &activity{w: errOut, isTerminal: IsTerminal(errOut) && !s.Quiet, began: time.Now()}
	s.Notices = s.activity
	if s.Quiet {
		s.Notices = io.Discard
	}
	if ctx.IsSet("width") {
		if s.Style.Width = ctx.Int("width"); s.Style.Width < 0 {
			return s, commandline.Usage("--width %d: want 0 or more", s.Style.Width)
		}
	}
	if !ctx.Bool("no-pager") {
		s.Pager = PagerFor(out, env)
	}
	switch color := ctx.String("color"); color {
	case "always":
		s.Style.Color, s.ErrStyle.Color = true, true
	case "never":
	case "auto":
		if env("NO_COLOR") == "" && env("TERM") != "dumb" {
			s.Style.Color, s.ErrStyle.Color = IsTerminal(out), IsTerminal(errOut)
		}
	default:
		return s, commandline.OneOf("--color", color, "auto", "always", "never")
	}
	return s, nil
}

// Width returns how many characters fit on a line of the terminal w, which $COLUMNS may
// overrule; 0 if w is not a terminal.
func Width(w io.Writer, env func(name string) string) int {
	if !IsTerminal(w) {
		return 0
	}
	if width, err := strconv.Atoi(env("COLUMNS")); err == nil && width > 0 {
		return width
	}
	return Columns(w)
}

// utf8Locale reports whether the environment says that text is UTF-8. If it says nothing,
// text is UTF-8: containers set no locale, and terminals can show it.
func utf8Locale(env func(name string) string) bool {
	for _, name := range [...]string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := env(name); v != "" {
			return v != "C" && v != "POSIX" && !strings.Contains(v, "8859")
		}
	}
	return true
}
