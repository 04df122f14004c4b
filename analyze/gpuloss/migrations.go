package gpuloss

import (
	"fmt"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// largestCopies describes the operations that copy longest.
func largestCopies(g *gpu.GPUs) []finding.Evidence {
	sums := map[string]*gpu.CopyKind{}
	for i := range g.GPUs {
		for k := range g.GPUs[i].Copies {
			c := &g.GPUs[i].Copies[k]
			if sums[c.Name] == nil {
				sums[c.Name] = &gpu.CopyKind{Name: c.Name}
			}
			sums[c.Name].Join(c)
		}
	}
	var list []gpu.CopyKind
	for _, c := range sums {
		list = append(list, *c)
	}
	gpu.SortCopies(list)
	var out []finding.Evidence
	pageable := false
	const most = 2
	for i := range list[:min(most, len(list))] {
		c := &list[i]
		text := fmt.Sprintf("%s: %s, %s", c.Name, copiesOf(c.Copied.N), words.Nearly(c.Copied.Time))
		if c.Copied.Bytes > 0 {
			text += fmt.Sprintf(", %s at %s/s", words.Size(c.Copied.Bytes), words.Size(int64(c.Copied.Rate())))
		}
		switch {
		case c.Pageable == c.Copied.Time && c.Pageable > 0:
			text += ", of pageable memory"
		case 10*c.Pageable > c.Copied.Time:
			text += ", " + words.Nearly(c.Pageable) + " of pageable memory"
		}
		pageable = pageable || 2*c.Pageable > c.Copied.Time
		out = append(out, finding.Sentence("%s", text))
	}
	if pageable {
		out = append(out, finding.Sentence("%s", gpu.AboutPageable))
	}
	return out
}

func copiesOf(n int64) string {
	if n == 1 {
		return "1 copy"
	}
	return words.Thousands(n) + " copies"
}

// muchMigrated is the least share of the time for which pages move while kernels run that is reported:
// the kernels wait for them.
const muchMigrated = 1.0 / 10

// Migrations finds out whether pages of unified memory move while kernels run. Kernels hide other
// copies that run at the same time; they wait for these.
func Migrations(g *gpu.GPUs) ([]finding.Finding, finding.Check) {
	t, check := total(g, "page migrations")
	rows, moved := int64(0), int64(0)
	var pages profilewalk.Copied
	for i := range g.GPUs {
		device := &g.GPUs[i]
		if rows += device.Migrated; 2*device.Migrated < device.Rows-device.Kernels {
			continue // most copies are explicit
		}
		moved = distribution.AddTimes(moved, device.Sum(func(r gpu.Running) bool { return r.Has(kernelname.ClassMemory) && r.Has(kernelname.ClassCompute) }))
		for k := range device.Copies {
			if c := &device.Copies[k]; strings.Contains(c.Name, "Unified ") {
				pages.Join(&c.Copied)
			}
		}
	}
	if rows == 0 && check.Reason == "" {
		check.Reason = "no pages of unified memory moved"
	}
	share := t.part(moved)
	if check.State() != finding.LookedAt || share < muchMigrated {
		return nil, check
	}
	text := fmt.Sprintf("for %.0f %% of the time, pages of unified memory migrate while a kernel runs, and its threads wait for the pages they touch: %s", 100*share, words.Counted(int(pages.N), "migration"))
	if pages.Bytes > 0 {
		text += ", " + words.Size(pages.Bytes) + " in total"
	}
	f := shareFinding("migrations", "page migrations", share, text, finding.Sentence("to move pages before the kernel starts, prefetch (cudaMemPrefetchAsync) or copy them"))
	f.Evidence = append(f.Evidence, largestCopies(g)...)
	return []finding.Finding{f}, check
}
