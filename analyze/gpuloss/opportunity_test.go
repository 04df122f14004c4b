package gpuloss

import (
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/analyze/finding"
	"github.com/sgtrace/sgtrace/analyze/graphs"
	"github.com/sgtrace/sgtrace/analyze/operators"
	"github.com/sgtrace/sgtrace/analyze/profilewalk"
	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/testkit/testset"
	"github.com/sgtrace/sgtrace/trace"
)

// modelSet returns a stream of layers, each with the given kernels of 10 us.
func modelSet(layers int, blocks int64, kernels ...string) *profile.Set {
	syms := trace.NewSymbols()
	s := &testset.RowStream{}
	at := trace.Time(1_000_000)
	for range layers {
		for _, name := range kernels {
			k := profile.Kernel{Event: profile.Event{Start: at, End: at + 10_000, Name: syms.Intern(name), PID: 1}, Stream: 7}
			k.Shape = profile.LaunchShape{Blocks: blocks, Threads: 128}
			s.KernelRows = append(s.KernelRows, k)
			at += 11_000
		}
	}
	set := testset.SetOf(syms, []string{"rank 0"}, s)
	set.GPUs = []string{"NVIDIA H100 80GB HBM3"}
	return set
}

func find(set *profile.Set) (*Opportunities, *Fills) {
	opt := profilewalk.Options{}
	f := FindFaster(set, graphs.Read(set), operators.Beside{}, opt)
	return f.Opportunities, f.Fills
}

// A pattern is found if its kernels follow each other in every layer; it would save the time of all except the longest.
// It is not found if a fused kernel replaces it, if another kernel is in between, or if it is in only one layer.
func TestPatterns(t *testing.T) {
	attention, gemm := "flash_fwd_kernel", "nvjet_tst_64x8"
	for _, c := range []struct {
		kernels []string
		want    string
	}{
		{[]string{gemm, "vllm::rotary_embedding_kernel", "reshape_and_cache_flash_kernel", attention, gemm}, "rope, then KV write"},
		{[]string{gemm, attention, gemm, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "rms_norm_kernel"}, "all-reduce, then norm"},
		{[]string{gemm, "rms_norm_kernel", "rms_norm_kernel", "rotary_embedding_kernel", attention}, "norms of queries and keys, then rope"},
		{[]string{attention, gemm, "silu_and_mul_kernel", "per_token_group_quant_8bit_kernel", gemm}, "activation, then quantization"},
		{[]string{attention, gemm, "rms_norm_kernel", "dynamic_per_token_scaled_fp8_quant_kernel", gemm}, "norm, then quantization"},
		{[]string{attention, gemm, "elementwise_kernel_add", "rms_norm_kernel", gemm}, "residual add, then norm"},

		{[]string{gemm, "fused_qk_norm_rope_kernel", attention, gemm}, ""},
		{[]string{gemm, attention, gemm, "allreduce_fusion_kernel_oneshot_lamport", gemm}, ""},
		{[]string{attention, gemm, "silu_and_mul_per_block_quant_kernel", gemm}, ""},
		{[]string{attention, gemm, "fused_add_rms_norm_kernel", gemm}, ""},
		{[]string{gemm, "rotary_embedding_kernel", gemm, "reshape_and_cache_flash_kernel", attention}, ""},
	} {
		set := modelSet(8, 1000, c.kernels...)
		if c.want == "rope, then KV write" { // vLLM fuses these only on AMD
			set.GPUs = []string{"AMD Instinct MI300X"}
		}
		o, _ := find(set)
		switch {
		case c.want == "" && len(o.List) == 0:
		case c.want == "":
			t.Errorf("%s: %+v", strings.Join(c.kernels, " "), o.List)
		case len(o.List) != 1 || o.List[0].What != c.want || o.List[0].Instances != 8 || o.List[0].Saves != o.List[0].Total-8*10_000:
			t.Errorf("%s: %+v, want %s", strings.Join(c.kernels, " "), o.List, c.want)
		}
	}
	for _, c := range []struct {
		kernels []string
		found   bool
	}{
		{[]string{gemm, "vectorized_elementwise_kernel", "softmax_warp_forward", "elementwise_kernel", gemm}, true},
		{[]string{gemm, "softmax_warp_forward", gemm}, true},
		{[]string{gemm, "softmax_warp_forward", "moe_topk_kernel", gemm}, false}, // in a router
		{[]string{gemm, "softmax_warp_forward", "rms_norm_kernel", gemm}, false},
	} {
		o, _ := find(modelSet(8, 1000, append(c.kernels, "some_kernel")...))
		if found := len(o.List) == 1 && o.List[0].What == inPieces && o.List[0].Instances == 8 && o.List[0].Saves == o.List[0].Total; found != c.found || !found && len(o.List) > 0 {
			t.Errorf("%s: %+v", strings.Join(c.kernels, " "), o.List)
		}
	}
	var often []string
	for range 8 {
		often = append(often, attention, gemm)
	}
	if o, _ := find(modelSet(1, 1000, append(often, "rotary_embedding_kernel", "reshape_and_cache_flash_kernel")...)); len(o.List) > 0 {
		t.Errorf("in one layer of 8: %+v", o.List)
	}
}

// The share of time with fewer blocks than multiprocessors matches a count by hand.
func TestFills(t *testing.T) {
	for _, c := range []struct {
		blocks int64
		under  int64
	}{{131, 160_000}, {132, 0}, {0, 0}} {
		_, f := find(modelSet(8, c.blocks, "flash_fwd_kernel", "gemv"))
		if f.Under != c.under || f.All != 160_000 {
			t.Errorf("%d blocks: %d of %d ns", c.blocks, f.Under, f.All)
		}
	}
}

// A mostly empty last wave, registers that limit occupancy, and a kernel of one thread are
// reported. The cost of such a wave matches a count by hand.
func TestWhyNotFull(t *testing.T) {
	for _, c := range []struct {
		kernel string
		shape  profile.LaunchShape
		why    string
		idle   float64
	}{
		{"elementwise", profile.LaunchShape{Blocks: 132*2 + 66, Threads: 1024, Registers: 32}, "last wave", 1 - 1.25/2}, // two blocks fit in each of 132 multiprocessors
		{"elementwise", profile.LaunchShape{Blocks: 132 * 2 * 10, Threads: 1024, Registers: 32}, "", 0},
		{"elementwise", profile.LaunchShape{Blocks: 132 * 100, Threads: 256, Registers: 255}, "low occupancy", 0},
		{"nvjet_tst_64x8", profile.LaunchShape{Blocks: 132 * 100, Threads: 256, Registers: 255}, "", 0}, // designed that way
		{"argmax", profile.LaunchShape{Blocks: 1, Threads: 1, Registers: 32}, "one thread", 131.0 / 132},
	} {
		set := modelSet(1, 1, c.kernel)
		for i := range set.Streams[0].(*testset.RowStream).KernelRows {
			set.Streams[0].(*testset.RowStream).KernelRows[i].Shape = c.shape
		}
		f := FindFaster(set, graphs.Read(set), operators.Beside{}, profilewalk.Options{}).Fills
		switch {
		case c.why == "" && len(f.Rows) == 0:
		case len(f.Rows) != 1 || f.Rows[0].why() != c.why || math.Abs(f.Rows[0].idle()-c.idle) > 1e-9:
			t.Errorf("%s %+v: %+v, want %s, %g", c.kernel, c.shape, f.Rows, c.why, c.idle)
		}
	}
}

// Shared experts after the exchange of tokens could overlap with it, but not if something else fills the GPU meanwhile.
func TestOverlap(t *testing.T) {
	layer := []string{"flash_fwd_kernel", "deep_ep::dispatch", "grouped_gemm_kernel", "deep_ep::combine", "nvjet_tst", "silu_and_mul_kernel", "nvjet_tst"}
	of := func(o *Opportunities) (list []Opportunity) {
		for _, x := range o.List {
			if strings.HasPrefix(x.What, "exchange") {
				list = append(list, x)
			}
		}
		return list
	}
	set := modelSet(4, 1000, layer...)
	o, _ := find(set)
	if list := of(o); len(list) != 1 || list[0].Instances != 4 || list[0].Saves != 4*20_000 || list[0].Total != 4*50_000 {
		t.Errorf("%+v, want the 20 us of dispatch and combine in each of 4 layers", list)
	}
	rows := set.Streams[0].(*testset.RowStream)
	for _, k := range rows.KernelRows {
		k.Stream, k.Name = 9, set.Syms.Intern("fill_kernel")
		rows.KernelRows = append(rows.KernelRows, k)
	}
	if o, _ := find(set); len(of(o)) > 0 {
		t.Errorf("with another stream busy all the time: %+v", of(o))
	}
	o, _ = find(modelSet(4, 1000, layer[:4]...))
	if len(of(o)) > 0 {
		t.Errorf("without shared experts: %+v", of(o))
	}
}

// A fusion that the server cannot switch on is no opportunity.
func TestSwitches(t *testing.T) {
	set := modelSet(8, 1000, "nvjet_tst", "flash_fwd_kernel", "nvjet_tst", "silu_and_mul_kernel", "per_token_group_quant_8bit_kernel")
	if o, _ := find(set); len(o.List) != 1 || !strings.HasPrefix(o.List[0].How, "vLLM: ") {
		t.Errorf("unknown server: %+v", o.List)
	}
	set.Syms.Intern("sglang::unified_attention_with_output")
	if o, _ := find(set); len(o.List) != 0 {
		t.Errorf("SGLang: %+v", o.List)
	}
	set = modelSet(8, 1000, "nvjet_tst", "flash_fwd_kernel", "nvjet_tst", "silu_and_mul_kernel", "per_token_group_quant_8bit_kernel")
	set.Streams[0].(*testset.RowStream).RangeRows = []profile.Range{{Event: profile.Event{Name: set.Syms.Intern("step[DECODE bs=8]"), Start: 1, End: 2}}}
	if o, _ := find(set); len(o.List) != 0 {
		t.Errorf("SGLang by its steps: %+v", o.List)
	}
}

// Large possible savings are one finding, about the largest. Small ones are not mentioned.
func TestFinding(t *testing.T) {
	for _, c := range []struct {
		kernels []string
		want    string
	}{
		{[]string{"flash_fwd_kernel", "nvjet_tst", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "rms_norm_kernel", "nvjet_tst"}, "all-reduce, then norm"},
		{[]string{"flash_fwd_kernel", "nvjet_tst"}, ""},
	} {
		found, check := OpportunitiesFromKernels(modelSet(8, 1000, c.kernels...), profilewalk.Options{}).Finding()
		switch {
		case c.want == "" && len(found) == 0 && check.State() == finding.NotApplicable:
		case c.want == "" || len(found) != 1 || !strings.Contains(found[0].Text, c.want):
			t.Errorf("%v: %+v %+v, want %q", c.kernels, found, check, c.want)
		}
	}
}

// Each neighbor of each pattern has its own bit.
func TestPlacesOfPatterns(t *testing.T) {
	seen := places(0)
	for i := range patterns {
		for n := range patterns[i].kinds {
			if bit := at(i, n); n >= maxNeighbors || bit == 0 || seen&bit != 0 {
				t.Errorf("neighbor %d of %q has no place", n, patterns[i].name)
			} else {
				seen |= bit
			}
		}
	}
}
