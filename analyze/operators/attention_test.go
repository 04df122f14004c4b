package operators

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testinput"
	"github.com/sgtrace/sgtrace/testkit/testset"
)

// Attention in a real trace matches TraceLens (SDPA_fwd.csv of its tests:
// parameters, name_count, GFLOPS_first, Kernel Time (us)_sum).
func TestAttentionOfTraceLens(t *testing.T) {
	path := testinput.Shared(t, "data", "torch", "real", "tracelens+tests__traces__h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz")
	set, _ := testset.TorchSet(t, path)
	set.GPUs = []string{"NVIDIA H100 80GB HBM3"}
	all := Sum(set, profilewalk.Options{}).Attention
	if len(all) != 1 {
		t.Fatalf("%d rows", len(all))
	}
	a := all[0]
	if a.B != 16 || a.Queries != 559 || a.Heads != 16 || a.Keys != 559 || a.KVHeads != 16 || a.Dim != 64 || a.ValueDim != 64 || a.Mask.Causal != profile.Causal || a.Working != 24 {
		t.Errorf("%+v", a)
	}
	if gflop := a.FLOPs / 24 / 1e9; math.Abs(gflop-10.239377408) > 1e-9 || math.Abs(float64(a.GPU)/1e3-2722.704) > 0.01 || math.Abs(a.achieved()/a.peak()-0.0912) > 1e-4 {
		t.Errorf("%v GFLOP, %d ns, %v of the peak", gflop, a.GPU, a.achieved()/a.peak())
	}
}

// FLOPs follow from shapes if these are complete: two products of 2*M*N*K, or half
// of that if attention is causal.
func TestAttentionOfShapes(t *testing.T) {
	const sdpa, flash = "aten::_scaled_dot_product_flash_attention", "flash_attn::_flash_attn_forward"
	const no, yes, unknown = profile.Bidirectional, profile.Causal, profile.UnknownCausality
	for _, c := range []struct {
		name, shapes   string
		causal         profile.Causality
		found          bool
		queries, heads int64
		flops          float64 // of both calls; -1 is unknown
	}{
		{sdpa, "[[3,4,5,8],[3,2,7,8],[3,2,7,6],[],[],[],[]]", no, true, 5, 4, 2 * 3 * 4 * (2*5*7*8 + 2*5*7*6)},
		{sdpa, "[[3,4,5,8],[3,2,5,8],[3,2,5,6],[],[],[],[]]", yes, true, 5, 4, 2 * 3 * 4 * (5*5*8 + 5*5*6)},
		{flash, "[[3,5,4,8],[3,7,2,8],[3,7,2,6],[],[],[]]", no, true, 5, 4, 2 * 3 * 4 * (2*5*7*8 + 2*5*7*6)},
		{"aiter::wrapper_fmha_v3_fwd", "[[1],[3,5,4,8],[3,7,2,8],[3,7,2,6],[]]", no, true, 5, 4, 2 * 3 * 4 * (2*5*7*8 + 2*5*7*6)},
		{sdpa, "[[3,4,5,8],[3,2,7,8],[3,2,7,6]]", yes, true, 5, 4, -1}, // which keys a query attends to differs between libraries
		{sdpa, "[[3,4,5,8],[3,2,7,8],[3,2,7,6]]", unknown, true, 5, 4, -1},
		{sdpa, "[[3,4,5,8],[3,2,7,9],[3,2,7,6]]", no, true, -1, -1, -1}, // the dimensions do not match
		{sdpa, "", no, true, -1, -1, -1},
		{"vllm::unified_attention_with_output", "[[5,4,8],[7,2,8],[7,2,6]]", unknown, true, -1, -1, -1},
		{"aten::scaled_dot_product_attention", "[[3,4,5,8],[3,2,7,8],[3,2,7,6]]", no, false, 0, 0, 0},
	} {
		a, ok := attentionOf(&Row{Row: profilewalk.Row{Name: c.name}, Shapes: c.shapes, Mask: profile.Mask{Causal: c.causal}, Working: 2, GPU: 1000}, "")
		flops := a.FLOPs
		if math.IsNaN(flops) {
			flops = -1
		}
		if ok != c.found || a.Queries != c.queries || a.Heads != c.heads || flops != c.flops {
			t.Errorf("%s %s: %+v, %v", c.name, c.shapes, a, ok)
		}
	}
}
