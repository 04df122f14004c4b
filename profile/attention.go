package profile

import (
	"math"
	"strconv"
	"strings"
)

// An Attention describes the inputs of an operator that computes attention.
type Attention struct {
	Query int // index of the query, before key and value
	// HeadsFirst means that these are [batch, heads, tokens, dim], and not [batch, tokens, heads, dim].
	HeadsFirst bool
	Causal     int // index of the input that says whether attention is causal
	// Windowed means that the two inputs after that one are the window: how many keys before and after its own a
	// token attends to; -1 is all.
	Windowed bool
	// Paged means that keys and values are in a cache, or that sequences are concatenated, so that shapes do not
	// show how long they are.
	Paged bool
}

// attentions are the operators that launch attention. aten::scaled_dot_product_attention is missing because it
// calls one of these.
var attentions = map[string]Attention{
	"aten::_scaled_dot_product_flash_attention":     {HeadsFirst: true, Causal: 4},
	"aten::_scaled_dot_product_efficient_attention": {HeadsFirst: true, Causal: 6},
	"aten::_scaled_dot_product_cudnn_attention":     {HeadsFirst: true, Causal: 6},
	"flash_attn::_flash_attn_forward":               {Causal: 5, Windowed: true},
	"FlashAttnFunc":                                 {Causal: 5},
	"flash_attn_3::fwd":                             {Causal: 24, Windowed: true},
	"aiter::_flash_attn_forward":                    {Causal: 5, Windowed: true},
	"aiter::mha_fwd":                                {Causal: 5, Windowed: true},
	"aiter::fmha_v3_fwd":                            {Causal: 5, Windowed: true},
	"aiter::wrapper_fmha_v3_fwd":                    {Query: 1, Causal: 6}, // its first input is the output

	"aiter::mha_batch_prefill":               {Paged: true, Causal: 12, Windowed: true},
	"aiter::paged_attention_ragged":          {Query: 2, Paged: true}, // after the output and a workspace
	"aiter::pa_fwd_asm":                      {Paged: true},
	"flash_attn::_flash_attn_varlen_forward": {Paged: true, Causal: 9, Windowed: true},
	"sgl_kernel::fwd":                        {Paged: true, Causal: 24, Windowed: true}, // FlashAttention 3 of SGLang
	"sglang::unified_attention_with_output":  {Paged: true},
	"vllm::unified_attention":                {Paged: true},
	"vllm::unified_attention_with_output":    {Paged: true},
	"_vllm_fa2_C::varlen_fwd":                {Paged: true, Causal: 15, Windowed: true},
	"_vllm_fa3_C::fwd":                       {Paged: true, Causal: 24, Windowed: true},
}

// AttentionOf returns the inputs of an operator by its name; ok is false if it does not compute attention.
func AttentionOf(name string) (a Attention, ok bool) {
	if a, ok = attentions[name]; ok {
		return a, true
	}
	if called, is := strings.CutPrefix(name, profiledAttention); is {
		a, ok = attentions["aiter::"+strings.TrimRight(called, "_0123456789")]
	}
	return a, ok
}

// profiledAttention is the prefix of operators that SGLang puts around those of AITER, for their shapes. The
// names end in a number: "sglang_profiler::attention_paged_attention_ragged_100".
const profiledAttention = "sglang_profiler::attention_"

// Causality is whether a token attends only to tokens up to its own.
type Causality uint8

const (
	UnknownCausality Causality = iota
	Bidirectional
	Causal
)

// String returns "yes" or "no", "" if it is unknown.
func (c Causality) String() string { return [...]string{"", "no", "yes"}[c] }

// A Mask describes which keys a token attends to.
type Mask struct {
	Causal Causality
	Window int32 // largest number of keys that it attends to, including its own; 0 is all, or unknown
}

// maskOf parses the texts of three inputs: whether attention is causal, and how many keys before and after its
// own a token attends to.
func maskOf(causal, before, behind string) (m Mask) {
	switch causal {
	case "True":
		m.Causal = Causal
	case "False":
		m.Causal = Bidirectional
	default:
		return m
	}
	left, err1 := strconv.ParseInt(before, 10, 32)
	right, err2 := strconv.ParseInt(behind, 10, 32)
	if err1 != nil || err2 != nil {
		return m
	}
	if right == 0 {
		m.Causal = Causal
	}
	if m.Causal == Causal {
		right = 0
	}
	if left >= 0 && right >= 0 && left+right < math.MaxInt32 {
		m.Window = int32(left + right + 1)
	}
	return m
}
