package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/progress"
	"github.com/sgtrace/sgtrace/request"
)

// load reads the inputs that the arguments name and applies the selection flags.
func (c *command) load(ctx *cli.Context, args []string) (*request.Set, error) {
	names, err := namedFiles(args)
	if err != nil {
		return nil, err
	}
	return c.loadFiles(ctx, names, loading{oneClock: true})
}

// namedFiles returns the files that the arguments name.
func namedFiles(args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, commandline.Usage("no input; give files, globs, directories, or - for standard input")
	}
	return inputs.Expand(args)
}

// loading says how files are read.
type loading struct {
	only     *inputs.Format // inputs of other formats are errors; nil is none
	oneClock bool           // put the hosts on one clock, where they have several
}

// loadFiles reads the named files, applies the selection flags and redacts.
func (c *command) loadFiles(ctx *cli.Context, names []string, how loading) (*request.Set, error) {
	set, err := c.readFiles(ctx, names, how)
	if err == nil {
		c.redactRequests(set)
	}
	return set, err
}

// readFiles reads the named files and applies the selection flags.
func (c *command) readFiles(ctx *cli.Context, names []string, how loading) (*request.Set, error) {
	sel, err := selection(ctx)
	if err != nil {
		return nil, err
	}
	c.read = append(c.read, names...)
	meter := progress.New(c.err, progress.IsTerminal(c.err), size(names))
	var files []inputs.Input
	for _, name := range names {
		files = append(files, inputs.Input{Name: name})
	}
	opt := inputs.Options{Stdin: c.in, Meter: meter, Requests: true, Only: how.only, KeepSecrets: ctx.Bool("keep-secrets")}
	in, err := inputs.Index(files, opt, &c.diags)
	meter.Done()
	if err != nil {
		return nil, err
	}
	if how.oneClock {
		in.OnOneClock()
	} else {
		in.AsRecorded()
	}
	set := in.Requests
	first, _, _ := set.Bounds()
	if err := sel.resolve(first); err != nil {
		return nil, err
	}
	there := choicesOf(set, sel)
	if err := set.Select(sel.Selection); err != nil {
		return nil, err
	}
	if !set.Any() {
		return nil, there.nothing(ctx, sel)
	}
	return set, nil
}

// size adds up the sizes of the named files; -1 is unknown.
func size(names []string) int64 {
	sum := int64(0)
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || !info.Mode().IsRegular() {
			return -1
		}
		sum += info.Size()
	}
	return sum
}
