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
	e, sel, err := c.readEvidence(ctx, everything())
	if err != nil {
		return err
	}
	defer e.Close()
	b := &board{}
	opt.From, opt.To = sel.From, sel.To
	if err := b.addRanks(e, opt); err != nil {
		return err
	}
	return c.printBoard(ctx, f, b)
}

// everything says what reports about all that is known need of inputs.
func everything() convert.ReadOptions {
	return convert.ReadOptions{Filter: profile.Filter{Cats: rangeCats, Args: profile.ArgsNone}, Meetings: true}
}

// addRanks adds the verdict about stragglers first, then what requests tell about ranks,
// then what profilers do.
func (b *board) addRanks(e *convert.Evidence, opt analyze.GPUOptions) error {
	var ranks *analyze.Ranks
	var gpus *analyze.GPUs
	var collectives *analyze.Collectives
	if e.Requests != nil {
		ranks = analyze.MeasureRanks(e.Requests)
	}
	if len(e.Ranks) > 0 {
		gpus, collectives = analyze.MeasureGPUs(&e.Set, opt), analyze.MeasureCollectives(&e.Set, opt.From, opt.To)
	}
	b.tables = append(b.tables, analyze.FindStragglers(ranks, collectives, gpus).Report())
	if gpus != nil {
		b.main, b.most = gpus.KernelReport(), mostKernels
		b.add(collectives.Reports()...)
		b.add(gpus.Report(), gpus.IdleReport(), gpus.OverlapReport(), gpus.StreamReport(), gpus.StepReport(), b.main)
	}
	if ranks != nil {
		by, err := analyze.ParseDimensions("rank")
		if err != nil {
			return err
		}
		b.add(ranks.Reports()...)
		b.main, b.most = analyze.GroupStages(e.Requests, by).Report(), 0
		b.add(b.main)
	}
	return nil
}

// readEvidence reads inputs of any kind, and the requests and the window of time
// that the selection flags choose.
func (c *command) readEvidence(ctx *cli.Context, opt convert.ReadOptions) (*convert.Evidence, *chosen, error) {
	return c.readInputs(ctx, ctx.Args().Slice(), opt)
}

// readInputs is readEvidence for some of the arguments.
func (c *command) readInputs(ctx *cli.Context, args []string, opt convert.ReadOptions) (*convert.Evidence, *chosen, error) {
	sel, err := selection(ctx)
	if err != nil {
		return nil, nil, err
	}
	inputs, err := convert.Inputs(args)
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
	c.redactEvidence(e)
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
	e.Requests = e.Requests.OnOneClock()
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
