package main

import (
	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/selection"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/request"
)

// load reads the inputs that the arguments name and applies the selection flags.
func (c *command) load(ctx *cli.Context, args []string) (*request.Set, error) {
	files, err := findInputs(ctx, args)
	if err != nil {
		return nil, err
	}
	return c.loadFiles(ctx, files, loading{oneClock: true})
}

// loading says how files are read.
type loading struct {
	only     *inputs.Format // inputs of other formats are errors; nil is none
	oneClock bool           // put the hosts on one clock, where they have several
	byID     request.IDTest // of the requests that are needed; nil is all that are selected
}

// loadFiles reads files, applies the selection flags and redacts.
func (c *command) loadFiles(ctx *cli.Context, files []inputs.Input, how loading) (*request.Set, error) {
	set, err := c.readFiles(ctx, files, how)
	if err == nil {
		c.redactRequests(set)
	}
	return set, err
}

// readFiles reads files and applies the selection flags.
func (c *command) readFiles(ctx *cli.Context, files []inputs.Input, how loading) (*request.Set, error) {
	sel, err := selection.Read(ctx)
	if err != nil {
		return nil, err
	}
	meter := c.screen.Reading(size(files))
	opt := inputs.Options{Stdin: c.in, Meter: meter, Requests: true, Only: how.only, KeepSecrets: ctx.Bool("keep-secrets"),
		Pick: pick(sel, how.byID, !how.oneClock)}
	in, err := inputs.Load(files, opt, &c.diags)
	c.screen.Doing("analyzing")
	if err != nil {
		return nil, err
	}
	c.read = append(c.read, in.Taken...)
	if how.oneClock {
		in.OnOneClock()
	} else {
		in.AsRecorded()
	}
	set := in.Requests
	first, last, _ := set.Bounds()
	c.first, c.last = first, last
	if err := sel.Resolve(first, last); err != nil {
		return nil, err
	}
	there := selection.ChoicesOf(set, sel)
	if err := set.Select(sel.Selection); err != nil {
		return nil, err
	}
	if !set.Any() {
		return nil, there.Nothing(ctx, sel)
	}
	return set, nil
}

// size adds up the sizes of files; -1 is unknown.
func size(files []inputs.Input) int64 {
	sum := int64(0)
	for _, in := range files {
		size, folder := in.Size()
		if size < 0 || folder {
			return -1
		}
		sum += size
	}
	return sum
}
