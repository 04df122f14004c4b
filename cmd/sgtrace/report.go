package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// groupings are the short names of what --by can say.
var groupings = []struct{ flag, by, usage string }{
	{"by-stage", "stage", "one row per stage"},
	{"by-rank", "rank", "everything about ranks: stragglers, load, steps, pipelines, collectives, GPUs, kernels, stages"},
	{"by-request", "request", "one row per stage and request"},
}

func (c *command) reportCommand() *cli.Command {
	flags := slices.Concat([]cli.Flag{formatFlag()}, summaryFlags(), pageFlags())
	for _, g := range groupings {
		flags = append(flags, &cli.BoolFlag{Name: g.flag, Usage: g.usage, DisableDefaultText: true})
	}
	flags = append(flags,
		&cli.StringFlag{Name: "by", Usage: "one row per stage and `DIMENSION`,...: " + dimensions()},
		&cli.BoolFlag{Name: "latency", Usage: "only the latencies of whole requests: E2E, TTFT, ITL, TPOT, queue", DisableDefaultText: true},
		&cli.StringFlag{Name: "table", Usage: "of several tables, print only that called `NAME`"},
		&cli.StringFlag{Name: "sort", Usage: "order rows by `COLUMN`; a leading - turns the order around"},
		&cli.IntFlag{Name: "limit", Usage: "print the first `N` rows; 0 is all", DefaultText: "all"},
	)
	return &cli.Command{
		Name:      "report",
		Usage:     "what stands out: which stage, which rank, since when and why",
		ArgsUsage: "INPUT...",
		Description: `Inputs are OTLP dumps, PyTorch traces, Nsight Systems exports, or a mixture.
Percentiles are nearest rank: the value at rank ceil(p*n), one that occurred.
'sgtrace help metrics' defines every number.

Examples:
  sgtrace report otel_trace.json
  sgtrace report --by-rank otel_trace.json traces/ node0.sqlite
  sgtrace report -o report.html otel_trace.json traces/
  sgtrace report --by role,host --from +30s --to +60s --format csv 'dumps/*.zst'`,
		Flags:  slices.Concat(flags, tailFlags(), timelineReportFlags(), profileFlags(), rankReportFlags(), selectionFlags()),
		Action: c.report,
	}
}

func dimensions() string {
	text := ""
	for i, d := range requests.Dimensions {
		if i > 0 {
			text += ", "
		}
		text += d.Name
	}
	return text
}

func (c *command) report(ctx *cli.Context) error {
	profiles, err := chosenProfileReport(ctx)
	if err != nil {
		return err
	}
	if profiles != nil {
		return c.reportProfiles(ctx, profiles)
	}
	if ctx.IsSet("o") {
		return c.reportPage(ctx)
	}
	if wantsSummary(ctx) {
		return c.reportSummary(ctx)
	}
	switch {
	case ctx.Bool("timeline"):
		return c.reportTimeline(ctx)
	case ctx.IsSet("bucket"):
		return commandline.Usage("--bucket goes with --timeline")
	case ctx.IsSet("tail"):
		return c.reportTail(ctx)
	case ctx.IsSet("metric"):
		return commandline.Usage("--metric goes with --tail")
	case ctx.Bool("by-rank") && !ctx.Bool("by-stage") && !ctx.Bool("by-request") && !ctx.IsSet("by"):
		return c.reportRanks(ctx)
	case ctx.IsSet("classes") || ctx.IsSet("table"):
		return commandline.Usage("--classes and --table go with --by-rank")
	}
	f, err := format(ctx)
	if err != nil {
		return err
	}
	by, err := grouping(ctx)
	if err != nil {
		return err
	}
	set, err := c.load(ctx, ctx.Args().Slice())
	if err != nil {
		return err
	}
	if ctx.Bool("latency") {
		latencies := requests.MeasureLatencies(set).Report()
		if latencies.Len() == 0 && len(latencies.Footnotes) == 0 {
			latencies.Footnotes = []string{requests.NoRequests}
		}
		d := &document.Document{Schema: "sgtrace.report.latency/v2"}
		d.AddMain(latencies)
		return c.write(ctx, f, d, 0)
	}
	d := &document.Document{Schema: "sgtrace.report.stages/v2"}
	if len(by) == 1 {
		d.Add(requests.MeasureLatencies(set).Report())
	}
	d.AddMain(requests.GroupStages(set, by).Report())
	return c.write(ctx, f, d, 0)
}

// grouping reads --by and its short names.
func grouping(ctx *cli.Context) ([]requests.Dimension, error) {
	list, said := "stage", ""
	say := func(flag, by string) error {
		if said != "" {
			return commandline.Usage("--%s and --%s exclude each other; --by takes a list", said, flag)
		}
		said, list = flag, by
		return nil
	}
	for _, g := range groupings {
		if ctx.Bool(g.flag) {
			if err := say(g.flag, g.by); err != nil {
				return nil, err
			}
		}
	}
	if by := ctx.String("by"); by != "" {
		if err := say("by", by); err != nil {
			return nil, err
		}
	}
	by, err := requests.ParseDimensions(list)
	if err != nil {
		return nil, commandline.AsUsage(err)
	}
	return by, nil
}

// arrange applies --sort and --limit to the report; unless told otherwise at
// most limit rows stay, 0 is all.
func arrange(ctx *cli.Context, r *table.Table, limit int) error {
	if column := ctx.String("sort"); column != "" {
		name, descending := column, false
		if column[0] == '-' {
			name, descending = column[1:], true
		}
		if err := r.Sort(name, descending); err != nil {
			return commandline.AsUsage(err)
		}
	}
	if ctx.IsSet("limit") {
		if limit = ctx.Int("limit"); limit < 0 {
			return commandline.Usage("--limit %d: want 0 or more", limit)
		}
	}
	if limit > 0 {
		r.Limit(limit)
	}
	return nil
}
