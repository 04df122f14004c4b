package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/convert/inputs"
)

// eachRun returns a reader of one run after another: see [command.readRuns].
func (c *command) eachRun(ctx *cli.Context, what needed) func(func(*reports.OneRun)) error {
	return func(reduce func(*reports.OneRun)) error { return c.readRuns(ctx, what, reduce) }
}

// readRuns divides the inputs into runs and lets reduce look at one after another: at those
// that overlap the window of time that is selected. A run in which nothing is of the selection
// is left out, unless none is left.
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
