package profile

// An Attention says what the inputs of an operator that computes attention are.
type Attention struct {
	Query int // the first of query, key, and value
	// HeadsFirst tells that these are [batch, heads, tokens, dim], and not [batch, tokens,
	// heads, dim].
	HeadsFirst bool
	Causal     int // which input tells whether attention is causal
	// Paged tells that keys and values are in a cache, or that sequences are put together,
	// so that shapes do not tell how long these are.
	Paged bool
}

// attentions are the operators that launch attention. aten::scaled_dot_product_attention is
// not among them: it calls one that is.
var attentions = map[string]Attention{
	"aten::_scaled_dot_product_flash_attention":     {HeadsFirst: true, Causal: 4},
	"aten::_scaled_dot_product_efficient_attention": {HeadsFirst: true, Causal: 6},
	"aten::_scaled_dot_product_cudnn_attention":     {HeadsFirst: true, Causal: 6},
	"flash_attn::_flash_attn_forward":               {Causal: 5},
	"FlashAttnFunc":                                 {Causal: 5},
	"flash_attn_3::fwd":                             {Causal: 24},
	"aiter::_flash_attn_forward":                    {Causal: 5},
	"aiter::mha_fwd":                                {Causal: 5},
	"aiter::fmha_v3_fwd":                            {Causal: 5},
	"aiter::wrapper_fmha_v3_fwd":                    {Query: 1, Causal: 6}, // its first input is the output

	"aiter::mha_batch_prefill":               {Paged: true},
	"aiter::paged_attention_ragged":          {Query: 2, Paged: true}, // behind the output and a workspace
	"aiter::pa_fwd_asm":                      {Paged: true},
	"flash_attn::_flash_attn_varlen_forward": {Paged: true},
	"sgl_kernel::fwd":                        {Paged: true}, // FlashAttention 3 of SGLang
	"sglang::unified_attention_with_output":  {Paged: true},
	"vllm::unified_attention":                {Paged: true},
	"vllm::unified_attention_with_output":    {Paged: true},
	"_vllm_fa2_C::varlen_fwd":                {Paged: true},
	"_vllm_fa3_C::fwd":                       {Paged: true},
}

// AttentionOf returns the inputs of an operator by its name; ok is false if it computes none.
func AttentionOf(name string) (a Attention, ok bool) {
	a, ok = attentions[name]
	return a, ok
}

// Causality says whether a token attends to those before it only.
type Causality uint8

const (
	UnknownCausality Causality = iota
	Bidirectional
	Causal
)

// String returns "yes" or "no", "" if it is unknown.
func (c Causality) String() string { return [...]string{"", "no", "yes"}[c] }
