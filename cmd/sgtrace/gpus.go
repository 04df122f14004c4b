package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze"
	"github.com/sgtrace/sgtrace/profile"
)

// mostKernels is how many rows of kernels by rank people get to see.
const mostKernels = 20

// reportGPUs prints what devices were busy with: several tables, of which CSV has
// room for the first.
func (c *command) reportGPUs(ctx *cli.Context, r *profileReport) error {
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
	if ctx.IsSet("sort") {
		return usage("--sort has no meaning with --gpus, which prints several tables")
	}
	set, sel, err := c.readProfiles(ctx, r)
	if err != nil {
		return err
	}
	defer set.Close()
	opt.From, opt.To = sel.From, sel.To
	gpus := analyze.MeasureGPUs(&set.Set, opt)
	reports := []*analyze.Report{gpus.Report(), gpus.IdleReport(), gpus.OverlapReport(), gpus.StreamReport()}
	if steps := gpus.StepReport(); steps.Len() > 0 {
		reports = append(reports, steps)
	}
	kernels := gpus.KernelReport()
	if err := arrange(ctx, kernels, peopleOnly(f, mostKernels)); err != nil {
		return err
	}
	if f == analyze.FormatCSV {
		return c.print(f, reports[0])
	}
	return c.printAll(f, append(reports, kernels))
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
