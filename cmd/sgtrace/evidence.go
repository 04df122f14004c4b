package main

import (
	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/selection"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/inventory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// needed is what a report needs of what profilers recorded.
type needed struct {
	events profile.Filter
	data   convert.ReportOptions
	// anyTime tells to select by everything but --from and --to, which the caller applies.
	anyTime bool
	// within is when the caller looks at requests, with anyTime: others need not be read.
	within selection.Window
	// aside tells that all has been read before: nothing is said about inputs again.
	aside bool
	// inventory gets what files of profilers say about themselves; nil gets nothing.
	inventory *inventory.Inventory
}

// readEvidence reads inputs of any kind, and the requests and the window of time
// that the selection flags choose.
func (c *command) readEvidence(ctx *cli.Context, what needed) (*convert.ReportData, *selection.Chosen, error) {
	return c.readInputs(ctx, ctx.Args().Slice(), what)
}

// readInputs is readEvidence for some of the arguments.
func (c *command) readInputs(ctx *cli.Context, args []string, what needed) (*convert.ReportData, *selection.Chosen, error) {
	sel, err := selection.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	files, err := findInputs(ctx, args)
	if err != nil {
		return nil, nil, err
	}
	e, err := c.readFound(ctx, sel, files, what)
	return e, sel, err
}

// readFound is readEvidence for inputs that were found. It completes sel.
func (c *command) readFound(ctx *cli.Context, sel *selection.Chosen, files []inputs.Input, what needed) (*convert.ReportData, error) {
	picked := *sel
	if what.anyTime {
		sel.Window, picked.Window = selection.Window{}, what.within
	}
	meter := c.screen.Reading(size(files))
	opt := inputs.Options{Stdin: c.in, Meter: meter, Filter: what.events, Walk: true, Inventory: what.inventory,
		Pick: pick(&picked, nil, false)}
	c.collectEarly()
	in, of, err := convert.Read(files, opt, ranks.Options{Ranks: sel.Selection.Ranks, Hosts: sel.Selection.Hosts}, c.tellOf(what))
	c.screen.Doing("matching ranks and clocks")
	if err != nil {
		return nil, err
	}
	if !what.aside {
		c.read = append(c.read, in.Taken...)
	}
	e, err := convert.ForReports(in, of, what.data)
	if err != nil {
		return nil, err
	}
	if err := c.choose(ctx, e, sel); err != nil {
		e.Close()
		return nil, err
	}
	e.LeaveOutside(sel.Selection.From, sel.Selection.To)
	c.redactEvidence(e)
	c.screen.Doing("analyzing")
	return e, nil
}

// tellOf is where to say what is wrong with inputs.
func (c *command) tellOf(what needed) *trace.Diags {
	if what.aside {
		return &trace.Diags{}
	}
	return &c.diags
}

// choose applies the selection flags.
func (c *command) choose(ctx *cli.Context, e *convert.ReportData, sel *selection.Chosen) error {
	if err := sel.Resolve(e.First, e.Last); err != nil {
		return err
	}
	if e.Requests == nil {
		for _, name := range reports.AboutRequests {
			if ctx.IsSet(name) {
				return commandline.Usage("--%s selects requests, but no input is an OTLP dump", name)
			}
		}
		return nil
	}
	e.OnOneClock()
	there := selection.ChoicesOf(e.Requests, sel)
	if err := e.Requests.Select(sel.Selection); err != nil {
		return err
	}
	if !e.Requests.Any() {
		e.Requests = nil
	}
	if e.Requests == nil && len(e.Profiles.Ranks) == 0 {
		return there.Nothing(ctx, sel)
	}
	return nil
}
