package opportunity

import (
	"strings"

	"github.com/sgtrace/sgtrace/profile"
)

// A pattern is neighbors on a stream that one kernel can do.
type pattern struct {
	name string
	// kinds are what the neighbors compute, in order.
	kinds []profile.Kind
	// names are texts of which each neighbor's name has one, "" any, and without those that it
	// must not have: fused kernels, which do the work of several.
	names   []string
	without string
	how     string
	source  string
}

const (
	vllmFusions  = "https://docs.vllm.ai/en/stable/design/fusions/"
	sglangServer = "https://docs.sglang.io/advanced_features/server_arguments.html"
)

// patterns are tried in this order at each kernel: a kernel is in one only.
var patterns = []pattern{
	{name: "all-reduce, then norm", kinds: []profile.Kind{profile.KindCommunication, profile.KindNorm}, names: []string{"reduce", ""}, without: "fusion",
		how: "SGLang: --enable-flashinfer-allreduce-fusion; vLLM: pass_config fuse_allreduce_rms", source: vllmFusions + " " + sglangServer},
	{name: "norms of queries and keys, then rope", kinds: []profile.Kind{profile.KindNorm, profile.KindNorm, profile.KindRope}, without: "qk_norm_rope",
		how: "vLLM: pass_config enable_qk_norm_rope_fusion", source: vllmFusions},
	{name: "norm of queries and keys, then rope", kinds: []profile.Kind{profile.KindNorm, profile.KindRope}, without: "qk_norm_rope",
		how: "vLLM: pass_config enable_qk_norm_rope_fusion", source: vllmFusions},
	{name: "rope, then KV write", kinds: []profile.Kind{profile.KindRope, profile.KindKVWrite},
		how: "vLLM on ROCm: pass_config fuse_rope_kvcache", source: vllmFusions},
	{name: "norm, then quantization", kinds: []profile.Kind{profile.KindNorm, profile.KindQuantization}, without: "norm_quant",
		how: "vLLM: pass_config fuse_norm_quant", source: vllmFusions},
	{name: "activation, then quantization", kinds: []profile.Kind{profile.KindActivation, profile.KindQuantization}, without: "act_quant",
		how: "vLLM: pass_config fuse_act_quant", source: vllmFusions},
	{name: "attention, then quantization", kinds: []profile.Kind{profile.KindAttention, profile.KindQuantization},
		how: "vLLM: pass_config fuse_attn_quant", source: vllmFusions},
	{name: "residual add, then norm", kinds: []profile.Kind{profile.KindElementwise, profile.KindNorm}, names: []string{"add", ""}, without: "fused_add",
		how: "a norm that adds the residual, such as fused_add_rmsnorm of sgl-kernel and vLLM", source: vllmFusions},
}

// fits reports whether some kernels begin with a pattern.
func (p *pattern) fits(kernels []ran, of *kernelKinds) bool {
	if len(kernels) < len(p.kinds) {
		return false
	}
	for i, kind := range p.kinds {
		k := of.of(kernels[i].name)
		if k.kind != kind || p.without != "" && strings.Contains(k.lower, p.without) || p.names != nil && !strings.Contains(k.lower, p.names[i]) {
			return false
		}
	}
	return true
}

// small are kinds whose kernels move data and compute little: neighbors among them read again what the
// one before wrote.
var small = map[profile.Kind]bool{profile.KindElementwise: true, profile.KindCopy: true, profile.KindActivation: true, profile.KindReduction: true, profile.KindNorm: true,
	profile.KindQuantization: true}

// leastRun is how many of them are a run.
const leastRun = 3
