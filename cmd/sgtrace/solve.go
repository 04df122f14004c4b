package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert/solve"
	"github.com/sgtrace/sgtrace/dataset"
)

func (c *command) solveCommand() *cli.Command {
	return &cli.Command{
		Name:      "solve",
		Usage:     "write what all captures say together, for SQL: requests, ranks, clocks",
		ArgsUsage: "DATASET",
		Description: `Joins the parts of requests, names ranks and hosts, finds what several captures
have, and puts hosts on one clock, as 'sgtrace report' does. The tables go to
DATASET/v1/solved=HASH. If no capture has changed since, nothing is done.
'sgtrace sql' does this, too.

Examples:
  sgtrace dataset solve week`,
		Action: func(ctx *cli.Context) error {
			dir, err := onlyDataset(ctx)
			if err != nil {
				return err
			}
			solved, err := c.solve(dir)
			if err != nil {
				return err
			}
			if !c.screen.Quiet {
				state := "is up to date"
				if solved.Written {
					state = "written"
				}
				fmt.Fprintf(c.err, "%s: %s\n", solved.Dir, state)
			}
			return nil
		},
	}
}

// onlyDataset returns the dataset that is the only argument.
func onlyDataset(ctx *cli.Context) (string, error) {
	if ctx.NArg() != 1 {
		return "", commandline.Usage("%s takes one DATASET; there are %d", ctx.Command.Name, ctx.NArg())
	}
	dir := ctx.Args().First()
	if !dataset.Is(dir) {
		return "", fmt.Errorf("%s: not a dataset, as 'sgtrace extract' makes one", dir)
	}
	return dir, nil
}

// solve brings the solved tables of a dataset up to date.
func (c *command) solve(dir string) (solve.Result, error) {
	meter := c.screen.Meter(-1)
	defer meter.Done()
	c.collectEarly()
	return solve.Run(dir, solve.Options{Tool: version(), Meter: meter}, &c.diags)
}
