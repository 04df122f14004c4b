package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/inspect"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/format/inventory"
)

func (c *command) inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "what is in the files: formats, hosts, ranks, times, quality",
		ArgsUsage: "[LABEL=]INPUT...",
		Description: `Inputs are OTLP dumps (JSON lines, arrays, pretty-printed or concatenated JSON,
the Collector's framed zstd and protobuf), PyTorch profiler traces and other
Chrome JSON, all of these also as .gz or .zst, Nsight Systems exports (SQLite),
logs of servers and kernels, metrics, dumps of flight recorders, and more:
'sgtrace help formats' lists them. Of an export, inspect reads only the ends of
tables. It never shows values that may be secret (environments, command lines,
contents of files).

Examples:
  sgtrace inspect otel_trace.json
  sgtrace inspect traces/ node0.sqlite
  sgtrace inspect --table tables --format csv node0.sqlite`,
		Flags: []cli.Flag{
			formatFlag(),
			&cli.StringFlag{Name: "table", Usage: "print only the table `NAME`: processes, tables, ...; required for CSV"},
		},
		Action: c.inspect,
	}
}

func (c *command) inspect(ctx *cli.Context) error {
	how, err := printing(ctx, 0)
	if err != nil {
		return err
	}
	name := how.table
	if name != "" && !slices.Contains(inspect.Tables, name) {
		return commandline.OneOf("--table", name, inspect.Tables...)
	}
	if name == "" && how.format == table.FormatCSV {
		return commandline.Usage("inspect prints several tables, but CSV can hold only one: choose it with --table, or use text, markdown, or json")
	}
	files, err := findInputs(ctx, ctx.Args().Slice())
	if err != nil {
		return err
	}
	meter := c.screen.Reading(size(files))
	var held inventory.Inventory
	requests, read, err := convert.Inspect(files, inputs.Options{Stdin: c.in, Meter: meter}, &c.diags, &held)
	c.screen.Doing("analyzing")
	if err != nil {
		return err
	}
	c.read = read
	if requests != nil {
		c.redactRequests(requests)
	}
	d := &document.Document{Schema: "sgtrace.inspect/v2", Tables: inspect.All(&held, requests, c.diags.All())}
	return c.write(d, how)
}
