package gpuloss

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/distribution"
	"github.com/sgtrace/sgtrace/internal/order"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// exchanges are texts in the names of kernels that send tokens to the GPUs of their experts, and results back.
// What shared experts compute depends on neither.
var exchanges = []string{"dispatch", "combine", "alltoall", "all_to_all", "sendrecv"}

// A device is one of a rank.
type device struct{ rank, device int32 }

// A span is a kernel on a device, with what it computes.
type span struct {
	ran
	kind   kernelname.Kind
	lower  string
	stream uint32
}

func (s *span) end() trace.Time { return s.start + trace.Time(s.dur) }

// An overlap is what in layers with shared experts could run at once, and does not.
type overlap struct {
	layers        int64
	total, saves  int64 // ns
	other, shared string
}

// findOverlaps finds layers in which the GPU waits for the exchange of tokens, with nothing else on it, and computes
// shared experts before or after.
func findOverlaps(set *profile.Set, devices map[device][]span) map[profile.StepKind]*overlap {
	found := map[profile.StepKind]*overlap{}
	for _, all := range devices {
		for from := 0; from < len(all); {
			to := from + 1
			for to < len(all) && !(all[to].kind == kernelname.KindAttention && all[to-1].kind != kernelname.KindAttention) {
				to++
			}
			x := order.Memo(found, all[from].step, func() *overlap { return &overlap{} })
			x.add(all, from, to, set)
			from = to
		}
	}
	return found
}

// add looks at the kernels of a layer, from its attention on, among all of a device.
func (x *overlap) add(all []span, from, to int, set *profile.Set) {
	layer := all[from:to]
	shared, exchange := sharedExperts(layer), span{}
	if len(shared) == 0 {
		return
	}
	computing := int64(0)
	for _, i := range shared {
		computing += alone(all, from+i)
	}
	waiting := int64(0)
	for i := range layer {
		is := layer[i].kind == kernelname.KindCommunication && slices.ContainsFunc(exchanges, func(text string) bool { return strings.Contains(layer[i].lower, text) })
		if is {
			exchange = layer[i]
			waiting += alone(all, from+i)
		}
	}
	saves := min(waiting, computing)
	if saves == 0 {
		return
	}
	x.layers++
	x.total = distribution.AddTimes(x.total, waiting+computing)
	x.saves = distribution.AddTimes(x.saves, saves)
	x.other, x.shared = profile.BareName(set.Syms.Name(exchange.name)), profile.BareName(set.Syms.Name(layer[shared[0]].name))
}

// sharedExperts returns the kernels of shared experts in a layer: a product, an activation, and a product, in a layer
// that has routed experts, too.
func sharedExperts(layer []span) (list []int) {
	if !slices.ContainsFunc(layer, func(s span) bool { return s.kind == kernelname.KindExperts }) {
		return nil
	}
	want := [...]kernelname.Kind{kernelname.KindGEMM, kernelname.KindActivation, kernelname.KindGEMM}
	streams := map[uint32][]int{}
	for i := range layer {
		at := layer[i].stream
		on := append(streams[at], i)
		for len(on) > 0 && layer[on[len(on)-1]].kind != want[len(on)-1] {
			on = on[1:]
			for k := range on {
				if layer[on[k]].kind != want[k] {
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

// maxAround is how many kernels before one are looked at, of which any may still run.
const maxAround = 64

// alone returns for how long a kernel has the GPU for itself.
func alone(all []span, i int) int64 {
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
