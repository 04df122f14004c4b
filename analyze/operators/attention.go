package operators

import (
	"math"

	"github.com/sgtrace/sgtrace/profile"
)

// attentionWork returns the work of attention in one layer. Over a cache, it follows from the heads in
// the shapes and the lengths of the sequences of the step.
func attentionWork(name string, in *inputs, s setting) (w Work, ok bool) {
	if l, ok := latentOf(name, in); ok {
		return l.work(s)
	}
	rule, known := profile.AttentionOf(name)
	if !known {
		return w, false
	}
	if !rule.Paged {
		return apart(rule, in, s.Mask)
	}
	if s.Lengths == nil {
		return w, false
	}
	return paged(rule, in, s.Lengths, s.Mask)
}

// apart returns the work of attention whose inputs have a dimension of sequences. Of causal attention,
// half of the pairs count.
func apart(rule profile.Attention, in *inputs, m profile.Mask) (w Work, ok bool) {
	query, key, value := in.Dims(rule.Query), in.Dims(rule.Query+1), in.Dims(rule.Query+2)
	if len(query) != 4 || len(key) != 4 || len(value) != 4 {
		return w, false
	}
	heads, tokens := 2, 1
	if rule.HeadsFirst {
		heads, tokens = 1, 2
	}
	pairs := float64(query[0]) * float64(query[heads]) * attentionPairs(query[tokens], key[tokens], m)
	if math.IsNaN(pairs) {
		return w, false
	}
	w.Type = in.Type(rule.Query)
	w.FLOPs = 2 * pairs * float64(query[3]+value[3])
	result := in.count(rule.Query) / float64(query[3]) * float64(value[3])
	w.Bytes = in.bytes(rule.Query) + in.bytes(rule.Query+1) + in.bytes(rule.Query+2) + result*sizeOf(w.Type)
	return w, true
}

// attentionPairs returns for how many pairs of a query and a key of a sequence a head computes. It is
// NaN if that is unknown, as for causal attention with different numbers of queries and keys: libraries
// differ in which keys a query attends to.
func attentionPairs(queries, keys int64, m profile.Mask) float64 {
	q, k, window := float64(queries), float64(keys), float64(m.Window)
	if window == 0 || window > k {
		window = k
	}
	switch {
	case m.Causal == profile.Bidirectional:
		return q * window
	case m.Causal == profile.Causal && queries == keys:
		return window * (k - window/2) // the first queries have fewer keys before them
	}
	return math.NaN()
}

// pairs returns for how many pairs of a token and a key a head computes in a step. Half of the square
// of a chunk of a prompt is masked.
func pairs(l *profile.Lengths) (context, generation float64) {
	return float64(l.ContextPairs) - float64(l.ContextSquares)/2, float64(l.GenerationPairs)
}

// paged returns the work of attention over a cache of keys and values. These are inputs: those of the
// tokens of the step, or the cache itself, with a dimension of pages. Attention to a window needs less;
// if its arguments were not recorded, it seems to be faster than memory can be.
func paged(rule profile.Attention, in *inputs, l *profile.Lengths, m profile.Mask) (w Work, ok bool) {
	query, key, value := in.Dims(rule.Query), in.Dims(rule.Query+1), in.Dims(rule.Query+2)
	n := len(key)
	if n != 3 && n != 4 || len(value) != n {
		return w, false
	}
	kv, dims := float64(key[n-2]), float64(key[n-1]+value[n-1])
	var heads float64
	switch {
	case len(query) == 3 && query[2] == key[n-1]:
		heads = float64(query[1])
	case len(query) == 2 && query[1]%key[n-1] == 0:
		heads = float64(query[1] / key[n-1])
	default:
		return w, false
	}
	w.Type = in.Type(rule.Query)
	context, generation := pairs(l)
	tokens, keys := float64(l.ContextTokens+l.GenerationTokens), float64(l.ContextKeys+l.GenerationKeys)
	if m.Window > 0 {
		c := batch{float64(l.ContextTokens), float64(l.ContextKeys), float64(l.ContextSquares)}
		g := batch{float64(l.GenerationTokens), float64(l.GenerationKeys), float64(l.GenerationSquares)}
		window := float64(m.Window)
		context, generation = min(context, c.pairs(window)), min(generation, g.tokens*window)
		keys = c.read(window) + g.read(window)
	}
	w.FLOPs = 2 * heads * dims * (context + generation)
	w.Bytes = tokens*heads*dims*sizeOf(w.Type) + keys*kv*dims*sizeOf(in.Type(rule.Query+1))
	return w, true
}

// A batch is requests of a step of which only sums are known: each counts as if all were equal.
type batch struct {
	tokens, keys float64
	squares      float64 // sum of the squares of the tokens of each
}

// requests returns how many equal requests have these sums.
func (b *batch) requests() float64 {
	if b.squares == 0 {
		return 0
	}
	return b.tokens * b.tokens / b.squares
}

// read returns how many keys attention to a window reads: for each token of a request its own, and for
// the first token those before it in the window.
func (b *batch) read(window float64) float64 { return min(b.keys, b.tokens+b.requests()*(window-1)) }

// pairs returns for how many pairs of a token and a key a head computes, for chunks of prompts: the
// first tokens of a prompt have fewer keys before them than the window.
func (b *batch) pairs(window float64) float64 {
	n := b.requests()
	if n == 0 {
		return 0
	}
	tokens, before := b.tokens/n, (b.keys-b.tokens)/n
	fewer := max(0, min(tokens, window-before))
	return n * (fewer*before + fewer*fewer/2 + (tokens-fewer)*window)
}

// A latent is attention over a cache with one compressed row for each token, which all heads share:
// multi-head latent attention of DeepSeek's models.
type latent struct {
	heads  float64
	dim    float64 // of queries and keys, and so of a row of the cache
	value  float64 // of results: a part of the same row
	typ    string
	cached float64 // bytes of a number of the cache
}

// A latentRule says which inputs are the queries, without or with their part that has positions, that
// part if it is separate, and the cache.
type latentRule struct{ query, rope, cache int }

const noInput = -1

// latents are the operators of attention over a compressed cache.
var latents = map[string]latentRule{
	"sgl_kernel::cutlass_mla_decode": {1, 2, 3}, "_C::sm100_cutlass_mla_decode": {2, 3, 4}, "_C::cutlass_mla_decode": {1, 2, 3},
	"sgl_kernel::fwd_kvcache_mla": {0, noInput, 1}, "_flashmla_C::fwd_kvcache_mla": {0, noInput, 1}, "flash_mla::fwd_kvcache_mla": {0, noInput, 1},
	"aiter::mla_decode_stage1_asm_fwd": {0, noInput, 1},
	"sgl_kernel::fwd":                  {5, 0, 1}, // FlashAttention 3 with queries for values, its sixth input
}

// ropeDim is how many numbers of a row encode positions, in all models of this kind.
const ropeDim = 64

// latentOf reads the inputs of attention over a compressed cache; ok is false for other operators.
func latentOf(name string, in *inputs) (a latent, ok bool) {
	rule, known := latents[name]
	query := in.Dims(rule.query)
	n := len(query)
	if !known || n < 3 || in.Dims(rule.cache) == nil {
		return a, false
	}
	a = latent{heads: float64(query[n-2]), dim: float64(query[n-1]), value: float64(query[n-1]), typ: in.Type(rule.query), cached: sizeOf(in.Type(rule.cache))}
	if rule.rope == noInput {
		a.value -= ropeDim
	} else {
		a.dim += in.width(rule.rope)
	}
	return a, a.value > 0 && !math.IsNaN(a.dim)
}

// work returns the work of the attention: a row of the cache is read once, as key and as value.
func (a *latent) work(s setting) (w Work, ok bool) {
	if s.Lengths == nil {
		return w, false
	}
	context, generation := pairs(s.Lengths)
	tokens, keys := float64(s.Lengths.ContextTokens+s.Lengths.GenerationTokens), float64(s.Lengths.ContextKeys+s.Lengths.GenerationKeys)
	w.Type = a.typ
	w.FLOPs = 2 * a.heads * (a.dim + a.value) * (context + generation)
	w.Bytes = tokens*a.heads*(a.dim+a.value)*sizeOf(a.typ) + keys*a.dim*a.cached
	return w, true
}
