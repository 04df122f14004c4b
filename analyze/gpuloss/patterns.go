package gpuloss

import (
	"slices"
	"strings"

	"github.com/sgtrace/sgtrace/analyze/words"
	"github.com/sgtrace/sgtrace/profile/kernelname"
	"github.com/sgtrace/sgtrace/trace"
)

// A server is the program that ran the model.
type server string

const (
	anyServer server = ""
	sglang    server = "SGLang"
	vllm      server = "vLLM"
)

// switches are what turns a fusion on; "" if there is nothing.
type switches struct {
	cuda, rocm string
}

func (s switches) on(amd bool) string {
	if amd {
		return s.rocm
	}
	return s.cuda
}

// A pattern is neighbors on a stream that one kernel can replace.
type pattern struct {
	name string
	// kinds are the kinds of the neighbors, in order.
	kinds []kernelname.Kind
	// names has a text for each neighbor that its name must contain; "" is any name. without are texts
	// that no name may contain: they mark fused kernels, which do the work of several.
	names   []string
	without []string

	sglang, vllm switches
}

const (
	vllmFusions  = "https://docs.vllm.ai/en/stable/design/fusions/"
	sglangServer = "https://docs.sglang.io/advanced_features/server_arguments.html"
)

// patterns are tried in this order at each kernel. A kernel is in one pattern only.
var patterns = []pattern{
	{name: "all-reduce, then norm", kinds: []kernelname.Kind{kernelname.KindCommunication, kernelname.KindNorm}, names: []string{"reduce", ""}, without: []string{"fusion", "reduce_scatter", "reducescatter"},
		sglang: switches{"--enable-flashinfer-allreduce-fusion", "--enable-aiter-allreduce-fusion"}, vllm: switches{cuda: "pass_config fuse_allreduce_rms"}},
	{name: "sum over experts, then all-reduce", kinds: []kernelname.Kind{kernelname.KindRouting, kernelname.KindCommunication}, names: []string{"moe_sum", "reduce"}, without: []string{"fusion"},
		sglang: switches{cuda: "--enable-fused-moe-sum-all-reduce"}},
	{name: "copy, all-reduce, copy", kinds: []kernelname.Kind{kernelname.KindCopy, kernelname.KindCommunication, kernelname.KindCopy}, names: []string{"memcpy", "reduce", "memcpy"},
		sglang: switches{cuda: "--enable-symm-mem, whose buffers need no copies"}},
	{name: "norms of queries and keys, then rope", kinds: []kernelname.Kind{kernelname.KindNorm, kernelname.KindNorm, kernelname.KindRope}, without: ropeFused,
		sglang: qkNormSGLang, vllm: qkNormVLLM},
	{name: "norm of queries and keys, then rope", kinds: []kernelname.Kind{kernelname.KindNorm, kernelname.KindRope}, without: ropeFused,
		sglang: qkNormSGLang, vllm: qkNormVLLM},
	{name: "rope, then KV write", kinds: []kernelname.Kind{kernelname.KindRope, kernelname.KindKVWrite},
		vllm: switches{rocm: "pass_config fuse_rope_kvcache"}},
	{name: "norm, then quantization", kinds: []kernelname.Kind{kernelname.KindNorm, kernelname.KindQuantization}, without: []string{"norm_quant"},
		vllm: switches{"pass_config fuse_norm_quant", "pass_config fuse_norm_quant"}},
	{name: "activation, then quantization", kinds: []kernelname.Kind{kernelname.KindActivation, kernelname.KindQuantization}, without: []string{"act_quant", "mul_quant"},
		vllm: switches{"pass_config fuse_act_quant", "pass_config fuse_act_quant"}},
	{name: "attention, then quantization", kinds: []kernelname.Kind{kernelname.KindAttention, kernelname.KindQuantization},
		vllm: switches{"pass_config fuse_attn_quant", "pass_config fuse_attn_quant"}},
	{name: "residual add, then norm", kinds: []kernelname.Kind{kernelname.KindElementwise, kernelname.KindNorm}, names: []string{"add", "rms"}, without: []string{"fused_add", "add_rms", "triton_"},
		sglang: addNorm, vllm: addNorm},
}

var (
	// ropeFused are texts in the names of kernels that rotate queries and keys and do more: splitting
	// these for another fusion gains nothing.
	ropeFused    = []string{"qk_norm_rope", "qknorm_rope", "rope_store", "rope_kv", "rope_cat", "rope_concat", "set_kv", "and_cache"}
	qkNormSGLang = switches{"--enable-fused-qk-norm-rope", "--enable-fused-qk-norm-rope"}
	qkNormVLLM   = switches{"pass_config enable_qk_norm_rope_fusion", "pass_config enable_qk_norm_rope_fusion"}
	addNorm      = switches{"a norm that adds the residual: fused_add_rmsnorm", "a norm that adds the residual: add_rmsnorm of aiter"}
)

// how returns what would turn a fusion on, and where that is documented. It returns "" if the server
// has no switch for it: then there is no opportunity.
func (p *pattern) how(of server, amd bool) (how, source string) {
	s, v := p.sglang.on(amd), p.vllm.on(amd)
	switch of {
	case sglang:
		v = ""
	case vllm:
		s = ""
	}
	if s != "" {
		how, source = "SGLang: "+s, sglangServer
	}
	if v != "" {
		how, source = words.JoinNonEmpty("; ", how, "vLLM: "+v), words.JoinNonEmpty(" ", source, vllmFusions)
	}
	return how, source
}

// places are the positions in patterns that a kernel fits, by its name: a bit for each neighbor of each pattern.
type places uint64

// maxNeighbors is the most neighbors in a pattern.
const maxNeighbors = 3

// at returns the bit of a neighbor of a pattern.
func at(pattern, neighbor int) places { return 1 << (maxNeighbors*pattern + neighbor) }

func placesOf(k *kernelKind) places {
	all := places(0)
	has := func(text string) bool { return strings.Contains(k.lower, text) }
	for i := range patterns {
		p := &patterns[i]
		for n, kind := range p.kinds {
			if k.kind == kind && (p.names == nil || has(p.names[n])) && !slices.ContainsFunc(p.without, has) {
				all |= at(i, n)
			}
		}
	}
	return all
}

// fits reports whether a pattern matches the first kernels.
func fits(pattern int, kernels []ran, of *trace.PerName[*kernelKind]) bool {
	neighbors := len(patterns[pattern].kinds)
	if len(kernels) < neighbors {
		return false
	}
	for n := range neighbors {
		if of.Of(kernels[n].name).fits&at(pattern, n) == 0 {
			return false
		}
	}
	return true
}

// small are kinds of kernels that move data and compute little: each reads again what the neighbor
// before it wrote.
var small = map[kernelname.Kind]bool{kernelname.KindElementwise: true, kernelname.KindCopy: true, kernelname.KindActivation: true, kernelname.KindReduction: true, kernelname.KindNorm: true,
	kernelname.KindQuantization: true}

// minRun is the fewest small kernels in a row that are a run.
const minRun = 3

// compiled reports whether a compiler made any of the kernels: then it has already merged what it can.
func compiled(kernels []ran, of *trace.PerName[*kernelKind]) bool {
	return slices.ContainsFunc(kernels, func(k ran) bool { return strings.HasPrefix(of.Of(k.name).lower, "triton_") })
}
