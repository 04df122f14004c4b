package gpuloss

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/words"
)

// muchSingle is the part of the time for which a device runs kernels of one block alone from
// which on that is told: all of the device but one multiprocessor is idle then, so it is as much as
// of all idle time. Every model has some: of positions, of sampling, of reductions to a number.
const muchSingle = muchIdle

// SingleBlocks tells whether devices run nothing but kernels of one block for much of the
// time, and which.
func SingleBlocks(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	t, check := total(g, "kernels of one block")
	single := g.Total(func(d *gpu.GPU) int64 { return d.Single })
	if single == 0 && check.Reason == "" {
		check.Reason = "no kernel of one block was recorded" // the producer may record no sizes of grids
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
	what := words.Counted(len(kernels), "kernel") + " of one block of threads"
	if threads == 1 {
		what = words.Counted(len(kernels), "kernel") + " of one thread"
	}
	text := fmt.Sprintf("for %s of the time, %s nothing but %s: one multiprocessor works then, and all others are idle", percent(single, t.length), do(g, "run"), what)
	return []finding.Finding{shareFinding("one block", "kernels of one block", share, text, evidence...)}, check
}

// maxSingle is how many kernels are named.
const maxSingle = 3

// A singleKernel is a kernel that runs as one block, on all ranks.
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
		n, ok := at[k.Name]
		if !ok {
			n = len(list)
			at[k.Name] = n
			list = append(list, singleKernel{name: k.Name})
		}
		list[n].time = distribution.AddTimes(list[n].time, k.Single)
		list[n].threads = max(list[n].threads, k.Threads)
	}
	slices.SortFunc(list, func(a, b singleKernel) int {
		return cmp.Or(cmp.Compare(b.time, a.time), strings.Compare(a.name, b.name))
	})
	return list
}
