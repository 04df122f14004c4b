package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/overview"
	"github.com/sgtrace/sgtrace/analyze/page"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/clocks"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/urfave/cli/v2"
)

func (c *command) reportCommand() *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "what stands out: which stage, which rank, since when and why",
		ArgsUsage: "INPUT...",
		Description: `'sgtrace help metrics' defines every number.

Examples:
  sgtrace report otel_trace.json
  sgtrace report server.log metrics.txt
  sgtrace report --by-rank otel_trace.json traces/ node0.sqlite
  sgtrace report -o report.html otel_trace.json traces/
  sgtrace report --fail-on errors,lifecycle otel_trace.json
  sgtrace report --slo ttft=500ms,itl=50ms otel_trace.json`,
		Flags:  slices.Concat(reports.Flags(), []cli.Flag{formatFlag("; folded with --stacks, in ns")}, commandline.Flags()),
		Action: c.report,
	}
}

func (c *command) report(ctx *cli.Context) error {
	r, err := reports.Choose(ctx)
	if err != nil {
		return err
	}
	run, err := r.Parse(ctx)
	if err != nil {
		return err
	}
	if ctx.IsSet("o") {
		return c.reportPage(ctx, r)
	}
	how, err := printing(ctx, r.Most, r.Formats...)
	if err != nil {
		return err
	}
	if r.OwnsLimit || ctx.Bool("all-ranks") && !ctx.IsSet("limit") {
		how.limit = 0
	}
	summing, err := reports.ReadSumming(ctx)
	if err != nil {
		return err
	}
	in, done, err := c.reading(ctx, r)
	if err != nil {
		return err
	}
	defer done()
	d, err := run(in)
	if err != nil {
		return err
	}
	if err := in.CheckWindow(d); err != nil {
		return err
	}
	summing.Apply(d, in, how.format)
	d.Schema = r.Schema()
	r.NoteIgnored(ctx, d)
	return c.write(d, how)
}

// reading reads and selects what a report needs. The caller calls done to release it.
func (c *command) reading(ctx *cli.Context, r *reports.Report) (in *reports.Reading, done func(), err error) {
	in = &reports.Reading{Diags: &c.diags, Select: append(c.exclusionArgs(ctx), commandline.Args(ctx)...)}
	done = func() {}
	switch {
	case r.Runs:
		in.EachRun = c.eachRun(ctx, neededBy(ctx, r))
	case r.Needs == reports.Requests:
		in.Requests, err = c.load(ctx, ctx.Args().Slice())
	default:
		done, err = c.readEverything(ctx, r, in)
	}
	if err != nil {
		return nil, nil, err
	}
	in.WhatIf = ctx.Bool("whatif")
	in.Inputs = c.inputsRead()
	in.Given = c.given(ctx, ctx.Args().Slice())
	return in, done, nil
}

// neededBy returns what a report needs from profiles.
func neededBy(ctx *cli.Context, r *reports.Report) needed {
	events := profile.Filter{Cats: r.Events, Args: profile.ArgsNone, IndexOnly: slices.Contains(r.CollectiveTables, ctx.String("table"))}
	if r.OfMain(ctx) {
		events.Cats = r.MainEvents
		return needed{events: events}
	}
	if r.Arguments != nil {
		events.Args, events.ArgCats, events.ArgNames = profile.ArgsMin, r.Arguments, r.ArgNames
	}
	return needed{events: events, captures: r.Takes("captures"), data: convert.ReportOptions{Attribute: r.Attribute, MatchCollectives: r.MatchCollectives}}
}

// readEverything reads inputs of any kind.
func (c *command) readEverything(ctx *cli.Context, r *reports.Report, in *reports.Reading) (done func(), err error) {
	e, sel, err := c.readInputs(ctx, ctx.Args().Slice(), neededBy(ctx, r))
	if err != nil {
		return nil, err
	}
	readOnce := func(in inputs.Input) bool { // such as a pipe
		size, _ := in.Size()
		return size < 0
	}
	if !slices.ContainsFunc(c.read, readOnce) {
		again := neededBy(ctx, r)
		again.aside = true
		in.EachRun = c.eachRun(ctx, again)
	}
	in.Requests, in.Clocks, in.From, in.To = e.Requests, hostClocks(e.Clocks), sel.Selection.From, sel.Selection.To
	in.First, in.Last = e.First, e.Last
	in.Selected = sel.Selection.From != 0 || sel.Selection.To != 0 || len(sel.Selection.Ranks) > 0 || len(sel.Selection.Hosts) > 0
	in.Series, in.Flight, in.Heap, in.Experts = e.Series, e.Flight, e.Heap, e.Experts
	if len(e.Profiles.Ranks) > 0 {
		in.Profiles = &e.Profiles
	}
	return func() { e.Close() }, nil
}

func hostClocks(report *clocks.Report) []overview.HostClock {
	if report == nil {
		return nil
	}
	list := make([]overview.HostClock, len(report.Clocks))
	for i, l := range report.Clocks {
		list[i] = overview.HostClock{Host: l.Of(), Why: l.Why, By: l.By, Offset: l.Offset, Bound: l.Bound, Drift: l.DriftPPB, Most: l.Most(), Lopsided: l.Lopsided()}
	}
	return list
}

// reportPage writes a report as a page.
func (c *command) reportPage(ctx *cli.Context, r *reports.Report) error {
	files, err := findInputs(ctx, ctx.Args().Slice())
	if err != nil {
		return err
	}
	pageOf := summaryPage
	if r.Runs {
		pageOf = weeksPage
	}
	drawer, err := pageOf(ctx)
	if err != nil {
		return err
	}
	var failed error
	given := c.given(ctx, ctx.Args().Slice())
	err = c.writePage(ctx, files, given, drawer.args, func(made page.Provenance) (p page.Page, err error) {
		in, done, err := c.reading(ctx, r.Drawn())
		if err != nil {
			return p, err
		}
		defer done()
		p, failed, err = drawer.draw(in, made, c.commandLine(ctx, drawer.args, given))
		return p, err
	})
	return cmp.Or(err, failed)
}

// eachRun returns a function that reads the runs one after another: see [command.readRuns].
func (c *command) eachRun(ctx *cli.Context, what needed) func(func(*reports.OneRun)) error {
	return func(reduce func(*reports.OneRun)) error { return c.readRuns(ctx, what, reduce) }
}

// readRuns divides the inputs into runs and calls reduce for each run that overlaps the selected window of
// time. Runs without anything selected are left out; it is an error if none remains.
func (c *command) readRuns(ctx *cli.Context, what needed, reduce func(*reports.OneRun)) error {
	sel, err := commandline.Read(ctx)
	if err != nil {
		return err
	}
	files, err := findInputs(ctx, ctx.Args().Slice())
	if err != nil {
		return err
	}
	list, err := inputs.Runs(files, inputs.Options{Stdin: c.in, Meter: c.screen.Reading(size(files))}, c.tellOf(what))
	if err != nil {
		return err
	}
	last := slices.MaxFunc(list, func(a, b inputs.Run) int { return cmp.Compare(a.To, b.To) }).To
	from, to, err := sel.Bounds(list[0].From, last)
	if err != nil {
		return err
	}
	what.anyTime = true
	nothing := fmt.Errorf("--from and --to select nothing: the runs %s", words.Were(list[0].From, last))
	read := 0
	for _, run := range list {
		if from != 0 && run.To < from || to != 0 && run.From > to {
			continue
		}
		if err := c.readRun(ctx, run, what, reduce); err != nil {
			nothing = err
			continue
		}
		read++
	}
	if read == 0 {
		return nothing
	}
	return nil
}

// readRun reads one run.
func (c *command) readRun(ctx *cli.Context, run inputs.Run, what needed, reduce func(*reports.OneRun)) error {
	sel, err := commandline.Read(ctx)
	if err != nil {
		return err
	}
	e, err := c.readFound(ctx, sel, run.Inputs, what)
	if err != nil {
		return err
	}
	defer e.Close()
	in := &reports.OneRun{From: run.From, To: run.To, Inputs: len(run.Inputs), Requests: e.Requests}
	if len(e.Profiles.Ranks) > 0 {
		in.Profiles = &e.Profiles
	}
	reduce(in)
	return nil
}
