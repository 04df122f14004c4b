package gpuloss

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/internal/order"
)

// muchSingle is the least share of the time with nothing but kernels of one block that is reported. All
// multiprocessors but one are idle then, so it is the same as for idle time. Every model has some such
// kernels: for positions, for sampling, for reductions to a number.
const muchSingle = muchIdle

// SingleBlocks finds out whether devices run nothing but kernels of one block for much of the time, and
// which kernels.
func SingleBlocks(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	t, check := total(g, "kernels of one block")
	single := g.Total(func(d *gpu.GPU) int64 { return d.Single })
	if single == 0 && check.Reason == "" {
		check.Reason = "no kernel of one block was recorded" // the producer may not record grid sizes
	}
	share := t.part(single)
	if check.State() != finding.LookedAt || share < muchSingle {
		return nil, check
	}
	kernels := singleKernels(g)
	threads := int32(0)
	var evidence []finding.Evidence
	for i, k := range kernels {
		threads = max(threads, k.threads)
		if i < maxSingle {
			evidence = append(evidence, finding.Sentence("%s: %s in all, in one block of %s", k.name, words.Nearly(k.time), words.Counted(int(k.threads), "thread")))
		}
	}
	what, of := "kernels", "a single thread block"
	if len(kernels) > 0 { // kernels are not divided by run
		what = words.Counted(len(kernels), "kernel")
	}
	if threads == 1 {
		of = "a single thread"
	}
	if len(kernels) != 1 {
		of += " each"
	}
	text := fmt.Sprintf("for %s of the time, %s only %s of %s: one multiprocessor works, and all others are idle", percent(single, t.length), do(g, "run"), what, of)
	return []finding.Finding{shareFinding("one block", "kernels of one block", share, text, evidence...)}, check
}

// maxSingle is how many kernels are named.
const maxSingle = 3

// A singleKernel is a kernel that runs as one block, over all ranks.
type singleKernel struct {
	name    string
	time    int64 // ns
	threads int32 // of the largest block
}

// singleKernels are the kernels that ran as one block, the longest time first.
func singleKernels(g *gpu.GPUs) (list []singleKernel) {
	at := map[string]int{}
	for i := range g.Kernels {
		k := &g.Kernels[i]
		if k.Single == 0 {
			continue
		}
		n := order.At(at, &list, k.Name, func() singleKernel { return singleKernel{name: k.Name} })
		list[n].time = distribution.AddTimes(list[n].time, k.Single)
		list[n].threads = max(list[n].threads, k.Threads)
	}
	slices.SortFunc(list, func(a, b singleKernel) int {
		return cmp.Or(cmp.Compare(b.time, a.time), strings.Compare(a.name, b.name))
	})
	return list
}

// muchEager is the least share of GPU time that steps without CUDA graphs must cost.
const muchEager = 0.02

// EagerSteps finds decode steps that were launched without CUDA graphs, though others of about their
// batch size were launched with one.
func EagerSteps(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	t, check := total(g, "decode steps without a CUDA graph")
	lost, eager, graph := int64(0), 0, 0
	var worst *gpu.GraphUse
	for i := range g.Graphs {
		u := &g.Graphs[i]
		if u.Graph.N == 0 {
			continue // nothing to compare with: there may be no graph of that batch size
		}
		eager, graph = eager+u.Eager.N, graph+u.Graph.N
		lost = distribution.AddTimes(lost, u.Lost())
		if worst == nil || u.Lost() > worst.Lost() {
			worst = u
		}
	}
	if graph == 0 && check.Reason == "" {
		check.Reason = "no decode step ran as a CUDA graph"
	}
	check.Of, check.N, check.Needed = "decode step", eager+graph, 1
	share := min(1, t.part(lost))
	if check.State() != finding.LookedAt || share < muchEager {
		return nil, check
	}
	batch := ""
	if words := profilewalk.BatchWords(worst.MinBatch, worst.MaxBatch); words != "" {
		batch = " of " + words + " requests"
	}
	return []finding.Finding{shareFinding("graphs", "time lost without CUDA graphs", share,
		fmt.Sprintf("%s of %s decode steps ran without a CUDA graph, though others of that batch size have one", words.Thousands(int64(eager)), words.Thousands(int64(eager+graph))),
		finding.Sentence("decode%s on %s: median %s with a graph, %s without", batch, worst.Rank, words.Nearly(worst.Graph.P50), words.Nearly(worst.Eager.P50)))}, check
}

// noGraphs returns evidence of decode steps for which no CUDA graph was made: all of them if none ran
// as a graph, or else those with more requests than any that did.
func noGraphs(g *gpu.GPUs) finding.Evidence {
	eager, graph, beyond := 0, 0, 0
	for i := range g.Graphs {
		u := &g.Graphs[i]
		eager, graph, beyond = eager+u.Eager.N, graph+u.Graph.N, beyond+u.Beyond
	}
	switch {
	case beyond > 0:
		return finding.Sentence("%s of %s decode steps had more requests than any that ran as a CUDA graph", words.Thousands(int64(beyond)), words.Thousands(int64(eager+graph)))
	case graph > 0 || eager == 0:
		return finding.Evidence{}
	}
	return finding.Sentence("none of %s decode steps ran as a CUDA graph: the host launches each kernel separately", words.Thousands(int64(eager)))
}

// namedFailures is how many names of failed calls are shown.
const namedFailures = 4

// FailedCalls finds failed calls among those that ask devices for work. Their cost is the share of such
// calls that failed.
func FailedCalls(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	var failed []*gpu.CallTime // the most failures first
	known, failures := int64(0), int64(0)
	for i := range g.Calls {
		c := &g.Calls[i]
		known += c.Results.Known
		if n := c.Results.Failed(); n > 0 {
			failed, failures = append(failed, c), failures+n
		}
	}
	check := finding.Check{What: "failed calls", Of: "call", N: int(known), Needed: 1}
	if known == 0 {
		check.Reason = "the profiles do not hold what calls returned"
	}
	if failures == 0 {
		return nil, check
	}
	slices.SortStableFunc(failed, func(a, b *gpu.CallTime) int { return cmp.Compare(b.Results.Failed(), a.Results.Failed()) })
	part := distribution.Fraction(failures, known)
	f := finding.Finding{Subkind: "calls", Text: failureText(failed[0]), Cost: part,
		Metric: finding.Metric{Name: "failed calls", Unit: table.Share, Before: math.NaN(), After: part}}
	for _, c := range failed[1:min(len(failed), namedFailures)] {
		f.Evidence = append(f.Evidence, finding.Sentence("%s", failureText(c)))
	}
	f.Evidence = append(f.Evidence, finding.Sentence("what these calls asked for never ran, so the capture shows less work than it should, and results may be wrong"))
	return []finding.Finding{f}, check
}

// failureText says how many calls of a name failed, and how: "558 of 13,457
// cudaLaunchKernel calls failed: cudaErrorLaunchOutOfResources (701)".
func failureText(c *gpu.CallTime) string {
	how := c.Results.String()
	if errors := c.Results.Errors(); len(errors) == 1 {
		how = profilewalk.ErrorName(errors[0])
	}
	return fmt.Sprintf("%s of %s %s calls failed: %s", words.Thousands(c.Results.Failed()), words.Thousands(c.Results.Known), c.Name, how)
}

// Another process on a device delays many kernels, and costs more than a moment: at least this many
// kernels must be held back, for this share of the device's time.
const (
	manyWithheld = 10
	muchWithheld = 1.0 / 50
)

// withheld reports whether a device holds kernels back for another process. Most of these must have
// been launched while nothing ran, as the others may wait for earlier work that was not recorded.
func withheld(g *gpu.GPU) bool {
	h := &g.Held
	return h.N >= manyWithheld && 2*h.Late >= h.N && distribution.Fraction(h.Time, g.Length()) >= muchWithheld
}

// Withheld finds devices that start kernels late though nothing recorded keeps them from it.
func Withheld(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	t, check := total(g, "kernels that the GPU starts late")
	starts, devices := int64(0), 0
	var worst *gpu.GPU
	for i := range g.GPUs {
		d := &g.GPUs[i]
		starts += d.Held.Starts
		if withheld(d) {
			if devices++; worst == nil || d.Held.Time > worst.Held.Time {
				worst = d
			}
		}
	}
	if check.N = int(starts); starts == 0 && check.Reason == "" {
		check.Reason = "no kernel tells: launches or kernels were not recorded, or there may be something else to wait for"
	}
	if check.State() != finding.LookedAt || worst == nil {
		return nil, check
	}
	h := &worst.Held
	n, of := h.N, h.Starts
	where := ""
	if h.Since != 0 {
		n, of = h.SinceN, h.SinceStarts
		if h.Since > gpu.Absolute {
			where = "since " + words.At(h.Since, words.ClockLayout) + ", "
		}
	}
	switch {
	case devices > 1:
		where += fmt.Sprintf("on %d of %d GPUs, most of all %s, ", devices, len(g.GPUs), g.Label(worst))
	case len(g.GPUs) > 1:
		where += "on " + g.Label(worst) + ", "
	}
	text := fmt.Sprintf("%s%s of %s kernels that find the GPU idle start a median of %s after their launch, while it runs nothing of this process: another process uses the GPU",
		where, words.Thousands(n), words.Thousands(of), words.Nearly(h.Median))
	f := shareFinding("withheld", "kernels held back", t.part(t.withheld), text,
		finding.Sentence("the other kernels start a median of %s after their launch", words.Nearly(h.Else)),
		finding.Sentence("without MPS or MIG, processes on one GPU take turns in slices of about 2 ms; nvidia-smi lists them"))
	f.Since = h.Since
	return []finding.Finding{f}, check
}
