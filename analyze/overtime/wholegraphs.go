package overtime

import (
	"math"
	"slices"

	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/trace"
)

// withoutWaits returns kernels in which a whole CUDA graph takes as long as on the device on which it takes least, of those that launch
// it as often. Its kernels are not recorded, and may communicate: then it waits for the ranks that launch it later.
func (c *Collector) withoutWaits(kernels [][]pacedKernel) [][]pacedKernel {
	type graph struct {
		name trace.Sym
		n    int
	}
	least := map[graph][]int64{}
	out := slices.Clone(kernels)
	launches := make([]map[trace.Sym][]int, len(kernels)) // of whole graphs
	for i := range kernels {
		launches[i] = map[trace.Sym][]int{}
		whole := trace.EachName(c.set.Syms, profile.IsWholeGraph)
		for k := range out[i] {
			if name := out[i][k].name; whole.Of(name) {
				launches[i][name] = append(launches[i][name], k)
			}
		}
		for name, list := range launches[i] {
			of := order.Memo(least, graph{name, len(list)}, func() []int64 { return slices.Repeat([]int64{math.MaxInt64}, len(list)) })
			for n, k := range list {
				of[n] = min(of[n], out[i][k].took)
			}
		}
	}
	for i := range out {
		if len(launches[i]) > 0 { // most captures have none, and many kernels
			out[i] = slices.Clone(kernels[i])
		}
		for name, list := range launches[i] {
			for n, k := range list {
				out[i][k].took = least[graph{name, len(list)}][n]
			}
		}
	}
	return out
}
