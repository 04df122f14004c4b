package main

import (
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/document"
	"github.com/sgtrace/sgtrace/analyze/kernel"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/cmd/sgtrace/internal/commandline"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/profile"
)

// A profileReport is a report about what profilers recorded.
type profileReport struct {
	flag, usage string
	cats        []string // events that it is about, in PyTorch's terms
	args        profile.ArgsMode
	attribute   bool   // work is attributed to ranges
	rows        string // what it lists, for inputs that have none
	sum         func(*profile.Set, walk.Options) *table.Table
}

// Categories of events that reports are about.
var (
	kernelCats = []string{profile.KernelCategory}
	launchCats = slices.Concat(kernelCats, profile.CallCategories)
	rangeCats  = slices.Concat(launchCats, profile.CopyCategories, []string{profile.AnnotationCategory})
)

var profileReports = []profileReport{
	{"kernels", "GPU time of every kernel, as cuda_gpu_kern_sum of nsys", kernelCats, profile.ArgsNone, false, "kernels",
		reporter(kernel.SumKernels)},
	{"launches", "kernels with the calls that launched them: API time, queueing, kernel time, as cuda_kern_exec_sum", launchCats, profile.ArgsNone, false, "kernels",
		reporter(kernel.SumLaunches)},
	{"api", "calls into the CUDA runtime and driver, as cuda_api_sum", profile.CallCategories, profile.ArgsNone, false, "calls into the runtime or driver of a device",
		reporter(kernel.SumCalls)},
	{"memcpy", "copies: time and bytes, as cuda_gpu_mem_time_sum and cuda_gpu_mem_size_sum", profile.CopyCategories, profile.ArgsMin, false, "copies or fills of memory",
		reporter(kernel.SumCopies)},
	{"nvtx", "NVTX ranges and PyTorch's annotations, and the GPU time of what was launched in them, as nvtx_sum and nvtx_gpu_proj_sum", rangeCats, profile.ArgsNone, true, "NVTX ranges or annotations",
		reporter(kernel.SumRanges)},
	{"nvtx-kernels", "the kernels that were launched in every range, as nvtx_kern_sum", rangeCats, profile.ArgsNone, true, "kernels",
		reporter(kernel.SumRangeKernels)},
}

// reporter makes reports of sums.
func reporter[S interface{ Report() *table.Table }](sum func(*profile.Set, walk.Options) S) func(*profile.Set, walk.Options) *table.Table {
	return func(s *profile.Set, o walk.Options) *table.Table { return sum(s, o).Report() }
}

// profileFlags are the flags of profileReports.
func profileFlags() []cli.Flag {
	var flags []cli.Flag
	for _, r := range profileReports {
		flags = append(flags, &cli.BoolFlag{Name: r.flag, Usage: r.usage, Category: profileCategory, DisableDefaultText: true})
	}
	return append(flags, &cli.BoolFlag{Name: "open-ranges", Category: profileCategory, DisableDefaultText: true,
		Usage: "count ranges that were never closed, too: they end with the recording"})
}

const profileCategory = "Of PyTorch traces and Nsight Systems exports:"

// mostRows is how many rows people get to see without asking for more: ranges and
// kernels make tens of thousands.
const mostRows = 100

// chosenProfileReport returns the report about profiles that the flags ask for, nil
// if that is none.
func chosenProfileReport(ctx *cli.Context) (*profileReport, error) {
	var chosen *profileReport
	for i := range profileReports {
		r := &profileReports[i]
		switch {
		case !ctx.Bool(r.flag):
		case chosen != nil:
			return nil, commandline.Usage("--%s and --%s exclude each other", chosen.flag, r.flag)
		default:
			chosen = r
		}
	}
	if chosen == nil {
		if ctx.Bool("open-ranges") {
			return nil, commandline.Usage("--open-ranges goes with --nvtx and --nvtx-kernels")
		}
		return nil, nil
	}
	requestOnly := slices.Concat(requestSelection(), tailOnly, timelineOnly, []string{"latency", "by-stage", "by-request", "by", "classes", "table"})
	for _, name := range requestOnly {
		if ctx.IsSet(name) {
			return nil, commandline.Usage("--%s has no meaning with --%s", name, chosen.flag)
		}
	}
	return chosen, nil
}

// reportProfiles prints a report about PyTorch traces and Nsight Systems exports.
func (c *command) reportProfiles(ctx *cli.Context, r *profileReport) error {
	f, err := format(ctx)
	if err != nil {
		return err
	}
	what := needed{profile.Filter{Cats: r.cats, Args: r.args}, convert.EvidenceOptions{Attribute: r.attribute}}
	e, sel, err := c.readEvidence(ctx, what)
	if err != nil {
		return err
	}
	defer e.Close()
	if len(e.Ranks) == 0 {
		return errors.New("no input is a PyTorch trace or an Nsight Systems export")
	}
	report := r.sum(&e.Set, walk.Options{ByRank: ctx.Bool("by-rank"), Open: ctx.Bool("open-ranges"), From: sel.From, To: sel.To})
	if report.Len() == 0 && (sel.From != 0 || sel.To != 0 || len(sel.Ranks) > 0 || len(sel.Hosts) > 0) {
		return errNothingSelected
	}
	if report.Len() == 0 && len(report.Footnotes) == 0 {
		report.Footnotes = []string{"no " + r.rows + " are in the inputs; 'sgtrace inspect' lists what is"}
	}
	d := &document.Document{Schema: "sgtrace.report." + r.flag + "/v2"}
	d.AddMain(report)
	return c.write(ctx, f, d, mostRows)
}

// peopleOnly returns the number of rows that are printed unless told otherwise: all
// for programs.
func peopleOnly(f table.Format, rows int) int {
	if f == table.FormatText || f == table.FormatMarkdown {
		return rows
	}
	return 0
}
