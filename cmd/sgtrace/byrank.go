package main

import (
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/rank"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
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
	opt := gpu.Options{}
	if name := ctx.String("classes"); name != "" {
		if opt.Classes, err = classes(name); err != nil {
			return err
		}
	}
	for _, name := range slices.Concat(tailOnly, timelineOnly, []string{"latency", "by-stage", "by-request", "by"}) {
		if ctx.IsSet(name) {
			return commandline.Usage("--%s has no meaning with --by-rank", name)
		}
	}
	e, sel, err := c.readEvidence(ctx, everything())
	if err != nil {
		return err
	}
	defer e.Close()
	opt.From, opt.To = sel.From, sel.To
	d, most := &document.Document{Schema: "sgtrace.report.ranks/v2"}, 0
	var gpus *gpu.GPUs
	var collectives *collective.Collectives
	if len(e.Ranks) > 0 {
		gpus, collectives = gpu.Measure(&e.Set, opt), collective.Measure(&e.Set, opt.From, opt.To)
	}
	var ranks *rank.Ranks
	if e.Requests != nil {
		ranks = rank.Measure(e.Requests)
	}
	var suspects []straggler.Suspects
	if collectives != nil {
		found := collectives.Stragglers(gpus)
		suspects = append(suspects, straggler.Suspects{Stragglers: found, Acquittal: collectives.Verdict(found)})
	}
	if ranks != nil {
		suspects = append(suspects, straggler.Suspects{Stragglers: ranks.Stragglers(), Acquittal: []string{ranks.Verdict()}})
	}
	d.Add(straggler.Find(suspects...).Report())
	if gpus != nil {
		d.Add(collectives.Reports()...)
		d.Add(gpus.Report(), gpus.IdleReport())
		if len(gpus.StepShares()) > 0 {
			d.Add(gpus.StepShareReport())
		}
		d.Add(gpus.OverlapReport(), gpus.StreamReport(), gpus.StepReport())
		d.AddMain(gpus.KernelReport())
		most = mostKernels
	}
	if ranks != nil {
		by, err := requests.ParseDimensions("rank")
		if err != nil {
			return err
		}
		d.Add(ranks.Reports()...)
		d.AddMain(requests.GroupStages(e.Requests, by).Report())
		most = 0
	}
	return c.write(ctx, f, d, most)
}

// classes returns the classes of kernels that --classes names: "hta" are those of
// Holistic Trace Analysis, all else is a file.
func classes(name string) (*profile.Classes, error) {
	if name == "hta" {
		return profile.HTAClasses(), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, commandline.Usage("--classes: %v", err)
	}
	defer f.Close()
	list, err := profile.ReadClasses(f, name)
	if err != nil {
		return nil, commandline.Usage("--classes: %v", err)
	}
	return list, nil
}
