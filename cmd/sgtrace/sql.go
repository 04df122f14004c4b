package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/dataset/views"
)

func (c *command) sqlCommand() *cli.Command {
	return &cli.Command{
		Name:      "sql",
		Usage:     "print views over a dataset, for SQL engines",
		ArgsUsage: "DATASET",
		Description: `Prints statements that make views over the Parquet files of DATASET: requests,
stages, steps, collectives, kernels, calls, copies, and ranges, on one clock, with
the names of ranks that reports print. stage_summary, rank_summary, kernel_summary,
and request_list have the tables of reports. docs/SQL.md has questions to ask.
Does what 'sgtrace dataset solve' does first, if a capture has changed.

Examples:
  sgtrace sql week  # >week.sql; duckdb -init week.sql
  sgtrace sql --dialect clickhouse week  # | clickhouse local --multiquery
  sgtrace sql --dialect spark week  # >week.sql; spark-sql -i week.sql`,
		Flags:  []cli.Flag{&cli.StringFlag{Name: "dialect", Usage: "of the `ENGINE`: " + strings.Join(dialects(), ", "), Value: dialects()[0]}},
		Action: c.sql,
	}
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
	dir, _, err := captures(ctx)
	if err != nil {
		return err
	}
	solved, err := c.solve(dir)
	if err != nil {
		return err
	}
	return views.Write(c.out, d, dir, solved.Dir)
}
