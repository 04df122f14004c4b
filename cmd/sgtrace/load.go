package main

import (
	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/request"
)

// inputs returns the files that the arguments name.
func inputs(ctx *cli.Context) ([]string, error) {
	if !ctx.Args().Present() {
		return nil, usage("%s: no input; give files, globs, directories or - for standard input", ctx.Command.FullName())
	}
	return convert.Expand(ctx.Args().Slice())
}

// load reads the inputs and applies the selection flags.
func (c *command) load(ctx *cli.Context, names []string) (*request.Set, error) {
	sel, err := selection(ctx)
	if err != nil {
		return nil, err
	}
	set, err := convert.Load(names, c.in, nil, &c.diags)
	if err != nil {
		return nil, err
	}
	if err := sel.resolve(set); err != nil {
		return nil, err
	}
	if err := set.Select(sel.Selection); err != nil {
		return nil, err
	}
	return set, nil
}
