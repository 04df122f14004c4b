package reports

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/sgtrace/sgtrace/analyze/kernel"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
)

// Categories of events that reports walk over.
var (
	KernelEvents       = []string{profile.KernelCategory}
	launchEvents       = slices.Concat(KernelEvents, profile.CallCategories)
	AllEvents          = slices.Concat(launchEvents, profile.CopyCategories, []string{profile.AnnotationCategory})
	operatorCategories = []string{profile.OperatorCategory}
	HostEvents         = slices.Concat(AllEvents, profile.FrameCategories)
	sampledEvents      = []string{profile.InstantCategory}
	summaryEvents      = slices.Concat(HostEvents, sampledEvents, []string{profile.OtherCategory})
	rankEvents         = slices.Concat(AllEvents, []string{profile.PythonCategory}) // functions show what is compiled
	timelineEvents     = slices.Concat(rankEvents, sampledEvents)
)

// Default limits on rows in text: there may be tens of thousands of ranges and kernels.
const (
	maxRows    = 100
	maxKernels = 20
)

// ofProfiles are the options of reports on profiles.
var ofProfiles = []string{"by-rank", "sort", "limit", "all-ranks", "hosts"}

// All is the table of reports, in the order of the help. The first one is the default.
var All = []*Report{
	{Name: "summary", Usage: "one screen: what was read, what stands out, and why",
		Options: []string{"o", "fail-on", "slo", "all-findings", "evidence", "whatif", "mute", "mute-file", "all-ranks", "hosts"}, Tables: summaryTables,
		Events: summaryEvents, Arguments: slices.Concat(profile.CopyCategories, sampledEvents, []string{profile.OtherCategory}), MatchCollectives: true, Parse: parseSummary},
	{Name: "by-rank", As: "ranks", Usage: "ranks: stragglers, load, steps, GPUs, collectives",
		Options: []string{"classes", "slo", "sort", "limit", "all-ranks", "hosts"}, Tables: rankTables, CollectiveTables: collectiveTables,
		Events: rankEvents, MatchCollectives: true, Most: maxKernels, Parse: parseRanks},
	{Name: "timeline", Usage: "load, latency, GPUs, memory and counters over time, and when they changed",
		Options: []string{"bucket", "slo", "hosts"}, Tables: timelineTables,
		Events: timelineEvents, Arguments: sampledEvents, MatchCollectives: true, Parse: parseTimeline},

	{Name: "hang", Usage: "which rank keeps the others in a collective that does not end, and where it stands",
		Options: []string{"sort", "limit"}, Tables: []string{"hang", "hang.ranks", "hang.last", "hang.stacks"}, Ignores: selections, Most: maxKernels, Parse: noOptions(hangs)},
	{Name: "memory", Usage: "what took the memory of devices, by snapshots of PyTorch's allocator",
		Options: []string{"sort", "limit"}, Tables: []string{"memory", "memory.stacks", "memory.stalls"}, Ignores: selections, Most: maxKernels, Parse: noOptions(memory),
		Events: profile.CallCategories},

	{Name: "experts", Usage: "how evenly tokens are spread over experts and GPUs, and who waits for it",
		Options: []string{"ep-size", "sort", "limit"}, Tables: []string{"experts", "experts.layers", "experts.ranks", "experts.hottest", "experts.passes"}, Ignores: selections, Most: maxKernels, Parse: parseExperts,
		Events: KernelEvents},

	{Name: "fleet", Usage: "weeks, run by run: repeat offenders, GPU-hours lost, drift of step times and versions",
		Options: []string{"o", "fail-on", "all-findings", "evidence", "mute", "mute-file", "limit"}, Tables: fleetTables, Ignores: []string{"role", "min-dur"},
		Events: summaryEvents, Arguments: slices.Concat(profile.CopyCategories, sampledEvents, []string{profile.OtherCategory}), MatchCollectives: true, Runs: true, Most: maxKernels, Parse: parseFleet},

	{Name: "latency", Usage: "E2E, TTFT, ITL, TPOT and queue time", Needs: Requests,
		Options: []string{"sort", "limit"}, Tables: []string{"latency"}, Ignores: []string{"min-dur", "level"}, Parse: noOptions(latencies)},
	{Name: "by-stage", As: "stages", Usage: "one row per stage", Needs: Requests,
		Options: []string{"sort", "limit"}, Tables: stageTables, Parse: stagesBy("stage")},
	{Name: "by-request", As: "stages", Usage: "one row per stage and request", Needs: Requests,
		Options: []string{"sort", "limit"}, Tables: stageTables[:1], Parse: stagesBy("request")},
	{Name: "by", As: "stages", Usage: "one row per stage and `DIMENSION`,...: " + dimensions(), Needs: Requests,
		Options: []string{"sort", "limit"}, Tables: stageTables[:1], Parse: func(ctx *cli.Context) (Run, error) { return stages(ctx.String("by")) }},
	{Name: "tail", Usage: "why requests from `PERCENTILE` on (p99) are slow", Needs: Requests,
		Options: []string{"metric", "limit"}, Tables: tailTables, Ignores: []string{"role", "host", "rank", "min-dur", "level"}, OwnsLimit: true, Parse: parseTail},

	{Name: "critical-path", Usage: "what slow requests waited for: queues, ranks and their hosts, transfers",
		Events: HostEvents, MatchCollectives: true,
		Options: []string{"sort", "limit"}, Tables: []string{"critical"}, Ignores: []string{"role", "host", "rank", "min-dur", "level"}, Parse: noOptions(criticalPath)},

	{Name: "kernels", Usage: "what could be faster, and GPU time by kernel, as cuda_gpu_kern_sum of nsys", Needs: Profiles,
		Options: append(ofProfiles, "captures"), Tables: []string{"kernels", "kernels.opportunities", "kernels.roof", "kernels.fill", "kernels.layers", "kernels.blocks"}, Events: HostEvents, MainEvents: KernelEvents,
		Arguments: slices.Concat(operatorCategories, launchEvents), ArgNames: append([]string{profile.ConcreteInputs}, profile.LaunchArguments...), Most: maxRows, Parse: parseKernels},
	{Name: "launches", Usage: "API, queue and GPU time, as cuda_kern_exec_sum", Needs: Profiles,
		Options: ofProfiles, Tables: []string{"launches"}, Events: launchEvents, Most: maxRows,
		Parse: sumOf("kernels", oneTable(kernel.SumLaunches))},
	{Name: "api", Usage: "CUDA runtime and driver calls, as cuda_api_sum", Needs: Profiles,
		Options: ofProfiles, Tables: []string{"calls"}, Events: profile.CallCategories, Most: maxRows,
		Parse: sumOf("calls into the runtime or driver of a device", oneTable(kernel.SumCalls))},
	{Name: "memcpy", Usage: "copies by time, size, speed and kind of memory, as cuda_gpu_mem_*_sum", Needs: Profiles,
		Options: ofProfiles, Tables: []string{"copies", "copies.memory"}, Events: profile.CopyCategories, Arguments: profile.CopyCategories, Most: maxRows,
		Parse: sumOf("copies or fills of memory", copyTables)},
	{Name: "nvtx", Usage: "NVTX ranges, annotations, and the GPU time in them", Needs: Profiles,
		Options: append(ofProfiles, "open-ranges"), Tables: []string{"ranges"}, Events: AllEvents, Attribute: true, Most: maxRows,
		Parse: sumOf("NVTX ranges or annotations", oneTable(kernel.SumRanges))},
	{Name: "nvtx-kernels", Usage: "kernels launched in every range, as nvtx_kern_sum", Needs: Profiles,
		Options: append(ofProfiles, "open-ranges"), Tables: []string{"rangekernels"}, Events: AllEvents, Attribute: true, Most: maxRows,
		Parse: sumOf("kernels", oneTable(kernel.SumRangeKernels))},
	{Name: "gaps", Usage: "why GPUs were idle: what the host did, by call, operator and Python function", Needs: Profiles,
		Options: append(ofProfiles, "captures"), Tables: []string{"gaps", "gaps.longest", "gaps.syncs"}, Events: HostEvents, Attribute: true, Most: maxKernels,
		Parse: parseGaps},
	{Name: "ops", Usage: "operators of PyTorch by CPU and GPU time, shape, and module; TFLOP/s of GEMMs and attention; copies", Needs: Profiles,
		Options: append(ofProfiles, "captures"), Tables: []string{"ops", "ops.shapes", "ops.gemms", "ops.attention", "ops.copies", "ops.modules", "ops.graphkernels"}, Events: HostEvents, Arguments: slices.Concat(operatorCategories, profile.CopyCategories), ArgNames: []string{profile.ConcreteInputs}, Attribute: true, Most: maxKernels,
		Parse: listOf(operatorTables)},
	{Name: "stacks", Usage: "where time went, by stack: that of threads, and that of GPUs by what launched it", Needs: Profiles,
		Options: append(ofProfiles, "captures"), Tables: []string{"stacks.cpu", "stacks.gpu"}, Formats: []table.Format{table.FormatFolded},
		Events: HostEvents, Attribute: true, Most: maxKernels, Parse: listOf(stackTables)},
}
