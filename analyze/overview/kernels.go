package overview

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/analyze/gpu"
	"github.com/sgtrace/sgtrace/analyze/table"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// A kernelTotal is what all kernels of one name took on all ranks.
type kernelTotal struct {
	name     string
	class    profile.Class
	total, n int64 // ns; how many
}

// kernelTotals sums kernels up by name, those that take most first.
func kernelTotals(kernels []gpu.RankKernel) []kernelTotal {
	at := map[trace.Sym]int{}
	var list []kernelTotal
	for i := range kernels {
		k := &kernels[i]
		if _, ok := at[k.Sym]; !ok {
			at[k.Sym] = len(list)
			list = append(list, kernelTotal{name: k.Name, class: k.Class})
		}
		t := &list[at[k.Sym]]
		t.total, t.n = distribution.AddTimes(t.total, k.Summary.Total), t.n+int64(k.Summary.N)
	}
	slices.SortFunc(list, func(a, b kernelTotal) int {
		return cmp.Or(cmp.Compare(b.total, a.total), strings.Compare(a.name, b.name))
	})
	return list
}

// kernelReport is a table of the kernels that take most.
func (o *Overview) kernelReport() *table.Table {
	type K = kernelTotal
	var list []K
	if o.GPUs != nil {
		list = kernelTotals(o.GPUs.Kernels)
	}
	all := int64(0)
	for i := range list {
		all = distribution.AddTimes(all, list[i].total)
	}
	total := table.NsColumn("total", "sum over all ranks", func(k *K) int64 { return k.total })
	count := table.CountColumn("n", "how many ran", func(k *K) int64 { return k.n })
	name := table.TextColumn("kernel", "its name", func(k *K) string { return k.name })
	name.Most = table.MostName
	return table.New("sgtrace.report.summary.kernels/v1", "Kernels that take most", list, []table.Field[K]{
		{Column: table.Column{Name: "of kernels", Unit: table.Share, Doc: "part of the time of all kernels"}, Cell: func(k *K) table.Cell { return table.ShareCell(k.total, all) }},
		total, count,
		table.TextColumn("class", "what it does: compute, communication, memory, other", func(k *K) string { return k.class.String() }),
		name,
	}).Leave("n")
}
