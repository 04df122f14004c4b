package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert/inputs"
)

// forReaders calls what for every command that reads what people have recorded.
func forReaders(commands []*cli.Command, what func(cmd *cli.Command)) {
	for _, cmd := range commands {
		switch {
		case cmd.Name == "dataset": // about what was read before
		case len(cmd.Subcommands) > 0:
			forReaders(cmd.Subcommands, what)
		case !slices.Contains([]string{"sql", "open", "demo", "version", "help"}, cmd.Name):
			what(cmd)
		}
	}
}

// runBefore adds what a command does before all else, after what it does already.
func runBefore(cmd *cli.Command, f cli.BeforeFunc) {
	before := cmd.Before
	cmd.Before = func(ctx *cli.Context) error {
		if before != nil {
			if err := before(ctx); err != nil {
				return err
			}
		}
		return f(ctx)
	}
}

// allowExclusion gives commands that read inputs the flag --exclude.
func allowExclusion(commands []*cli.Command) {
	forReaders(commands, func(cmd *cli.Command) {
		cmd.Flags = append(cmd.Flags, &cli.StringSliceFlag{Name: "exclude",
			Usage: "skip files and folders whose name matches `GLOB`, such as '*.json' or 'run2/*'"})
	})
}

// findInputs finds the inputs that arguments name, but for those of --exclude.
func findInputs(ctx *cli.Context, args []string) ([]inputs.Input, error) {
	if len(args) == 0 {
		return nil, commandline.Usage("no input; give OTLP dumps, PyTorch traces, or Nsight Systems exports: files, folders, globs, or - for standard input")
	}
	return inputs.Find(args, ctx.StringSlice("exclude")...)
}

// readsStdin are the commands that take standard input where no input is named, and how many
// arguments come before inputs.
var readsStdin = map[string]int{"report": 0, "requests": 0, "request": 1, "live": 0, "inspect": 0, "extract": 0}

// withStdin adds the name of standard input to a command line that names no input, if somebody
// gave one: a file or a pipe with something in it, not a terminal.
func (c *command) withStdin(app *cli.App, args []string) []string {
	name, given := commandline.Positionals(app, args)
	before, reads := readsStdin[name]
	f, ok := c.in.(*os.File)
	if !ok || !reads || given != before {
		return args
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() && info.Mode()&os.ModeNamedPipe == 0 {
		return args
	}
	say := sync.OnceFunc(func() {
		if !slices.Contains(args, "--quiet") {
			fmt.Fprintf(c.err, "reading standard input, as 'sgtrace %s' names no input\n", name)
		}
	})
	late := time.AfterFunc(time.Second, say) // a pipe that nobody writes to is waited for
	in := bufio.NewReader(f)
	_, err := in.Peek(1)
	late.Stop()
	if c.in = in; err != nil {
		return args
	}
	say()
	return append(slices.Clone(args), inputs.Stdin)
}

// exclusionArgs are the flags --exclude as they were given.
func (c *command) exclusionArgs(ctx *cli.Context) (args []string) {
	for _, glob := range ctx.StringSlice("exclude") {
		args = append(args, "--exclude", c.redactedInput(glob))
	}
	return args
}

// shortInputs names a directory instead of many files if these are all that it holds:
// what a shell made of a glob fills the screen.
func shortInputs(args, exclude []string) []string {
	const few = 3
	if len(args) <= few {
		return args
	}
	dir := filepath.Dir(args[0])
	if strings.HasPrefix(args[0], "-") || slices.ContainsFunc(args, func(arg string) bool { return filepath.Dir(arg) != dir }) {
		return args
	}
	all, err := inputs.Find([]string{dir}, exclude...)
	given, err2 := inputs.Find(args, exclude...)
	if err != nil || err2 != nil || !slices.Equal(inputs.Names(all), inputs.Names(given)) {
		return args
	}
	return []string{dir}
}
