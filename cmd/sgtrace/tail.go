package main

import (
	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/tail"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
)

// tailFlags are the flags of report about slow requests.
func tailFlags() []cli.Flag {
	const category = "Why slow requests are slow:"
	return []cli.Flag{
		&cli.StringFlag{Name: "tail", Usage: "compare requests from `PERCENTILE` on (p99 unless told) with those around the median, cause by cause", Category: category},
		&cli.StringSliceFlag{Name: "metric", Usage: "only the tail of this `METRIC`: e2e, ttft, itl", Category: category},
	}
}

// tailOnly are the names of these flags.
var tailOnly = []string{"tail", "metric"}

// reportTail says why the slow requests are slow.
func (c *command) reportTail(ctx *cli.Context) error {
	f, err := format(ctx)
	if err != nil {
		return err
	}
	opt := tail.Options{All: f == table.FormatCSV || f == table.FormatJSON}
	if opt.Percent, err = tail.ParsePercent(ctx.String("tail")); err != nil {
		return commandline.Usage("--tail: %v", err)
	}
	for _, text := range ctx.StringSlice("metric") {
		m, err := tail.ParseMetric(text)
		if err != nil {
			return commandline.Usage("--metric: %v", err)
		}
		opt.Metrics = append(opt.Metrics, m)
	}
	for _, name := range []string{"latency", "by-stage", "by-rank", "by-request", "by", "classes", "table", "sort"} {
		if ctx.IsSet(name) {
			return commandline.Usage("--%s has no meaning with --tail", name)
		}
	}
	if opt.Slowest = ctx.Int("limit"); opt.Slowest < 0 {
		return commandline.Usage("--limit %d: want 0 or more", opt.Slowest)
	}
	set, err := c.load(ctx, ctx.Args().Slice())
	if err != nil {
		return err
	}
	d := &document.Document{Schema: "sgtrace.report.tail/v2", Tables: tail.New(set, opt).Reports()}
	for _, t := range d.Tables {
		if d.Main == "" && t.Schema == tail.Schema {
			d.Main = t.Name()
		}
	}
	return c.write(ctx, f, d, 0)
}
