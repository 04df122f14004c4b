package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/clocks"
)

// summaryFlags are the flags of the summary of a report.
func summaryFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "summary", Usage: "one screen: what was read, how far to trust it, what stands out (default)", DisableDefaultText: true},
	}
}

// otherReports are the flags that ask for something else than a summary.
var otherReports = slices.Concat(tailOnly, timelineOnly, []string{"latency", "by-stage", "by-rank", "by-request", "by", "table", "sort", "limit", "classes"})

// wantsSummary reports whether a summary is asked for, or nothing else.
func wantsSummary(ctx *cli.Context) bool {
	return ctx.Bool("summary") || !slices.ContainsFunc(otherReports, ctx.IsSet)
}

// reportSummary says what stands out of inputs of any kind.
func (c *command) reportSummary(ctx *cli.Context) error {
	f, err := format(ctx)
	if err != nil {
		return err
	}
	for _, name := range otherReports {
		if ctx.IsSet(name) {
			return commandline.Usage("--%s has no meaning with --summary", name)
		}
	}
	e, sel, err := c.readEvidence(ctx, everything())
	if err != nil {
		return err
	}
	defer e.Close()
	return c.overview(ctx, e, sel).Write(c.out, f, c.style())
}

// overview looks at everything that was read.
func (c *command) overview(ctx *cli.Context, e *convert.Evidence, sel *chosen) *overview.Overview {
	var given []string
	for _, arg := range shortInputs(ctx.Args().Slice(), ctx.StringSlice("exclude")) {
		given = append(given, c.redactedInput(arg))
	}
	in := overview.Input{
		Select: append(c.exclusionArgs(ctx), selectionArgs(ctx)...), Inputs: given, Files: c.inputsRead(), Requests: e.Requests,
		Clocks: hostClocks(e.Clocks), Diags: &c.diags,
	}
	if len(e.Ranks) > 0 {
		in.Profiles, in.Devices = &e.Set, gpu.Options{From: sel.From, To: sel.To}
	}
	return overview.New(in)
}

func hostClocks(report *clocks.Report) []overview.HostClock {
	if report == nil {
		return nil
	}
	list := make([]overview.HostClock, len(report.Clocks))
	for i, l := range report.Clocks {
		list[i] = overview.HostClock{Host: l.Host, Why: l.Why, By: l.By, Offset: l.Offset, Bound: l.Bound}
	}
	return list
}

// selectionArgs are the selection flags as they were given.
func selectionArgs(ctx *cli.Context) (args []string) {
	for _, flag := range selectionFlags() {
		name := flag.Names()[0]
		if !ctx.IsSet(name) {
			continue
		}
		if values := ctx.StringSlice(name); len(values) > 0 {
			for _, v := range values {
				args = append(args, "--"+name, v)
			}
			continue
		}
		args = append(args, "--"+name, fmt.Sprint(ctx.Value(name)))
	}
	return args
}
