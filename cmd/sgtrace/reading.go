package main

import (
	"errors"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/annotate"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/reports"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/convert/drawing"
	"github.com/sgtrace/sgtrace/convert/inputs"
	"github.com/sgtrace/sgtrace/convert/ranks"
	"github.com/sgtrace/sgtrace/format/inventory"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// needed says what a report needs from profiles.
type needed struct {
	events profile.Filter
	data   convert.ReportOptions
	// anyTime ignores --from and --to, which the caller applies.
	anyTime bool
	// within is the time for which the caller needs requests, with anyTime; others need not be read.
	within commandline.Window
	// aside says that the inputs were read before, so nothing is reported about them again.
	aside bool
	// inventory receives what profile files say about themselves; may be nil.
	inventory *inventory.Inventory
	// captures says to look for recordings of CUDA graph capture beside the inputs.
	captures bool
}

// readInputs reads the inputs of any kind that arguments name, limited to the requests and the window of
// time that the selection flags choose.
func (c *command) readInputs(ctx *cli.Context, args []string, what needed) (*convert.ReportData, *commandline.Selected, error) {
	sel, err := commandline.Read(ctx)
	if err != nil {
		return nil, nil, err
	}
	files, err := findInputs(ctx, args)
	if err != nil {
		return nil, nil, err
	}
	var captures []inputs.Input
	if what.captures {
		if files, captures, err = splitCaptures(ctx, files); err != nil {
			return nil, nil, err
		}
	}
	if what.events.Args == profile.ArgsNone && len(inputs.Annotations(captures)) > 0 { // annotations are found by node numbers only
		what.events.Args = profile.ArgsMin
	}
	if len(captures) > 0 && what.events.Args == profile.ArgsMin {
		what.events.ArgCats = append(slices.Clone(what.events.ArgCats), profile.KernelCategory)
		what.events.ArgNames = append(slices.Clone(what.events.ArgNames), profile.NodeArgument)
	}
	e, err := c.readFound(ctx, sel, files, what)
	if err == nil && len(captures) > 0 {
		err = c.addCaptures(ctx, e, captures)
	}
	return e, sel, err
}

// splitCaptures separates recordings of CUDA graph capture from other inputs: those of --captures, or else
// those among the inputs or beside them.
func splitCaptures(ctx *cli.Context, files []inputs.Input) (others, captures []inputs.Input, err error) {
	others, captures = inputs.SplitCaptures(files)
	if given := ctx.StringSlice("captures"); len(given) > 0 {
		annotations := inputs.Annotations(captures)
		if captures, err = inputs.Find(given, ctx.StringSlice("exclude")...); err != nil {
			return nil, nil, err
		}
		captures = inputs.Unique(append(captures, annotations...))
		// A file that is named as an input is one, even if it is in the captures' folder.
		captures = slices.DeleteFunc(captures, func(in inputs.Input) bool {
			same := func(arg string) bool { return filepath.Clean(arg) == filepath.Clean(in.Name) }
			return slices.ContainsFunc(ctx.Args().Slice(), same) && !slices.ContainsFunc(given, same)
		})
		others = slices.DeleteFunc(others, func(in inputs.Input) bool { return slices.Contains(inputs.Names(captures), in.Name) })
	}
	return others, captures, nil
}

// captureEvents are the events that are read from recordings of CUDA graph capture.
var captureEvents = profile.Filter{Cats: reports.HostEvents, Args: profile.ArgsMin, ArgCats: slices.Concat(profile.CallCategories, []string{profile.OperatorCategory}),
	ArgNames: append([]string{profile.ConcreteInputs}, profile.LaunchArguments...)}

// addCaptures reads recordings of CUDA graph capture and adds them to e.
func (c *command) addCaptures(ctx *cli.Context, e *convert.ReportData, files []inputs.Input) error {
	captures, err := c.readGraphCaptures(ctx, files, &e.Profiles)
	if err != nil {
		return errors.Join(err, e.Close())
	}
	if captures != nil {
		e.AddCaptures(captures, inputs.CaptureSizes(files))
	}
	return nil
}

// readGraphCaptures reads recordings of CUDA graph capture; nil if they hold nothing. It stores the annotations of
// graph nodes among them in set. Unusable files are reported, and their graphs stay without operators.
func (c *command) readGraphCaptures(ctx *cli.Context, files []inputs.Input, set *profile.Set) (*convert.ReportData, error) {
	c.read = append(c.read, inputs.Annotations(files)...)
	if files, set.Annotations = inputs.ReadAnnotations(files, &c.diags); len(files) == 0 {
		return nil, nil
	}
	opt := inputs.Options{Filter: captureEvents, Walk: true, Zone: c.givenZone(ctx)}
	in, of, err := convert.Read(files, opt, ranks.Options{}, &c.diags)
	if errors.Is(err, inputs.ErrNoEvents) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.read = append(c.read, in.Used...)
	return convert.ForReports(in, of, convert.ReportOptions{})
}

// addNested adds the modules and operators that launched the kernels of CUDA graphs to a timeline.
func (c *command) addNested(ctx *cli.Context, opt *drawing.Options, set *profile.Set, files []inputs.Input) error {
	if set == nil || !graphs.LaunchesGraphs(set) {
		return nil
	}
	c.screen.Doing("looking for the operators of CUDA graphs")
	if len(files) > 0 {
		captures, err := c.readGraphCaptures(ctx, files, set)
		if err != nil {
			return err
		}
		if captures != nil {
			defer captures.Close()
			set.Captures = &profile.GraphCaptures{Set: captures.Profiles, Sizes: inputs.CaptureSizes(files)}
		}
	}
	annotate.Graphs(opt, set)
	return nil
}

// readFound is [command.readInputs] for inputs that were found before. It completes sel.
func (c *command) readFound(ctx *cli.Context, sel *commandline.Selected, files []inputs.Input, what needed) (*convert.ReportData, error) {
	picked := *sel
	if what.anyTime {
		sel.Window, picked.Window = commandline.Window{}, what.within
	}
	meter := c.screen.Reading(size(files))
	opt := inputs.Options{Stdin: c.in, Meter: meter, Filter: what.events, Walk: true, Inventory: what.inventory, Zone: c.givenZone(ctx),
		Pick: wantedTraces(&picked, nil, false)}
	c.collectEarly(50)
	in, of, err := convert.Read(files, opt, ranks.Options{Ranks: sel.Selection.Ranks, Hosts: sel.Selection.Hosts}, c.tellOf(what))
	c.screen.Doing("matching ranks and clocks")
	if err != nil {
		return nil, err
	}
	if !what.aside {
		c.read = append(c.read, in.Used...)
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

// tellOf returns where to report problems of inputs.
func (c *command) tellOf(what needed) *trace.Diags {
	if what.aside {
		return &trace.Diags{}
	}
	return &c.diags
}

// choose applies the selection flags.
func (c *command) choose(ctx *cli.Context, e *convert.ReportData, sel *commandline.Selected) error {
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
	there := commandline.ChoicesOf(e.Requests, sel)
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
