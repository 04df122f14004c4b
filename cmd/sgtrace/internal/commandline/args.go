package commandline

import (
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"
)

// Reorder moves flags before positional arguments, since urfave/cli v2 silently takes everything after the
// first positional argument as positional: "convert FILE -o OUT" would have no output. Arguments after "--"
// stay. --kernels with a value means --classes, not the report of that name.
func Reorder(app *cli.App, args []string) []string {
	commands, takesValue := app.Commands, valueFlags(app.Flags)
	var head, flags, rest []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case i == 0:
			head = append(head, arg)
		case arg == "--":
			return append(append(append(head, flags...), "--"), append(rest, args[i+1:]...)...)
		case strings.HasPrefix(arg, "--kernels="):
			flags = append(flags, "--classes", strings.TrimPrefix(arg, "--kernels="))
		case arg == "--kernels" && i+1 < len(args) && args[i+1] == "hta":
			i++
			flags = append(flags, "--classes", args[i])
		case len(arg) > 1 && arg[0] == '-':
			flags = append(flags, arg)
			name := strings.TrimLeft(arg, "-")
			if !takesValue[name] {
				continue
			}
			if usual, ok := optionalValues[name]; ok && (i+1 == len(args) || !usual.like.MatchString(args[i+1])) {
				flags = append(flags, usual.value)
				continue
			}
			if i++; i == len(args) {
				return append(head, flags...) // otherwise, an input would become its value
			}
			flags = append(flags, args[i])
		default:
			if sub := find(commands, arg); sub != nil && len(rest) == 0 {
				head = append(append(head, flags...), arg)
				flags = nil
				commands, takesValue = sub.Subcommands, valueFlags(sub.Flags)
				continue
			}
			rest = append(rest, arg)
			commands = nil
		}
	}
	return append(append(head, flags...), rest...)
}

// optionalValues are the flags whose value is optional: their default, and what the next argument looks
// like if it is the value.
var optionalValues = map[string]struct {
	value string
	like  *regexp.Regexp
}{
	"tail": {"p99", regexp.MustCompile(`^[pP]?[0-9.]+$`)},
}

func find(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// valueFlags returns the names of the flags that take the next argument.
func valueFlags(flags []cli.Flag) map[string]bool {
	m := map[string]bool{}
	for _, f := range flags {
		if v, ok := f.(cli.DocGenerationFlag); ok && v.TakesValue() {
			for _, name := range f.Names() {
				m[name] = true
			}
		}
	}
	return m
}

// Given returns some flags of a command as given.
func Given(ctx *cli.Context, names ...string) (args []string) {
	for _, name := range names {
		switch value := ctx.Value(name).(type) {
		case bool:
			if value {
				args = append(args, "--"+name)
			}
		case cli.StringSlice:
			for _, v := range value.Value() {
				args = append(args, "--"+name, v)
			}
		case string:
			if ctx.IsSet(name) {
				args = append(args, "--"+name, value)
			}
		}
	}
	return args
}
