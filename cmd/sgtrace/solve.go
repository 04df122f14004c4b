package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/build"
	"github.com/sgtrace/sgtrace/convert/solve"
)

func (c *command) solveCommand() *cli.Command {
	return &cli.Command{
		Name:      "solve",
		Usage:     "write what all captures say together, for SQL engines",
		ArgsUsage: "DATASET",
		Description: `Joins the parts of requests, names ranks and hosts, finds what several captures
have, and puts hosts on one clock, as 'sgtrace report' does. The tables go to
DATASET/v1/solved=HASH. If no capture has changed since, nothing is done.
'sgtrace sql' does this, too.

Examples:
  sgtrace dataset solve week
  sgtrace dataset solve --quiet week
  sgtrace dataset solve ./week`,
		Action: func(ctx *cli.Context) error {
			dir, err := datasetOf(ctx)
			if err != nil {
				return err
			}
			solved, err := c.solve(dir)
			if err != nil {
				return err
			}
			state := "is up to date"
			if solved.Written {
				state = "written"
			}
			fmt.Fprintf(c.screen.Notices, "%s: %s\n", solved.Dir, state)
			return nil
		},
	}
}

// solve brings the solved tables of a dataset up to date.
func (c *command) solve(dir string) (solve.Result, error) {
	meter := c.screen.Reading(-1)
	c.collectEarly()
	return solve.Run(dir, solve.Options{Tool: build.Version(), Meter: meter}, &c.diags)
}
