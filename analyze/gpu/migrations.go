package gpu

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/walk"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile"
)

// muchMigrated is the part of the time from which on pages that move while kernels run are
// told of: the kernels wait for them.
const muchMigrated = 1.0 / 10

// Migrations tells whether pages of unified memory move while kernels run. Other copies that
// run beside kernels are hidden by them; these hold them up.
func (g *GPUs) Migrations() ([]finding.Finding, finding.Judged) {
	t, judged := g.time("page migrations")
	rows, moved := int64(0), int64(0)
	var pages walk.Copied
	for i := range g.GPUs {
		gpu := &g.GPUs[i]
		if rows += gpu.Migrated; 2*gpu.Migrated < gpu.Rows-gpu.Kernels {
			continue // most of what moves is copied
		}
		moved = distribution.AddTimes(moved, gpu.sum(func(r Running) bool { return r.Has(profile.ClassMemory) && r.Has(profile.ClassCompute) }))
		for k := range gpu.Copies {
			if c := &gpu.Copies[k]; strings.Contains(c.Name, "Unified ") {
				pages.Join(&c.Copied)
			}
		}
	}
	if rows == 0 && judged.Reason == "" {
		judged.Reason = "no pages of unified memory moved"
	}
	share := t.part(moved)
	if judged.State() != finding.LookedAt || share < muchMigrated {
		return nil, judged
	}
	text := fmt.Sprintf("for %.0f %% of the time, pages of unified memory move while a kernel runs, whose threads wait for those that they touch: %s", 100*share, words.Counted(int(pages.N), "migration"))
	if pages.Bytes > 0 {
		text += ", " + words.Size(pages.Bytes) + " in all"
	}
	f := shareFinding("migrations", "page migrations", share, text, finding.Sentence("pages that are prefetched (cudaMemPrefetchAsync), or copied, move before the kernel begins"))
	f.Evidence = append(f.Evidence, g.largestCopies()...)
	return []finding.Finding{f}, judged
}
