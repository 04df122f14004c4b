package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/screen"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/dataset"
	"github.com/sgtrace/sgtrace/dataset/tasks"
	"github.com/sgtrace/sgtrace/dataset/views"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/trace"
)

// datasetCommand has the commands for datasets.
func (c *command) datasetCommand() *cli.Command {
	all := &cli.Command{
		Name:   "dataset",
		Usage:  "list, check, and clean up a dataset",
		Action: func(*cli.Context) error { return c.help([]string{"dataset"}) },
		Subcommands: []*cli.Command{
			{
				Name: "ls", Usage: "list the captures of a dataset", ArgsUsage: "DATASET",
				Description: `A capture is what 'sgtrace extract' made of one input.

Examples:
  sgtrace dataset ls week
  sgtrace dataset ls --format csv week
  sgtrace dataset ls --width 80 week`,
				Flags: []cli.Flag{formatFlag()}, Action: c.listDataset,
			},
			{
				Name: "prune", Usage: "remove captures that are old or whose originals are gone", ArgsUsage: "DATASET",
				Description: `What tasks left that died more than a day ago goes, too. A dataset of which not
all shards ended is incomplete, as every report says. If you go on with another
number of shards, --shards forgets which there were.

Examples:
  sgtrace dataset prune --older-than 30d --dry-run week
  sgtrace dataset prune --older-than 3650d week
  sgtrace dataset prune --gone week`,
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "older-than", Usage: "remove captures that ended `AGE` ago, such as 30d or 12h"},
					&cli.BoolFlag{Name: "gone", Usage: "remove captures whose originals are no longer there"},
					&cli.BoolFlag{Name: "shards", Usage: "forget which shards there were of which extractions"},
					&cli.BoolFlag{Name: "dry-run", Usage: "only print what would be removed"},
				},
				Action: c.pruneDataset,
			},
			{
				Name: "verify", Usage: "check that a dataset is as it was written", ArgsUsage: "DATASET",
				Description: `Reads all files and compares their hashes and numbers of rows with those that
were written. If not all shards of an extraction ended, it says which.

Examples:
  sgtrace dataset verify week
  sgtrace dataset verify --quiet week
  sgtrace dataset verify --originals week`,
				Flags:  []cli.Flag{&cli.BoolFlag{Name: "originals", Usage: "read the originals, too, and compare their hashes"}},
				Action: c.verifyDataset,
			},
			c.solveCommand(),
		},
	}
	for _, cmd := range all.Subcommands {
		c.giveScreen(cmd)
	}
	return all
}

// datasetOf returns the dataset that is the only argument.
func datasetOf(ctx *cli.Context) (dir string, err error) {
	if ctx.NArg() != 1 {
		return "", commandline.Usage("%s takes one DATASET; there are %d", ctx.Command.Name, ctx.NArg())
	}
	dir = ctx.Args().First()
	if !dataset.Is(dir) {
		return "", fmt.Errorf("%s: not a dataset, as 'sgtrace extract' makes one", dir)
	}
	return dir, nil
}

// captures reads the captures of the dataset that is the only argument.
func captures(ctx *cli.Context) (dir string, all []*dataset.Capture, err error) {
	if dir, err = datasetOf(ctx); err != nil {
		return "", nil, err
	}
	all, err = dataset.Captures(dir)
	return dir, all, err
}

// A listed is a row about a capture.
type listed struct {
	Capture      *dataset.Capture
	stored, rows int64
}

func (c *command) listDataset(ctx *cli.Context) error {
	how, err := printing(ctx, 0)
	if err != nil {
		return err
	}
	_, all, err := captures(ctx)
	if err != nil {
		return err
	}
	var rows []listed
	for _, x := range all {
		stored, n, err := x.Size()
		if err != nil {
			return err
		}
		rows = append(rows, listed{x, stored, n})
	}
	t := table.New("sgtrace.dataset.captures/v1", "captures", rows, []table.Field[listed]{
		table.FileField(func(l *listed) string { return l.Capture.About.Name }),
		table.TextColumn("label", "your label for it", func(l *listed) string { return l.Capture.About.Label }),
		table.TextColumn("format", "format of the original", func(l *listed) string { return l.Capture.About.Format }),
		table.TimeField("first", "start of the recording, Unix time on the host's clock", func(l *listed) (trace.Time, bool) { return l.Capture.About.First, l.Capture.About.First != 0 }),
		table.TimeField("last", "end of the recording", func(l *listed) (trace.Time, bool) { return l.Capture.About.Last, l.Capture.About.Last != 0 }),
		table.CountColumn("rows", "number of rows in all tables", func(l *listed) int64 { return l.rows }),
		table.BytesColumn("size", "size of the original", func(l *listed) int64 { return l.Capture.About.Bytes }),
		table.BytesColumn("stored", "size in the dataset", func(l *listed) int64 { return l.stored }),
		table.TextColumn("unusable", "reason why none of it can be used", func(l *listed) string { return l.Capture.About.Unusable }),
	})
	return c.write(&document.Document{Schema: "sgtrace.dataset/v1", Main: t.Name(), Tables: []*table.Table{t}}, how)
}

func (c *command) pruneDataset(ctx *cli.Context) error {
	before, err := olderThan(ctx.String("older-than"))
	if err != nil {
		return err
	}
	dir, all, err := captures(ctx)
	if err != nil {
		return err
	}
	if ctx.Bool("gone") && slices.ContainsFunc(all, func(x *dataset.Capture) bool { return x.Redacted() }) {
		return fmt.Errorf("--gone: %w", inputs.ErrRedacted)
	}
	removed, dry := 0, ctx.Bool("dry-run")
	for _, x := range all {
		why := ""
		switch {
		case x.Last != 0 && int64(x.Last) < before:
			why = "ended " + time.Unix(0, int64(x.Last)).UTC().Format(time.DateTime)
		case ctx.Bool("gone") && isGone(x):
			why = "its original is gone"
		default:
			continue
		}
		if removed++; !dry {
			if err := x.Remove(); err != nil {
				return err
			}
		}
		fmt.Fprintf(c.out, "%s: %s\n", screen.Printable(x.Name), why)
	}
	verb := "removed"
	if dry {
		verb = "to be removed"
	} else if err := cleanUp(ctx, dir); err != nil {
		return err
	}
	fmt.Fprintf(c.screen.Notices, "%s: %d of %s %s\n", dir, removed, words.Counted(len(all), "capture"), verb)
	return nil
}

// cleanUp removes what unfinished tasks left behind more than a day ago and, with --shards, the records of shards.
func cleanUp(ctx *cli.Context, dir string) error {
	err := dataset.RemoveUnfinished(dir, time.Now().Add(-24*time.Hour))
	if ctx.Bool("shards") {
		err = errors.Join(err, tasks.Forget(dir))
	}
	return err
}

func isGone(c *dataset.Capture) bool {
	_, err := inputs.Original(c)
	return err != nil
}

// olderThan returns the Unix time, in ns, that is an age ago: "30d", "12h". Without an age, it is 0.
func olderThan(age string) (int64, error) {
	if age == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(age)
	if days, ok := strings.CutSuffix(age, "d"); ok {
		n, convErr := strconv.Atoi(days)
		d, err = time.Duration(n)*24*time.Hour, convErr
	}
	if err != nil || d < 0 {
		return 0, commandline.Usage("--older-than %q: want an age such as 30d or 12h", age)
	}
	return time.Now().Add(-d).UnixNano(), nil
}

func (c *command) verifyDataset(ctx *cli.Context) error {
	dir, all, err := captures(ctx)
	if err != nil {
		return err
	}
	foreign, err := dataset.Foreign(dir)
	if err != nil {
		return err
	}
	problems := order.Each(tasks.Missing(dir), func(text string) string { return dir + ": " + text })
	for _, name := range foreign {
		problems = append(problems, name+": not a capture")
	}
	for _, x := range all {
		problems = append(problems, x.Verify()...)
		if ctx.Bool("originals") {
			if err := inputs.Unchanged(x); err != nil {
				problems = append(problems, err.Error())
			}
		}
	}
	for _, text := range problems {
		fmt.Fprintln(c.out, screen.Printable(text))
	}
	if len(problems) > 0 {
		return errors.New(dir + ": " + words.Counted(len(problems), "problem"))
	}
	fmt.Fprintf(c.screen.Notices, "%s: %s, all whole\n", dir, words.Counted(len(all), "capture"))
	return nil
}

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
			_, solved, err := c.solve(ctx)
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
func (c *command) solve(ctx *cli.Context) (dir string, solved convert.Solved, err error) {
	if dir, err = datasetOf(ctx); err != nil {
		return "", solved, err
	}
	meter := c.screen.Reading(-1)
	c.collectEarly(50)
	solved, err = convert.Solve(dir, commandline.Version(), meter, &c.diags)
	return dir, solved, err
}

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
		Flags:  []cli.Flag{&cli.StringFlag{Name: "dialect", Usage: "write the SQL of this `ENGINE`: " + strings.Join(dialects(), ", "), Value: dialects()[0]}},
		Action: c.sql,
	}
	c.giveScreen(cmd)
	return cmd
}

// dialects returns the values of --dialect.
func dialects() (names []string) {
	return order.Each(views.Dialects, func(d *views.Dialect) string { return d.Name })
}

func (c *command) sql(ctx *cli.Context) error {
	d := views.Find(ctx.String("dialect"))
	if d == nil {
		return commandline.Usage("--dialect %q: want %s", ctx.String("dialect"), strings.Join(dialects(), ", "))
	}
	dir, solved, err := c.solve(ctx)
	if err != nil {
		return err
	}
	return views.Write(c.out, d, dir, solved.Dir)
}
