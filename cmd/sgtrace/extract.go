package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/dataset"
)

func (c *command) extractCommand() *cli.Command {
	return &cli.Command{
		Name:      "extract",
		Usage:     "put inputs into a dataset of Parquet files, for reports and SQL",
		ArgsUsage: "-o DATASET [LABEL=]INPUT...",
		Description: `Reads each input by itself and writes what reports need of it to tables in the
folder DATASET. Every command then takes DATASET in place of the inputs and
prints the same. Start as many of these as you have cores or nodes, under xargs,
Slurm, or anything else: each writes folders of its own, which appear complete
or not at all. Inputs that are in the dataset are skipped, and one that has
changed replaces what the dataset had of it. 'sgtrace report DATASET' reads it.

With --redact, names and free text in the dataset are pseudonyms. The first task
writes their key to DATASET.key, and all others take it. With the key, names can
be guessed and tried: keep it, and don't share it.

Examples:
  sgtrace extract -o week traces/ otel_trace.json
  sgtrace extract -o week --exclude '*.tmp' traces/
  sgtrace extract -o run --shard 3/64 traces/
  sgtrace extract -o shared --redact traces/`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "the `DATASET`, a folder, to add to"},
			&cli.StringFlag{Name: "shard", Usage: "take only shard `I/N` of the inputs, I from 0 to N-1, by a hash of their paths"},
		},
		Action: c.extract,
	}
}

func (c *command) extract(ctx *cli.Context) error {
	opt := convert.ExtractOptions{Dataset: ctx.String("output"), Arguments: ctx.Args().Slice(), Tool: commandline.Version(), Redact: c.redact}
	if opt.Dataset == "" {
		return commandline.Usage("extract needs -o DATASET, a folder to write to")
	}
	var err error
	if opt.Shard, opt.Of, err = shard(ctx.String("shard")); err != nil {
		return err
	}
	files, err := findInputs(ctx, ctx.Args().Slice())
	if err != nil {
		return err
	}
	meter := c.screen.Reading(size(files))
	opt.Meter = meter
	c.collectEarly(50)
	done, err := convert.Extract(files, opt, &c.diags)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.screen.Notices, "%s: %s\n", screen.Printable(opt.Dataset), extracted(done))
	if done.Inputs > done.There && dataset.WasSolved(opt.Dataset) {
		fmt.Fprintln(c.screen.Notices, "views of SQL engines are of the dataset as it was: run 'sgtrace sql' again")
	}
	return nil
}

// extracted describes the result of an extraction: "31 inputs, 30 already extracted".
func extracted(d convert.Extracted) string {
	text := words.Counted(d.Inputs, "input")
	for _, part := range []struct {
		n    int
		what string
	}{{d.There, "already extracted"}, {d.Replaced, "replaced by a newer state"}, {d.Unusable, "unusable"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return text
}

// shard parses "3/64". Without text, it returns 0 of 0, which means all.
func shard(text string) (i, n int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	before, after, _ := strings.Cut(text, "/")
	i, err = strconv.Atoi(before)
	if err == nil {
		n, err = strconv.Atoi(after)
	}
	if err != nil || n < 1 || i < 0 || i >= n {
		return 0, 0, commandline.Usage("--shard %q: want I/N, such as 0/64 to 63/64", text)
	}
	return i, n, nil
}
