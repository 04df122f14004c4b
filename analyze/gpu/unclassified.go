package gpu

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
)

// muchUnknown is the part of the time of kernels that has to be of no known class to be
// told, and namedUnknown how many kernels are named then.
const (
	muchUnknown  = 0.01
	namedUnknown = 3
)

// noteUnknown names the kernels that no rule knows.
func (g *GPUs) noteUnknown(r *table.Table) {
	if part, which := g.Unclassified(); part >= muchUnknown {
		r.Note("%s; classify them with --classes FILE", which)
	}
}

// Unclassified returns the part of the time of kernels that is of names which no rule knows,
// and a sentence that names those that took most time.
func (g *GPUs) Unclassified() (part float64, which string) {
	all, unknown := int64(0), int64(0)
	byName := map[string]int64{}
	for i := range g.GPUs {
		all = distribution.AddTimes(all, g.GPUs[i].KernelTime)
		unknown = distribution.AddTimes(unknown, g.GPUs[i].UnknownTime)
	}
	for i := range g.Kernels {
		if k := &g.Kernels[i]; k.Unknown {
			byName[k.Name] = distribution.AddTimes(byName[k.Name], k.Summary.Total)
		}
	}
	names := slices.SortedFunc(maps.Keys(byName), func(a, b string) int {
		return cmp.Or(cmp.Compare(byName[b], byName[a]), strings.Compare(a, b))
	})
	var most []string
	for _, name := range names[:min(len(names), namedUnknown)] {
		most = append(most, fmt.Sprintf("`%s` %.1f %%", table.CutMiddle(profile.BareName(name), 48, table.Style{ASCII: true}), 100*distribution.Fraction(byName[name], all)))
	}
	if more := len(names) - len(most); more > 0 {
		most = append(most, fmt.Sprintf("and %d more", more))
	}
	part = distribution.Fraction(unknown, all)
	return part, fmt.Sprintf("%.1f %% of kernel time is from kernels that match no rule and count as compute: %s", 100*part, strings.Join(most, ", "))
}
