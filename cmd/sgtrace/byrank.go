package main

import (
	"errors"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/internal/progress"
	"github.com/sgtrace/sgtrace/profile"
)

// rankReportFlags are the flags of the report by rank.
func rankReportFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "classes", Category: profileCategory,
			Usage: "of kernels, for --by-rank: `FILE` with lines such as 'communication my_allreduce', or hta for those of Holistic Trace Analysis"},
	}
}

// mostKernels is how many rows of kernels by rank people get to see.
const mostKernels = 20

// reportRanks compares the ranks of all inputs, of whatever kind.
func (c *command) reportRanks(ctx *cli.Context) error {
	f, err := format(ctx)
	if err != nil {
		return err
	}
	opt := analyze.GPUOptions{}
	if name := ctx.String("classes"); name != "" {
		if opt.Classes, err = classes(name); err != nil {
			return err
		}
	}
	for _, name := range slices.Concat(tailOnly, timelineOnly, []string{"latency", "by-stage", "by-request", "by"}) {
		if ctx.IsSet(name) {
			return usage("--%s has no meaning with --by-rank", name)
		}
	}
	e, sel, err := c.readEvidence(ctx, convert.ReadOptions{Filter: profile.Filter{Cats: rangeCats, Args: profile.ArgsNone}, Meetings: true})
	if err != nil {
		return err
	}
	defer e.Close()
	b := &board{}
	if len(e.Ranks) > 0 {
		opt.From, opt.To = sel.From, sel.To
		gpus := analyze.MeasureGPUs(&e.Set, opt)
		b.main, b.most = gpus.KernelReport(), mostKernels
		b.add(gpus.Report(), gpus.IdleReport(), gpus.OverlapReport(), gpus.StreamReport(), gpus.StepReport(), b.main)
	}
	if e.Requests != nil {
		stages, err := analyze.ParseDimensions("rank")
		if err != nil {
			return err
		}
		b.main, b.most = analyze.GroupStages(e.Requests, stages).Report(), 0
		b.add(b.main)
	}
	return c.printBoard(ctx, f, b)
}

// readEvidence reads inputs of any kind, and the requests and the window of time
// that the selection flags choose.
func (c *command) readEvidence(ctx *cli.Context, opt convert.ReadOptions) (*convert.Evidence, *chosen, error) {
	sel, err := selection(ctx)
	if err != nil {
		return nil, nil, err
	}
	inputs, err := convert.Inputs(ctx.Args().Slice())
	if err != nil {
		return nil, nil, err
	}
	if len(inputs) == 0 {
		return nil, nil, usage("no input; give OTLP dumps, PyTorch traces and Nsight Systems exports: files, globs, directories or - for standard input")
	}
	meter := progress.New(c.err, progress.IsTerminal(c.err), size(convert.Names(inputs)))
	opt.Stdin, opt.Meter, opt.Ranks, opt.Hosts = c.in, meter, sel.ranks, sel.Hosts
	c.collectEarly()
	e, err := convert.ReadEvidence(inputs, opt, &c.diags)
	meter.Done()
	if err != nil {
		return nil, nil, err
	}
	if err := c.choose(ctx, e, sel); err != nil {
		e.Close()
		return nil, nil, err
	}
	return e, sel, nil
}

// choose applies the selection flags.
func (c *command) choose(ctx *cli.Context, e *convert.Evidence, sel *chosen) error {
	if err := sel.resolve(e.First); err != nil {
		return err
	}
	if e.Requests == nil {
		for _, name := range requestSelection() {
			if ctx.IsSet(name) {
				return usage("--%s is about requests; there is no OTLP dump among the inputs", name)
			}
		}
		return nil
	}
	if err := e.Requests.Select(sel.Selection); err != nil {
		return err
	}
	if !e.Requests.Any() {
		e.Requests = nil
	}
	if e.Requests == nil && len(e.Ranks) == 0 {
		return errors.New("the selection leaves nothing; 'sgtrace inspect' shows hosts, ranks and times")
	}
	return nil
}

// requestSelection names the selection flags that say nothing about what profilers
// recorded.
func requestSelection() (names []string) {
	window := windowFlags()
	for _, flag := range selectionFlags() {
		name := flag.Names()[0]
		if !slices.ContainsFunc(window, func(w cli.Flag) bool { return w.Names()[0] == name }) {
			names = append(names, name)
		}
	}
	return names
}

// classes returns the classes of kernels that --classes names: "hta" are those of
// Holistic Trace Analysis, all else is a file.
func classes(name string) (*profile.Classes, error) {
	if name == "hta" {
		return profile.HTAClasses(), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, usage("--classes: %v", err)
	}
	defer f.Close()
	list, err := profile.ReadClasses(f, name)
	if err != nil {
		return nil, usage("--classes: %v", err)
	}
	return list, nil
}
