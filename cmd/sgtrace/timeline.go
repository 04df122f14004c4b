package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/change"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/load"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// timelineReportFlags are the flags of report about what changed when.
func timelineReportFlags() []cli.Flag {
	const category = "Since when:"
	return []cli.Flag{
		&cli.BoolFlag{Name: "timeline", Usage: "load, latencies and imbalance of every role and rank over time, and when they changed", Category: category, DisableDefaultText: true},
		&cli.DurationFlag{Name: "bucket", Usage: "divide time into pieces of this `DURATION`, such as 1s", DefaultText: "about 60 pieces", Category: category},
	}
}

// timelineOnly are the names of these flags.
var timelineOnly = []string{"timeline", "bucket"}

// reportTimeline shows what changed when.
func (c *command) reportTimeline(ctx *cli.Context) error {
	f, err := format(ctx)
	if err != nil {
		return err
	}
	for _, name := range []string{"latency", "by-stage", "by-rank", "by-request", "by", "classes", "table", "sort", "limit", "tail", "metric"} {
		if ctx.IsSet(name) {
			return commandline.Usage("--%s has no meaning with --timeline", name)
		}
	}
	if d := ctx.Duration("bucket"); ctx.IsSet("bucket") && d <= 0 {
		return commandline.Usage("--bucket %s: want a duration above 0, such as 1s", d)
	}
	set, err := c.load(ctx, ctx.Args().Slice())
	if err != nil {
		return err
	}
	timeline, err := load.New(set, ctx.Duration("bucket"))
	if err != nil {
		return commandline.AsUsage(err)
	}
	changes := change.Find(set)
	marked := change.MarkedTimeline{Timeline: timeline, Changes: changes}
	d := &document.Document{Schema: "sgtrace.report.timeline/v2", Tables: []*table.Table{changes.Report()}}
	d.AddMain(marked.Report())
	d.Text = func(w io.Writer, style table.Style) error {
		if err := changes.Write(w, style); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		return marked.Write(w, style)
	}
	return c.write(ctx, f, d, 0)
}
