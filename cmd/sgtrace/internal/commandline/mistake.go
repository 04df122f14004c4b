package commandline

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/internal/similar"
)

// UsageError is an error of the command line.
type UsageError struct{ error }

// Usage returns a [UsageError] with a message.
func Usage(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// AsUsage turns an error into a [UsageError].
func AsUsage(err error) error { return UsageError{err} }

// OneOf returns the error that the value of a flag is not one of the choices, with the most similar one.
func OneOf(flag, value string, choices ...string) error {
	last := len(choices) - 1
	return Usage("%s %q%s want %s, or %s", flag, value, cmp.Or(similar.Hint(value, choices), ":"), strings.Join(choices[:last], ", "), choices[last])
}

// commandNames returns the names and aliases of commands.
func commandNames(commands []*cli.Command) []string {
	var names []string
	for _, c := range commands {
		names = append(names, c.Names()...)
	}
	return names
}

// helpTopics is the key of the help topics in an app's metadata.
const helpTopics = "topics"

// UnknownCommand returns the error about a word that is not a command, with advice.
func UnknownCommand(app *cli.App, name string) error {
	if _, err := os.Stat(name); err == nil {
		return Usage("%s is a file, but a command comes first: 'sgtrace report %[1]s' says what stands out in it", name)
	}
	if topics, ok := app.Metadata[helpTopics].(func() []Topic); ok && slices.ContainsFunc(topics(), func(t Topic) bool { return t.Name == name }) {
		return Usage("unknown command %q; did you mean help %[1]s? ('sgtrace help' lists all)", name)
	}
	hint := similar.Hint(name, append(commandNames(app.Commands), "--version"))
	return Usage("unknown command %q%s ('sgtrace help' lists them)", name, hint)
}

// unknownBelow returns the error about a word that is not a subcommand of above.
func unknownBelow(above string, commands []*cli.Command, word string) error {
	return Usage("'%s' has no command %q%s ('%[1]s --help' lists its commands)", above, word, similar.Hint(word, commandNames(commands)))
}

// UnknownPage returns an error about the first unknown word of a command that help was asked for.
func UnknownPage(app *cli.App, words []string) error {
	commands, known := app.Commands, "sgtrace"
	for _, word := range words {
		c := find(commands, word)
		switch {
		case c != nil:
			commands, known = c.Subcommands, c.HelpName
		case known == "sgtrace":
			return UnknownCommand(app, word)
		default:
			return unknownBelow(known, commands, word)
		}
	}
	return nil
}

// MisplacedCommand finds mistakes about commands that the library would report as mistakes about flags: an
// unknown word in the place of a command, and a command's flag before the command.
func MisplacedCommand(app *cli.App, args []string) error {
	commands, above := app.Commands, app.Name
	for _, arg := range args[min(1, len(args)):] {
		name, isFlag := strings.CutPrefix(arg, "-")
		name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
		switch sub := find(commands, arg); {
		case arg == "--":
			return nil
		case isFlag && flagNamed(app.Flags, name) == nil && anyHasFlag(commands, name):
			return Usage("flags of a command come after it: %s COMMAND %s", above, Dashed(name))
		case isFlag:
		case sub == nil && above == app.Name:
			return UnknownCommand(app, arg)
		case sub == nil:
			return unknownBelow(above, commands, arg)
		case len(sub.Subcommands) == 0:
			return nil
		default:
			commands, above = sub.Subcommands, above+" "+sub.Name
		}
	}
	return nil
}

// anyHasFlag reports whether one of the commands, or a subcommand, has the flag.
func anyHasFlag(commands []*cli.Command, name string) bool {
	return slices.ContainsFunc(commands, func(c *cli.Command) bool {
		return flagNamed(c.Flags, name) != nil || anyHasFlag(c.Subcommands, name)
	})
}

// AsksForHelp reports whether a command line asks for help, and returns the words of the command that it asks about.
func AsksForHelp(app *cli.App, args []string) (words []string, ok bool) {
	commands := app.Commands
	for _, arg := range args[min(1, len(args)):] {
		switch sub := find(commands, arg); {
		case arg == "--":
			return nil, false
		case arg == "--help" || arg == "-help" || arg == "-h":
			return words, true
		case sub != nil:
			words, commands = append(words, sub.Name), sub.Subcommands
		case !strings.HasPrefix(arg, "-"):
			commands = nil
		}
	}
	return nil, false
}

// Package flag's messages about values. They write flags with one dash.
var (
	unknownFlag = regexp.MustCompile(`^flag provided but not defined: -+(.*)$`)
	noValue     = regexp.MustCompile(`^flag needs an argument: -+(.*)$`)
	badValue    = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([^ ]*): `)
)

// wrongFlag completes package flag's message about a wrong flag, which may be a flag of another command.
func wrongFlag(ctx *cli.Context, all func() *cli.App, err error) error {
	text, flags := err.Error(), ctx.Command.Flags
	help := fmt.Sprintf(" ('%s --help' lists all flags)", ctx.Command.HelpName)
	if m := unknownFlag.FindStringSubmatch(text); m != nil {
		return Usage("no flag %s%s%s", Dashed(m[1]), unknownFlagHint(ctx, all().Commands, m[1]), help)
	}
	if m := noValue.FindStringSubmatch(text); m != nil {
		return Usage("%s needs a value: %s%s", Dashed(m[1]), purpose(flags, m[1]), help)
	}
	if m := badValue.FindStringSubmatch(text); m != nil {
		return Usage("%s %s: want %s%s", Dashed(m[2]), m[1], wanted(flags, m[2]), help)
	}
	return UsageError{err}
}

// Dashed returns a flag with its dashes.
func Dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// unknownFlagHint says which other commands have the flag, or else which flag may be meant.
func unknownFlagHint(ctx *cli.Context, all []*cli.Command, name string) string {
	if with := commandsWith(all, ctx.App.Name, name); with != nil {
		return " here; it is a flag of " + strings.Join(with, ", ")
	}
	if flagNamed(ctx.App.Flags, name) != nil {
		return " here; it comes before all else: " + ctx.App.Name + " " + Dashed(name)
	}
	names := []string{"help"}
	for _, f := range ctx.Command.Flags {
		names = append(names, f.Names()...)
	}
	if means, ok := meanings[name]; ok && flagNamed(ctx.Command.Flags, strings.Fields(means)[0]) != nil {
		return "; did you mean " + Dashed(means) + "?"
	}
	if best := similar.Best(name, names); best != "" {
		return "; did you mean " + Dashed(best) + "?"
	}
	return ""
}

// meanings maps other programs' flag names to our flags, with a value where needed.
var meanings = map[string]string{
	"json": "format json", "csv": "format csv", "markdown": "format markdown", "md": "format markdown", "html": "output report.html",
	"since": "from", "start": "from", "begin": "from", "until": "to", "end": "to", "file": "output", "top": "limit", "n": "limit", "head": "limit",
	"timezone": "tz", "order-by": "sort", "silent": "quiet", "q": "quiet", "ignore": "exclude", "threshold": "fail-if",
}

// commandsWith returns the full names of the commands that have a flag.
func commandsWith(commands []*cli.Command, above, flag string) (with []string) {
	for _, c := range commands {
		if flagNamed(c.Flags, flag) != nil {
			with = append(with, "'"+above+" "+c.Name+"'")
		}
		with = append(with, commandsWith(c.Subcommands, above+" "+c.Name, flag)...)
	}
	return with
}

func flagNamed(flags []cli.Flag, name string) cli.Flag {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return nil
	}
	return flags[i]
}

// purpose returns the usage of a flag.
func purpose(flags []cli.Flag, name string) string {
	f, ok := flagNamed(flags, name).(cli.DocGenerationFlag)
	if !ok {
		return "see the help"
	}
	return strings.ReplaceAll(f.GetUsage(), "`", "")
}

// wanted describes the values that a flag takes.
func wanted(flags []cli.Flag, name string) string {
	switch flagNamed(flags, name).(type) {
	case *cli.IntFlag, *cli.Uint64Flag:
		return "a whole number"
	case *cli.Float64Flag:
		return "a number such as 0.1"
	case *cli.DurationFlag:
		return "a duration such as 500ms, 10s or 2m"
	case *cli.BoolFlag:
		return "no value, or true or false"
	}
	return purpose(flags, name)
}
