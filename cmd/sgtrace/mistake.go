package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/internal/similar"
)

// usageError is an error of the command line.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// didYouMean asks about the choice that is nearest to word; it is empty if none is.
func didYouMean(word string, choices []string) string {
	if best := similar.Best(word, choices); best != "" {
		return "; did you mean " + best + "?"
	}
	return ""
}

// commandNames returns the names that people use for commands.
func commandNames(commands []*cli.Command) []string {
	var names []string
	for _, c := range commands {
		names = append(names, c.Names()...)
	}
	return names
}

// unknownCommand says what to do about a word that is no command.
func unknownCommand(app *cli.App, name string) error {
	if _, err := os.Stat(name); err == nil {
		return usage("%s is a file, and a command comes first: 'sgtrace report %[1]s' says what stands out in it", name)
	}
	return usage("unknown command %q%s ('sgtrace help' lists them)", name, didYouMean(name, commandNames(app.Commands)))
}

// unknownPage says which of the words of a command that help was asked for is unknown.
func unknownPage(app *cli.App, words []string) error {
	commands, known := app.Commands, "sgtrace"
	for _, word := range words {
		c := find(commands, word)
		switch {
		case c != nil:
			commands, known = c.Subcommands, c.HelpName
		case known == "sgtrace":
			return unknownCommand(app, word)
		default:
			return usage("'%s' has no command %q%s ('%[1]s --help' has its flags)", known, word, didYouMean(word, commandNames(commands)))
		}
	}
	return nil
}

// misplacedCommand tells whether the first word of a command line that is no flag is
// no command: flags behind it would otherwise be called unknown.
func misplacedCommand(app *cli.App, args []string) error {
	for _, arg := range args[min(1, len(args)):] {
		switch {
		case arg == "--":
			return nil
		case strings.HasPrefix(arg, "-"):
		case arg == "help" || arg == "h" || find(app.Commands, arg) != nil:
			return nil
		default:
			return unknownCommand(app, arg)
		}
	}
	return nil
}

// What package flag says about values. Flags have one dash there.
var (
	unknownFlag = regexp.MustCompile(`^flag provided but not defined: -+(.*)$`)
	noValue     = regexp.MustCompile(`^flag needs an argument: -+(.*)$`)
	badValue    = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([^ ]*): `)
)

// onUsageError completes what package flag says about a wrong flag.
func onUsageError(ctx *cli.Context, err error, _ bool) error {
	text, flags := err.Error(), ctx.Command.Flags
	help := fmt.Sprintf(" ('%s --help' lists all flags)", ctx.Command.HelpName)
	if m := unknownFlag.FindStringSubmatch(text); m != nil {
		return usage("no flag %s%s%s", dashed(m[1]), unknownFlagHint(ctx, m[1]), help)
	}
	if m := noValue.FindStringSubmatch(text); m != nil {
		return usage("%s needs a value: %s%s", dashed(m[1]), purpose(flags, m[1]), help)
	}
	if m := badValue.FindStringSubmatch(text); m != nil {
		return usage("%s %s: want %s%s", dashed(m[2]), m[1], wanted(flags, m[2]), help)
	}
	return usageError{err}
}

// dashed is a flag as people write it.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// unknownFlagHint says which other commands have the flag, else which flag may be meant.
func unknownFlagHint(ctx *cli.Context, name string) string {
	var with []string
	for _, c := range ctx.App.Commands {
		if flagNamed(c.Flags, name) != nil {
			with = append(with, "'sgtrace "+c.Name+"'")
		}
	}
	if with != nil {
		return " here; that is one of " + strings.Join(with, ", ")
	}
	names := []string{"help"}
	for _, f := range slices.Concat(ctx.Command.Flags, ctx.App.Flags) {
		names = append(names, f.Names()...)
	}
	if best := similar.Best(name, names); best != "" {
		return "; did you mean " + dashed(best) + "?"
	}
	return ""
}

func flagNamed(flags []cli.Flag, name string) cli.Flag {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return nil
	}
	return flags[i]
}

// purpose is what the help says about a flag.
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
	case *cli.DurationFlag:
		return "a duration such as 500ms, 10s or 2m"
	case *cli.BoolFlag:
		return "no value, or true or false"
	}
	return "what the help says"
}
