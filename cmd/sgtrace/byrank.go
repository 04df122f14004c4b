package main

import (
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/collective"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/rank"
	"github.com/sgtrace/sgtrace/analyze/requests"
	"github.com/sgtrace/sgtrace/analyze/straggler"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert"
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
	b := &reportTables{}
	opt.From, opt.To = sel.From, sel.To
	if err := b.addRanks(e, opt); err != nil {
		return err
	}
	return c.printTables(ctx, f, b)
}

// addRanks adds the verdict about stragglers first, then what requests tell about ranks,
// then what profilers do.
func (b *reportTables) addRanks(e *convert.Evidence, opt gpu.Options) error {
	var ranks *rank.Ranks
	var gpus *gpu.GPUs
	var collectives *collective.Collectives
	if e.Requests != nil {
		ranks = rank.Measure(e.Requests)
	}
	if len(e.Ranks) > 0 {
		gpus, collectives = gpu.Measure(&e.Set, opt), collective.Measure(&e.Set, opt.From, opt.To)
	}
	var suspects []straggler.Suspects
	if collectives != nil {
		found := collectives.Stragglers(gpus)
		suspects = append(suspects, straggler.Suspects{Stragglers: found, Acquittal: collectives.Verdict(found)})
	}
	if ranks != nil {
		suspects = append(suspects, straggler.Suspects{Stragglers: ranks.Stragglers(), Acquittal: []string{ranks.Verdict()}})
	}
	b.tables = append(b.tables, straggler.Find(suspects...).Report())
	if gpus != nil {
		b.main, b.most = gpus.KernelReport(), mostKernels
		b.add(collectives.Reports()...)
		b.add(gpus.Report(), gpus.IdleReport())
		if len(gpus.StepShares()) > 0 {
			b.add(gpus.StepShareReport())
		}
		b.add(gpus.OverlapReport(), gpus.StreamReport(), gpus.StepReport(), b.main)
	}
	if ranks != nil {
		by, err := requests.ParseDimensions("rank")
		if err != nil {
			return err
		}
		b.add(ranks.Reports()...)
		b.main, b.most = requests.GroupStages(e.Requests, by).Report(), 0
		b.add(b.main)
	}
	return nil
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
