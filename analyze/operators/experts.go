package operators

import (
	"math"
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/profile/recorder"
)

// RoutedTokens is how tokens were spread over experts, as it was recorded.
type RoutedTokens struct {
	parts [][]float64 // for each layer, the part of the choices that fell on each expert
}

// RoutedTokensOf sums up what recorders counted, over all passes; nil if there is nothing.
func RoutedTokensOf(set *recorder.Experts) *RoutedTokens {
	if set.Empty() {
		return nil
	}
	r := &RoutedTokens{}
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

// hit returns how many experts get at least one of some tokens, if each token goes to k of them.
// Without a record for that many experts, each is equally likely.
func (r *RoutedTokens) hit(tokens, k, experts float64) float64 {
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

// maxChosen bounds how many experts a token goes to: an input with more columns has a number for each expert.
const maxChosen = 64

// expertsOf returns the work of fused experts. Operators of several libraries do that, with about the same
// inputs: hidden states, two weights for all experts, and the experts that each token goes to. Only the weights
// of experts that are hit are read, with their scales. In the end, the results of k experts are added up.
func expertsOf(name string, in *inputs, routed *RoutedTokens) (w Work, ok bool) {
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
		return len(d) == 2 && d[0] == rows && d[1] < min(maxChosen, up[0]) && d[1] > 0
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

// expertProduct returns the work of one product of experts. Its inputs are those of the operator that launches it,
// tokens and what the router says about each expert, and the tensors that this makes views of before: the weights of
// all experts, and rows, one for each expert that a token goes to. Results have as many columns as the weights, or half
// if an activation multiplies both halves. Scales for blocks of weights are not among the inputs, and do not count.
func expertProduct(name string, in *inputs, routed *RoutedTokens) (w Work, ok bool) {
	lower := strings.ToLower(name)
	tokens, router := in.Dims(0), in.Dims(1)
	if !strings.Contains(lower, "moe") && !strings.Contains(lower, "experts") || len(tokens) != 2 || len(router) != 2 || router[0] != tokens[0] {
		return w, false
	}
	experts := router[1]
	weights := -1
	for i, d := range in.dims {
		if len(d) != 3 || d[0] != experts || math.IsNaN(in.bytes(i)) {
			continue
		}
		if weights >= 0 {
			return w, false // there are several, and which one this is, is unknown
		}
		weights = i
	}
	if weights < 0 {
		return w, false
	}
	d, packing := in.Dims(weights), int64(1)
	if in.isPacked(weights) {
		packing = 2
	}
	for _, side := range [...][2]int64{{d[1] * packing, d[2]}, {d[2] * packing, d[1]}} {
		k, columns := side[0], side[1]
		read, _ := in.rowsOf(weights, k)
		written, width := in.rowsOf(weights, columns, columns/2)
		rows := max(read, written)
		if read == 0 || written == 0 || rows%tokens[0] != 0 || rows/tokens[0] > experts {
			continue
		}
		w.Type = in.Type(weights)
		if packing > 1 { // kernels for inputs of more bits convert the weights
			w.Type = in.Type(0)
		}
		part := routed.hit(float64(tokens[0]), float64(rows/tokens[0]), float64(experts)) / float64(experts)
		w.FLOPs = 2 * float64(rows) * float64(k) * float64(columns)
		w.Bytes = part*in.bytes(weights) + (float64(read)*float64(k)+float64(rows)*float64(width))*sizeOf(in.Type(0))
		return w, true
	}
	return w, false
}

// rowsOf returns the most rows of any matrix, except for input but, whose rows have one of some widths,
// and that width; 0 if there is none. The first width that any matrix has counts.
func (in *inputs) rowsOf(but int, widths ...int64) (rows, width int64) {
	for _, width = range widths {
		for i, d := range in.dims {
			if n := len(d); i != but && n >= 2 && d[n-1] == width {
				rows = max(rows, int64(product(d[:n-1])))
			}
		}
		if rows > 0 {
			return rows, width
		}
	}
	return 0, 0
}
