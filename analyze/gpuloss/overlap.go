package gpuloss

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
)

// exchanges are texts in the names of kernels that send tokens to the GPUs of their experts, and
// results back. Shared experts depend on neither.
var exchanges = []string{"dispatch", "combine", "alltoall", "all_to_all", "sendrecv"}

// A device identifies a device of a rank.
type device struct{ rank, device int32 }

// An overlap is what could run at the same time in layers with shared experts, and does not.
type overlap struct {
	layers        int64
	total, saves  int64 // ns
	other, shared string
}

// findOverlaps finds layers in which the GPU does nothing but wait for the exchange of tokens, and
// computes shared experts before or after.
func (x *seeker) findOverlaps(set *profile.Set, all []ran) {
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && !(x.kindOf(&all[to]) == kernelname.KindAttention && x.kindOf(&all[to-1]) != kernelname.KindAttention) {
			to++
		}
		x.addOverlap(all, from, to, set)
		from = to
	}
}

func (x *seeker) kindOf(r *ran) kernelname.Kind { return x.kinds.Of(r.name).kind }

// addOverlap looks at the kernels of one layer, which begins with its attention, among all kernels of a device.
func (x *seeker) addOverlap(all []ran, from, to int, set *profile.Set) {
	layer := all[from:to]
	shared, exchange := x.sharedExperts(layer), ran{}
	if len(shared) == 0 {
		return
	}
	computing := order.Sum(shared, func(i int) int64 { return alone(all, from+i) })
	waiting := int64(0)
	for i := range layer {
		k := x.kinds.Of(layer[i].name)
		is := k.kind == kernelname.KindCommunication && slices.ContainsFunc(exchanges, func(text string) bool { return strings.Contains(k.lower, text) })
		if is {
			exchange = layer[i]
			waiting += alone(all, from+i)
		}
	}
	saves := min(waiting, computing)
	if saves == 0 {
		return
	}
	o := order.Memo(x.overlaps, layer[0].step, func() *overlap { return &overlap{} })
	o.layers++
	o.total = distribution.AddTimes(o.total, waiting+computing)
	o.saves = distribution.AddTimes(o.saves, saves)
	o.other, o.shared = profile.BareName(set.Syms.Name(exchange.name)), profile.BareName(set.Syms.Name(layer[shared[0]].name))
}

// sharedExperts returns the indices of the kernels of shared experts: product, activation, and product,
// in a layer that also has routed experts.
func (x *seeker) sharedExperts(layer []ran) (list []int) {
	if !slices.ContainsFunc(layer, func(r ran) bool { return x.kindOf(&r) == kernelname.KindExperts }) {
		return nil
	}
	want := [...]kernelname.Kind{kernelname.KindGEMM, kernelname.KindActivation, kernelname.KindGEMM}
	streams := map[uint32][]int{}
	for i := range layer {
		at := layer[i].stream
		on := append(streams[at], i)
		for len(on) > 0 && x.kindOf(&layer[on[len(on)-1]]) != want[len(on)-1] {
			on = on[1:]
			for k := range on {
				if x.kindOf(&layer[on[k]]) != want[k] {
					on = on[k+1:]
					break
				}
			}
		}
		if len(on) == len(want) {
			list = append(list, on...)
			on = nil
		}
		streams[at] = on
	}
	return list
}

// maxAround is how many kernels before one are checked for still running.
const maxAround = 64

// alone returns for how long kernel i has the GPU to itself, ns.
func alone(all []ran, i int) int64 {
	k := &all[i]
	at, free := k.start, int64(0)
	for j := max(0, i-maxAround); j < len(all) && all[j].start < k.end(); j++ {
		o := &all[j]
		if j == i || o.end() <= at {
			continue
		}
		free += max(0, int64(o.start-at))
		at = max(at, o.end())
	}
	return free + max(0, int64(k.end()-at))
}
