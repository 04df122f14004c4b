package main

import (
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze"
	"github.com/sgtrace/sgtrace/convert"
	"github.com/sgtrace/sgtrace/internal/progress"
	"github.com/sgtrace/sgtrace/profile"
)

// A profileReport is a report about what profilers recorded.
type profileReport struct {
	flag, usage string
	cats        []string // events that it is about, in PyTorch's terms
	args        profile.ArgsMode
	attribute   bool // work is attributed to ranges
	// sum makes the report; nil is that of reportGPUs, which has more than one table.
	sum func(*profile.Set, analyze.SumOptions) *analyze.Report
}

// Categories of events that reports are about.
var (
	kernelCats = []string{profile.KernelCategory}
	launchCats = slices.Concat(kernelCats, profile.CallCategories)
	rangeCats  = slices.Concat(launchCats, profile.CopyCategories, []string{profile.AnnotationCategory})
)

var profileReports = []profileReport{
	{"kernels", "GPU time of every kernel, as cuda_gpu_kern_sum of nsys", kernelCats, profile.ArgsNone, false,
		reporter(analyze.SumKernels)},
	{"launches", "kernels with the calls that launched them: API time, queueing, kernel time, as cuda_kern_exec_sum", launchCats, profile.ArgsNone, false,
		reporter(analyze.SumLaunches)},
	{"api", "calls into the CUDA runtime and driver, as cuda_api_sum", profile.CallCategories, profile.ArgsNone, false,
		reporter(analyze.SumCalls)},
	{"memcpy", "copies: time and bytes, as cuda_gpu_mem_time_sum and cuda_gpu_mem_size_sum", profile.CopyCategories, profile.ArgsMin, false,
		reporter(analyze.SumCopies)},
	{"nvtx", "NVTX ranges and PyTorch's annotations, and the GPU time of what was launched in them, as nvtx_sum and nvtx_gpu_proj_sum", rangeCats, profile.ArgsNone, true,
		reporter(analyze.SumRanges)},
	{"nvtx-kernels", "the kernels that were launched in every range, as nvtx_kern_sum", rangeCats, profile.ArgsNone, true,
		reporter(analyze.SumRangeKernels)},
	{"gpus", "what the GPUs of every rank were busy with: compute, communication, copies, idle and why; launch delays, steps, kernels that take longer on a rank than on others",
		rangeCats, profile.ArgsNone, false, nil},
}

// reporter makes reports of sums.
func reporter[S interface{ Report() *analyze.Report }](sum func(*profile.Set, analyze.SumOptions) S) func(*profile.Set, analyze.SumOptions) *analyze.Report {
	return func(s *profile.Set, o analyze.SumOptions) *analyze.Report { return sum(s, o).Report() }
}

// profileFlags are the flags of profileReports.
func profileFlags() []cli.Flag {
	const category = "Of PyTorch traces and Nsight Systems exports:"
	var flags []cli.Flag
	for _, r := range profileReports {
		flags = append(flags, &cli.BoolFlag{Name: r.flag, Usage: r.usage, Category: category, DisableDefaultText: true})
	}
	return append(flags,
		&cli.StringFlag{Name: "classes", Category: category,
			Usage: "of kernels, for --gpus: `FILE` with lines such as 'communication my_allreduce', or hta for those of Holistic Trace Analysis"},
		&cli.BoolFlag{Name: "open-ranges", Category: category, DisableDefaultText: true,
			Usage: "count ranges that were never closed, too: they end with the recording"})
}

// mostRows is how many rows people get to see without asking for more: ranges and
// kernels make tens of thousands.
const mostRows = 100

// requestOnly are the flags that say nothing about what profilers recorded.
var requestOnly = []string{"latency", "by-stage", "by-request", "by", "rid", "room", "trace", "slowest", "sample", "role", "stage", "min-dur", "level", "tail", "metric", "timeline", "bucket"}

// chosenProfileReport returns the report about profiles that the flags ask for, nil
// if that is none.
func chosenProfileReport(ctx *cli.Context) (*profileReport, error) {
	var chosen *profileReport
	for i := range profileReports {
		r := &profileReports[i]
		switch {
		case !ctx.Bool(r.flag):
		case chosen != nil:
			return nil, usage("--%s and --%s exclude each other", chosen.flag, r.flag)
		default:
			chosen = r
		}
	}
	if chosen == nil {
		if ctx.Bool("open-ranges") || ctx.IsSet("classes") {
			return nil, usage("--open-ranges goes with --nvtx and --nvtx-kernels, --classes with --gpus")
		}
		return nil, nil
	}
	for _, name := range requestOnly {
		if ctx.IsSet(name) {
			return nil, usage("--%s is about requests; --%s is about what profilers recorded", name, chosen.flag)
		}
	}
	return chosen, nil
}

// reportProfiles prints a report about PyTorch traces and Nsight Systems exports.
func (c *command) reportProfiles(ctx *cli.Context, r *profileReport) error {
	if r.sum == nil {
		return c.reportGPUs(ctx, r)
	}
	f, err := format(ctx)
	if err != nil {
		return err
	}
	set, sel, err := c.readProfiles(ctx, r)
	if err != nil {
		return err
	}
	defer set.Close()
	report := r.sum(&set.Set, analyze.SumOptions{ByRank: ctx.Bool("by-rank"), Open: ctx.Bool("open-ranges"), From: sel.From, To: sel.To})
	if report.Len() == 0 && (sel.From != 0 || sel.To != 0 || len(sel.Ranks) > 0 || len(sel.Hosts) > 0) {
		return errors.New("the selection leaves nothing; 'sgtrace inspect' shows hosts, ranks and times")
	}
	if err := arrange(ctx, report, peopleOnly(f, mostRows)); err != nil {
		return err
	}
	return c.print(f, report)
}

// peopleOnly returns the number of rows that are printed unless told otherwise: all
// for programs.
func peopleOnly(f analyze.Format, rows int) int {
	if f == analyze.FormatText || f == analyze.FormatMarkdown {
		return rows
	}
	return 0
}

// readProfiles reads what a report needs, and the window of time it is about.
func (c *command) readProfiles(ctx *cli.Context, r *profileReport) (*convert.Profiles, *chosen, error) {
	sel, err := selection(ctx)
	if err != nil {
		return nil, nil, err
	}
	inputs, err := convert.Inputs(ctx.Args().Slice())
	if err != nil {
		return nil, nil, err
	}
	if len(inputs) == 0 {
		return nil, nil, usage("no input; give PyTorch traces and Nsight Systems exports: files, globs or directories")
	}
	opt := convert.ReadOptions{Stdin: c.in, Filter: profile.Filter{Cats: r.cats, Args: r.args}, Ranks: sel.ranks, Hosts: sel.Hosts, Attribute: r.attribute}
	meter := progress.New(c.err, progress.IsTerminal(c.err), size(convert.Names(inputs)))
	opt.Meter = meter
	c.collectEarly()
	set, err := convert.ReadProfiles(inputs, opt, &c.diags)
	meter.Done()
	if err != nil {
		return nil, nil, err
	}
	if err := sel.resolve(set.First); err != nil {
		set.Close()
		return nil, nil, err
	}
	return set, sel, nil
}
