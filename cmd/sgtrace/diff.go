package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/diff"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/internal/tracename"
	"github.com/sgtrace/sgtrace/profile"
)

// diffCats are the events of profilers that a comparison is about.
var diffCats = slices.Concat(reports.KernelEvents, profile.CopyCategories, []string{profile.AnnotationCategory})

// mostDiffRows is how many rows people get to see unless told otherwise.
const mostDiffRows = 40

func (c *command) diffCommand() *cli.Command {
	flags := []cli.Flag{
		formatFlag(),
		&cli.BoolFlag{Name: "by-rank", Usage: "one row per rank and stage, step, or kernel", DisableDefaultText: true},
		&cli.StringFlag{Name: "table", Usage: "print only the table called `NAME`: diff, diff.load, or diff.captures"},
		&cli.StringFlag{Name: "sort", Usage: "sort rows by `COLUMN`; -COLUMN reverses the order"},
		&cli.IntFlag{Name: "limit", Usage: "print the first `N` rows; 0 is all", DefaultText: "40 for text and markdown"},
	}
	return &cli.Command{
		Name:      "diff",
		Usage:     "what changed between two captures, and whether it could be chance",
		ArgsUsage: "[LABEL=]BEFORE [LABEL=]AFTER",
		Description: `BEFORE and AFTER are each a file, a directory, or a quoted glob: OTLP dumps,
PyTorch traces, Nsight Systems exports, or a mix. Totals are per request or per
step, so captures may differ in length. Each change has a 95 % confidence
interval; ~ marks changes that may be chance. --from and --to are offsets (+10s)
from the start of each capture. 'sgtrace help metrics' defines every number.

Examples:
  sgtrace diff healthy.jsonl incident.jsonl
  sgtrace diff v0.5=profiles/monday v0.6='profiles/tuesday/*.json.gz' --by-rank
  sgtrace diff --stage decode_loop --from +30s --format csv a.jsonl b.jsonl`,
		Flags:  slices.Concat(flags, selectionFlags()),
		Action: c.diff,
	}
}

func (c *command) diff(ctx *cli.Context) error {
	how, err := printing(ctx, mostDiffRows)
	if err != nil {
		return err
	}
	args := ctx.Args().Slice()
	if len(args) != 2 {
		return commandline.Usage("diff takes two inputs, BEFORE and AFTER, each a file, a directory, or a quoted glob; there are %d", len(args))
	}
	if args[0] == inputs.Stdin && args[1] == inputs.Stdin {
		return commandline.Usage("only one of BEFORE and AFTER can be standard input")
	}
	before, err := c.readCapture(ctx, args[0])
	if err != nil {
		return err
	}
	after, err := c.readCapture(ctx, args[1])
	if err != nil {
		return err
	}
	if !before.Shares(after) {
		return fmt.Errorf("%s and %s cannot be compared: one has only requests, the other only profiler data", args[0], args[1])
	}
	d := diff.Compare(before, after, diff.Options{ByRank: ctx.Bool("by-rank")})
	if len(d.Rows) == 0 {
		return fmt.Errorf("%s and %s cannot be compared: they have no requests, steps, kernels, or copies", args[0], args[1])
	}
	doc := &document.Document{Schema: "sgtrace.diff/v2"}
	doc.Add(d.SideReport(), d.LoadReport())
	doc.AddMain(d.Report())
	return c.write(doc, how)
}

// readCapture collects one side of a comparison, of what the selection flags leave of it.
// Only then the other one is read, so that it takes no more memory than a report.
func (c *command) readCapture(ctx *cli.Context, arg string) (*diff.Collected, error) {
	label, path := tracename.SplitLabel(arg, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
	e, sel, err := c.readInputs(ctx, []string{path}, needed{events: profile.Filter{Cats: diffCats, Args: profile.ArgsNone}})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return diff.Collect(diff.Capture{Label: cmp.Or(label, c.redactedInput(path)), Requests: e.Requests, Profiles: &e.Set, From: sel.From, To: sel.To}), nil
}
