package page

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/page/chart"

	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/metric"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/tokens"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// gpuParts are the parts of a device's time, in the order of the bars. They add up to the whole.
var gpuParts = []struct {
	chart.Part
	of func(*gpu.GPU) int64
}{
	{chart.Part{Name: metric.Compute.Long}, func(g *gpu.GPU) int64 { return g.Exposed(kernelname.ClassCompute) }},
	{chart.Part{Name: metric.ExposedComm.Long, Color: 1}, func(g *gpu.GPU) int64 { return g.Exposed(kernelname.ClassCommunication) }},
	{chart.Part{Name: metric.ExposedCopy.Long, Color: 5}, func(g *gpu.GPU) int64 { return g.Exposed(kernelname.ClassMemory) }},
	{chart.Part{Name: metric.ExposedOther.Long, Color: 2}, func(g *gpu.GPU) int64 { return g.Exposed(kernelname.ClassOther) }},
	{chart.Part{Name: "idle: host wait", Color: chart.Hues + 2}, func(g *gpu.GPU) int64 { return g.Idle.Time[gpu.HostWait] }},
	{chart.Part{Name: "idle: kernel wait", Color: chart.Hues + 1}, func(g *gpu.GPU) int64 { return g.Idle.Time[gpu.KernelWait] }},
	{chart.Part{Name: "idle: other", Color: chart.Hues}, func(g *gpu.GPU) int64 { return g.Idle.Time[gpu.OtherWait] }},
}

// GPUs makes the section about how devices spent their time.
func GPUs(g *gpu.GPUs, src Source) Section {
	s := Section{ID: "gpus", Title: "GPUs"}
	if len(g.GPUs) == 0 {
		s.Lead = "No kernel or copy was recorded."
		return s
	}
	bars := &chart.Bars{Unit: table.Share}
	for _, p := range gpuParts {
		bars.Parts = append(bars.Parts, p.Part)
	}
	names := gpuNames(g)
	drawn := leastBusy(g)
	for _, i := range drawn {
		gpu := &g.GPUs[i]
		bar := chart.Bar{Name: names[i], Total: durationText(gpu.Length())}
		for _, p := range gpuParts {
			part := distribution.Fraction(p.of(gpu), gpu.Length())
			bar.Values = append(bar.Values, part)
			bar.Texts = append(bar.Texts, fmt.Sprintf("%s, %s", chart.InUnit(table.Share, part), durationText(p.of(gpu))))
		}
		bars.Rows = append(bars.Rows, bar)
	}
	f := &Figure{
		ID: "gpu-time", Shows: []finding.Kind{finding.GPU}, Title: "Where the time of GPUs went", Defined: "Busy and idle", Command: src.Command("--by-rank", "--table=gpu"), Body: bars,
		Caption: "Shares of the time from the first kernel or copy to the end of the last one; this time is printed after the bar. " +
			"Exposed is what runs while nothing computes.",
	}
	if len(drawn) < len(g.GPUs) {
		f.Notes = append(f.Notes, fmt.Sprintf("%d of %d GPUs are drawn: the least busy ones; the command prints all", len(drawn), len(g.GPUs)))
	}
	s.Figures = append(s.Figures, f)
	s.addTables(src, "--by-rank", "Busy and idle", g.Report())
	s.addTables(src, "--by-rank", "Why devices are idle", g.IdleReport())
	s.addTables(src, "--by-rank", "Busy and idle", g.OverlapReport())
	s.addTables(src, "--by-rank", "Why devices are idle", g.StreamReport())
	s.addTables(src, "--by-rank", "Steps", g.StepReport())
	s.addTables(src, "--by-rank", "Tokens of steps", tokens.Measure(g).Report())
	return s
}

// maxBars limits the bars of a crowd of GPUs.
const maxBars = 32

// leastBusy returns the GPUs that get a bar, in their order: all, or for a crowd those that are busy for the smallest
// share of their time.
func leastBusy(g *gpu.GPUs) []int {
	n := len(g.GPUs)
	busy := func(i int) float64 { return distribution.Fraction(g.GPUs[i].Busy(), g.GPUs[i].Length()) }
	list := order.Sorted(n, func(a, b int) int { return cmp.Compare(busy(a), busy(b)) })
	if n > crowded {
		n = maxBars
	}
	return slices.Sorted(slices.Values(list[:n]))
}

// gpuNames names devices by rank, and adds the device number if any rank has several.
func gpuNames(g *gpu.GPUs) []string {
	devices := map[string]int{}
	several := false
	for i := range g.GPUs {
		devices[g.GPUs[i].Rank]++
		several = several || devices[g.GPUs[i].Rank] > 1
	}
	names := make([]string, len(g.GPUs))
	for i := range g.GPUs {
		names[i] = g.GPUs[i].Rank
		if several {
			names[i] = fmt.Sprintf("%s GPU %d", g.GPUs[i].Rank, g.GPUs[i].Device)
		}
	}
	return names
}
