package main

import (
	"github.com/urfave/cli/v2"
)

// datasetCommand has the commands about datasets as such.
func (c *command) datasetCommand() *cli.Command {
	all := &cli.Command{
		Name:        "dataset",
		Usage:       "what a dataset has, whether it is whole, and what of it is old",
		Action:      func(*cli.Context) error { return c.help([]string{"dataset"}) },
		Subcommands: []*cli.Command{c.solveCommand()},
	}
	c.allowScreen(all.Subcommands)
	return all
}
