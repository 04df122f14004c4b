package roof

import (
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/experts"
)

// Routed is how tokens were spread over experts, as it was recorded.
type Routed struct {
	parts [][]float64 // for each layer, the part of the choices that fell on each expert
}

// RoutedOf sums up what recorders counted, over all passes; nil if there is nothing.
func RoutedOf(set *experts.Set) *Routed {
	if set.Empty() {
		return nil
	}
	r := &Routed{}
	for _, d := range set.Dumps {
		for layer := range d.Layers {
			sum, parts := 0.0, make([]float64, d.Experts)
			for pass := range d.Passes {
				for e, n := range d.Of(pass, layer) {
					parts[e] += float64(n)
					sum += float64(n)
				}
			}
			for e := range parts {
				parts[e] /= sum
			}
			if sum > 0 {
				r.parts = append(r.parts, parts)
			}
		}
	}
	return r
}

// hit returns how many experts some tokens go to, of so many of which each token goes to k. Without a record of
// as many experts, each is as likely as any other.
func (r *Routed) hit(tokens, k, experts float64) float64 {
	var sum, layers float64
	if r != nil {
		for _, parts := range r.parts {
			if len(parts) != int(experts) {
				continue
			}
			layers++
			for _, p := range parts {
				sum += 1 - math.Pow(1-min(1, p*k), tokens)
			}
		}
	}
	if layers > 0 {
		return sum / layers
	}
	return experts * (1 - math.Pow((experts-k)/experts, tokens))
}

// mostChosen bounds how many experts a token goes to: an input with more columns has something for each expert.
const mostChosen = 64

// expertsOf returns the work of fused experts, which operators of several libraries do with about the same
// inputs: hidden states, two weights of all experts, and which of them each token goes to. The weights of the
// experts that are hit are read, with their scales. What is added up in the end are results of k experts.
func expertsOf(name string, in *Inputs, routed *Routed) (w Work, ok bool) {
	lower := strings.ToLower(name)
	if !strings.Contains(lower, "moe") && !strings.Contains(lower, "experts") {
		return w, false
	}
	first := slices.IndexFunc(in.dims, func(d []int64) bool { return len(d) == 3 })
	up, down := in.Dims(first), in.Dims(first+1)
	if first < 0 || len(down) != 3 || up[0] != down[0] {
		return w, false
	}
	packing := int64(1)
	if in.isPacked(first) {
		packing = 2
	}
	hidden, inner := up[2]*packing, down[2]*packing
	if down[1] != hidden || up[1] != inner && up[1] != 2*inner {
		return w, false
	}
	tokens := slices.IndexFunc(in.dims, func(d []int64) bool { return len(d) == 2 && d[1] == hidden })
	if tokens < 0 {
		return w, false
	}
	rows := in.dims[tokens][0]
	chosen := slices.IndexFunc(in.dims, func(d []int64) bool {
		return len(d) == 2 && d[0] == rows && d[1] < min(mostChosen, up[0]) && d[1] > 0
	})
	if chosen < 0 {
		return w, false
	}
	t, k, e := float64(rows), float64(in.dims[chosen][1]), float64(up[0])
	part := routed.hit(t, k, e) / e
	w.Type = in.Type(first)
	if packing > 1 { // kernels for inputs of more bits convert the weights
		w.Type = in.Type(tokens)
	}
	w.FLOPs = 2*t*k*float64(hidden)*float64(up[1]) + 2*t*k*float64(hidden)*float64(inner) + t*float64(hidden)*(2*k-1)
	w.Bytes = 2*in.bytes(tokens) + part*(in.bytes(first)+in.bytes(first+1))
	for i := first + 2; i < len(in.dims); i++ {
		if d := in.Dims(i); len(d) > 1 && d[0] == up[0] && i != chosen && d[0] != rows {
			w.Bytes += part * in.bytes(i)
		}
	}
	return w, true
}
