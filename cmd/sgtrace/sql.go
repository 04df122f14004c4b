package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/dataset/views"
)

func (c *command) sqlCommand() *cli.Command {
	cmd := &cli.Command{
		Name:      "sql",
		Usage:     "print views over a dataset, for SQL engines",
		ArgsUsage: "DATASET",
		Description: `Prints statements that make views over the Parquet files of DATASET: requests,
stages, steps, collectives, kernels, calls, copies, and ranges, on one clock and
with the names of ranks that reports print. stage_summary, rank_summary,
kernel_summary, and request_list are the tables of reports. docs/SQL.md has
questions to ask. If a capture has changed, this does what 'sgtrace dataset
solve' does first. Run it again after each 'sgtrace extract'.

Examples:
  sgtrace sql week
  sgtrace sql --dialect clickhouse week
  sgtrace sql --dialect spark week`,
		Flags:  []cli.Flag{&cli.StringFlag{Name: "dialect", Usage: "of the `ENGINE`: " + strings.Join(dialects(), ", "), Value: dialects()[0]}},
		Action: c.sql,
	}
	c.giveScreen(cmd)
	return cmd
}

// dialects lists what --dialect takes.
func dialects() (names []string) {
	for _, d := range views.Dialects {
		names = append(names, d.Name)
	}
	return names
}

func (c *command) sql(ctx *cli.Context) error {
	d := views.Find(ctx.String("dialect"))
	if d == nil {
		return commandline.Usage("--dialect %q: want %s", ctx.String("dialect"), strings.Join(dialects(), ", "))
	}
	dir, err := datasetOf(ctx)
	if err != nil {
		return err
	}
	solved, err := c.solve(dir)
	if err != nil {
		return err
	}
	return views.Write(c.out, d, dir, solved.Dir)
}
