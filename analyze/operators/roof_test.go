package operators

import (
	"math"
	"strings"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
	"github.com/sgtrace/sgtrace/profile/recorder"
)

// Work matches TraceLens for a decode step of gpt-oss with 32 requests
// (GFLOPS_first, and Data Moved in MiB), where its formulas are right.
func TestWorkOfTraceLens(t *testing.T) {
	const bf16 = `"c10::BFloat16"`
	for _, c := range []struct {
		name, shapes, types string
		gflop, mib          float64
	}{
		{"aten::addmm", "[[5120],[32,2880],[2880,5120],[],[]]", "[" + bf16 + "," + bf16 + "," + bf16 + `,"Scalar","Scalar"]`, 0.94388224, 28.623046875},
		{"aten::mm", "[[32,2880],[2880,201088]]", "[" + bf16 + "," + bf16 + "]", 37.06454016, 1117.05859375},
	} {
		w, ok := workOf(c.name, parseInputs(c.shapes, c.types), setting{})
		if !ok || math.Abs(w.FLOPs/1e9-c.gflop) > 1e-9 || math.Abs(w.Bytes/(1<<20)-c.mib) > 1e-6 {
			t.Errorf("%s %s: %.9f GFLOP, %.9f MiB, want %.9f, %.9f", c.name, c.shapes, w.FLOPs/1e9, w.Bytes/(1<<20), c.gflop, c.mib)
		}
	}
	step, _ := profile.ParseStep("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)")
	in := parseInputs("[[32,64,64],[32,8,64],[32,8,64],[32,64,64],[],[],[],[0]]", "["+bf16+","+bf16+","+bf16+","+bf16+`,"","","",`+bf16+"]")
	w, ok := workOf("vllm::unified_attention_with_output", in, setting{Lengths: step.Lengths})
	if !ok || w.FLOPs != 902529024 || math.Abs(w.Bytes/(1<<20)-108.08984375) > 1e-9 {
		t.Errorf("attention: %.0f FLOP, %.9f MiB", w.FLOPs, w.Bytes/(1<<20))
	}
	in = parseInputs("[[32,32,128],[9],[32,32,128],[835874,1,8,128],[835874,1,8,128],[33],[9]]", "["+bf16+`,"unsigned char",`+bf16+","+bf16+","+bf16+`,"int","int"]`)
	if w, ok := workOf("sglang_profiler::attention_paged_attention_ragged_100", in, setting{Lengths: &profile.Lengths{GenerationTokens: 32, GenerationKeys: 32784, GenerationSquares: 32, GenerationPairs: 32784}}); !ok ||
		w.FLOPs != 2*32*256*32784 {
		t.Errorf("attention of SGLang's profiler: %+v", w)
	}
	g, _ := GPUOf("AMD Instinct MI300X")
	if ns, by := w.roof(&g); by != ByMemory || math.Abs(ns-w.Bytes/5300) > 1 {
		t.Errorf("%.0f ns by %s", ns, by)
	}
}

// The weights read are those of the experts that random routing hits, at most all.
func TestExperts(t *testing.T) {
	in := func(tokens string) inputs {
		return parseInputs("[["+tokens+",2048],[128,1536,2048],[128,2048,768],["+tokens+",8],["+tokens+",8]]", `["c10::BFloat16","c10::BFloat16","c10::BFloat16","float","int"]`)
	}
	one, ok := workOf("sglang::inplace_fused_experts", in("1"), setting{})
	if want := 2.0*2048*2 + 8*(1536*2048+2048*768)*2; !ok || math.Abs(one.Bytes-want) > 1 {
		t.Errorf("one token: %.0f bytes, want those of 8 experts, %.0f", one.Bytes, want)
	}
	many, _ := workOf("sglang::inplace_fused_experts", in("4096"), setting{})
	if want := 128.0 * (1536*2048 + 2048*768) * 2; many.Bytes < want || many.Bytes > 1.1*want {
		t.Errorf("4,096 tokens: %.0f bytes, want those of all experts, %.0f, and little more", many.Bytes, want)
	}
	if want := 4096.0*8*2*(1536*2048+2048*768) + 4096*2048*15; many.FLOPs != want {
		t.Errorf("%.0f FLOP, want %.0f", many.FLOPs, want)
	}
}

// If shapes and types are insufficient, work is unknown, and never 0.
func TestUnknownWork(t *testing.T) {
	for _, c := range [][3]string{
		{"aten::mm", "[[4,8],[9,4]]", `["float","float"]`},
		{"aten::mm", "[[4,8],[8,4]]", `["a new type","float"]`},
		{"aten::sort", "[[4,8]]", `["float"]`},
		{"aten::addmm", "[[4,4],[4,8],[9,4]]", `["float","float","float"]`}, // no sum of two of its inputs
		{"aten::max_pool2d", "[[4,8]]", `["float"]`},
		{"_C::rms_norm", "", ""},
	} {
		if w, ok := workOf(c[0], parseInputs(c[1], c[2]), setting{}); ok {
			t.Errorf("%v: %+v", c, w)
		}
	}
	if _, ok := GPUOf("NVIDIA L40"); ok {
		t.Error("an L40 is no L40S, and no L4")
	}
	if g, ok := GPUOf("NVIDIA GB300"); !ok || g.Units != 152 {
		t.Errorf("GB300: %+v", g)
	}
}

// The scales of blocks are read, too. Two 4-bit numbers share a byte, and a matrix may be stored transposed.
func TestScaledProducts(t *testing.T) {
	const fp8, fp4, bytes, float = `"c10::Float8_e4m3fn"`, `"c10::Float4_e2m1fn_x2"`, `"unsigned char"`, `"float"`
	for _, c := range []struct {
		name, shapes, types string
		flop, bytes         float64
		typ                 string
	}{
		// DeepSeek: blocks of 128, with a 32-bit scale each.
		{"sglang::deep_gemm_fp8_fp8_bf16_nt", "[[64,7168],[64,56],[2112,7168],[17,56],[64,2112]]", "[" + fp8 + "," + float + "," + fp8 + "," + float + `,"c10::BFloat16"]`,
			2 * 64 * 7168 * 2112, 64*7168 + 64*56*4 + 2112*7168 + 17*56*4 + 64*2112*2, "c10::Float8_e4m3fn"},
		// NVFP4: blocks of 16, with an 8-bit scale each, which adds 12.5 % to the numbers themselves.
		{"sgl_kernel::cutlass_scaled_fp4_mm", "[[128,4096],[128,2048],[4096,2048],[128,256],[4096,256],[1]]", `["c10::BFloat16",` + bytes + "," + bytes + "," + fp8 + "," + fp8 + "," + float + "]",
			2 * 128 * 4096 * 4096, 128*4096*2 + 128*2048 + 4096*2048 + 128*256 + 4096*256 + 4, fourBits},
		{"aten::_scaled_mm", "[[128,2048],[2048,4096],[128,256],[4096,256],[],[],[],[]]", "[" + fp4 + "," + fp4 + "," + fp8 + "," + fp8 + `,"","","",""]`,
			2 * 128 * 4096 * 4096, 128*2048 + 4096*2048 + 128*256 + 4096*256 + 128*4096*2, fourBits},
		// 16 bits by 4 bits: the product is computed in 16 bits, on any GPU.
		{"vllm::gemm_with_dynamic_quant", "[[128,4096],[1024,2048],[1024,128]]", `["c10::BFloat16",` + bytes + "," + bytes + "]",
			2 * 128 * 4096 * 1024, 128*4096*2 + 1024*2048 + 1024*128 + 128*1024*2, "c10::BFloat16"},
		{"aten::_grouped_mm", "[[4096,2048],[128,2048,768],[128],[],[]]", `["c10::BFloat16","c10::BFloat16","int","",""]`,
			2 * 4096 * 2048 * 768, 4096*2048*2 + 128*2048*768*2 + 4096*768*2, "c10::BFloat16"},
		{"aten::_grouped_mm", "[[8,2048],[128,2048,768],[128],[],[]]", `["c10::BFloat16","c10::BFloat16","int","",""]`, // at most 8 of 128 groups have a row
			2 * 8 * 2048 * 768, 8*2048*2 + 8*2048*768*2 + 8*768*2, "c10::BFloat16"},
	} {
		w, ok := workOf(c.name, parseInputs(c.shapes, c.types), setting{})
		if !ok || w.FLOPs != c.flop || w.Bytes != c.bytes || w.Type != c.typ {
			t.Errorf("%s %s: %v %+v, want %.0f FLOP, %.0f bytes, %s", c.name, c.shapes, ok, w, c.flop, c.bytes, c.typ)
		}
	}
}

// A row of a compressed cache is read once, as key and value: 576 numbers, and not 576 + 512.
func TestLatentAttention(t *testing.T) {
	l := &profile.Lengths{GenerationTokens: 32, GenerationKeys: 55086, GenerationSquares: 32, GenerationPairs: 55086}
	const tokens, keys, heads = 32.0, 55086.0, 128.0
	for name, shapes := range map[string]string{
		"sgl_kernel::cutlass_mla_decode": "[[32,128,512],[32,128,512],[32,128,64],[9000,128,576],[32],[32,80],[9]]",
		"sgl_kernel::fwd_kvcache_mla":    "[[32,1,128,576],[9000,64,1,576],[],[32],[32,80],[],[],[9],[33]]",
		"sgl_kernel::fwd":                "[[32,128,64],[9000,1,1,64],[9000,1,1,512],[],[],[32,128,512],[],[33]]",
	} {
		types := strings.Repeat(`"c10::BFloat16",`, strings.Count(shapes, "[")-2) + `"c10::BFloat16"`
		w, ok := workOf(name, parseInputs(shapes, "["+types+"]"), setting{Lengths: l})
		flop, bytes := 2*heads*(576+512)*keys, tokens*heads*(576+512)*2+keys*576*2
		if !ok || w.FLOPs != flop || w.Bytes != bytes {
			t.Errorf("%s: %v %+v, want %.0f FLOP, %.0f bytes", name, ok, w, flop, bytes)
		}
		if _, ok := workOf(name, parseInputs(shapes, "["+types+"]"), setting{}); ok {
			t.Errorf("%s without lengths is known", name)
		}
	}
}

// Keys in an 8-bit cache take half the space. The cache itself is an input, with a dimension of pages.
func TestPagedAttention(t *testing.T) {
	l := &profile.Lengths{GenerationTokens: 16, GenerationKeys: 16000, GenerationSquares: 16, GenerationPairs: 16000}
	in := parseInputs("[[16,64,128],[4000,16,8,128],[4000,16,8,128],[],[],[]]", `["c10::BFloat16","c10::Float8_e4m3fn","c10::Float8_e4m3fn","","",""]`)
	w, ok := workOf("_vllm_fa3_C::fwd", in, setting{Lengths: l})
	if want := 16.0*64*256*2 + 16000*8*256; !ok || w.Bytes != want || w.FLOPs != 2*64*256*16000 {
		t.Errorf("%v %+v, want %.0f bytes", ok, w, want)
	}
}

// Attention to a window of 128 keys reads at most 128 keys per sequence: when decoding, for chunks of
// prompts, and if sequences have a dimension of their own. Pairs of tokens and keys are counted one by one.
func TestSlidingWindow(t *testing.T) {
	const heads, kv, dims, window, typ = 64.0, 8.0, 128.0, 128, `"c10::BFloat16"`
	mask := profile.Mask{Causal: profile.Causal, Window: window}
	counted := func(before, tokens int64) (pairs float64) {
		for i := range tokens {
			pairs += float64(min(before+i+1, window))
		}
		return pairs
	}
	in := parseInputs("[[32,64,64],[4000,16,8,64],[4000,16,8,64]]", "["+typ+","+typ+","+typ+"]")
	for _, c := range []struct {
		name                string
		l                   profile.Lengths
		tokens, keys, pairs float64
	}{
		{"decode", profile.Lengths{GenerationTokens: 32, GenerationKeys: 55086, GenerationSquares: 32, GenerationPairs: 55086}, 32, 32 * window, 32 * window},
		{"decode below the window", profile.Lengths{GenerationTokens: 32, GenerationKeys: 3200, GenerationSquares: 32, GenerationPairs: 3200}, 32, 3200, 3200},
		{"two prompts", profile.Lengths{ContextTokens: 2000, ContextKeys: 2000, ContextSquares: 2e6, ContextPairs: 2e6}, 2000, 2000, 2 * counted(0, 1000)},
		{"a later chunk", profile.Lengths{ContextTokens: 1000, ContextKeys: 9000, ContextSquares: 1e6, ContextPairs: 9e6}, 1000, 1127, counted(8000, 1000)},
	} {
		w, ok := workOf("_vllm_fa3_C::fwd", in, setting{Lengths: &c.l, Mask: mask})
		flop, bytes := 2*heads*dims*c.pairs, c.tokens*heads*dims*2+c.keys*kv*dims*2
		if !ok || math.Abs(w.FLOPs/flop-1) > 0.005 || w.Bytes != bytes {
			t.Errorf("%s: %v %.0f FLOP, %.0f bytes, want %.0f, %.0f", c.name, ok, w.FLOPs, w.Bytes, flop, bytes)
		}
	}
	if n, want := attentionPairs(1000, 1000, mask), counted(0, 1000); math.Abs(n/want-1) > 0.005 {
		t.Errorf("%.0f pairs, want %.0f", n, want)
	}
	if n := attentionPairs(100, 100, mask); n != 5000 { // all that causal attention needs, which averages 50 of 100
		t.Errorf("%.0f pairs", n)
	}
}

// If a record shows that a few experts get all tokens, only their weights are read.
func TestRoutedExperts(t *testing.T) {
	d := &recorder.ExpertDump{Layers: 1, Experts: 128, Passes: []int64{1}, Counts: make([]uint32, 128)}
	for e := range 16 {
		d.Counts[e] = 100
	}
	in := parseInputs("[[4096,2048],[128,1536,2048],[128,2048,768],[4096,8],[4096,8]]", `["c10::BFloat16","c10::BFloat16","c10::BFloat16","float","int"]`)
	w, ok := workOf("sglang::inplace_fused_experts", in, setting{Routed: RoutedTokensOf(&recorder.Experts{Dumps: []*recorder.ExpertDump{d}})})
	if want := 2*4096.0*2048*2 + 16*(1536*2048+2048*768)*2; !ok || math.Abs(w.Bytes-want) > 1 {
		t.Errorf("%v, %.0f bytes, want those of 16 experts, %.0f", ok, w.Bytes, want)
	}
}

// An all-reduce sends 2 (n-1)/n of its tensor, and takes the time that the link needs for that.
func TestAllReduce(t *testing.T) {
	w, ok := workOf("sgl_kernel::all_reduce_reg", parseInputs("[[],[4096,2048],[4096,2048]]", `["Scalar","c10::BFloat16","c10::BFloat16"]`), setting{})
	g, _ := GPUOf("NVIDIA H100 80GB HBM3")
	if n := gpusOf("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(vllm::RankData*)"); !ok || n != 4 {
		t.Fatalf("%v %+v, %d GPUs", ok, w, n)
	}
	w = w.amongGPUs(4)
	if ns, by := w.roof(&g); by != ByLink || math.Abs(ns-4096*2048*2*1.5/450) > 1 {
		t.Errorf("%.0f ns by %s", ns, by)
	}
}

// The rated clock of data sheets' peaks is the boost clock that these give for matrices.
func TestRatedClocks(t *testing.T) {
	for name, mhz := range map[string]float64{"NVIDIA A100-SXM4-80GB": 1410, "NVIDIA H100 80GB HBM3": 1830, "NVIDIA H100 PCIe": 1620, "NVIDIA L4": 2040,
		"AMD Instinct MI300X": 2100, "AMD Instinct MI325X": 2100, "AMD Instinct MI355X": 2400} {
		g, ok := GPUOf(name)
		if !ok || math.Abs(g.rated()-mhz) > 4 {
			t.Errorf("%s: %.1f MHz, want %.0f", name, g.rated(), mhz)
		}
		if h := g.atClock(mhz / 2); math.Abs(h.Half/g.Half-0.5) > 0.001 || h.Bandwidth != g.Bandwidth {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

// The number of blocks per multiprocessor matches NVIDIA's occupancy calculator.
func TestResident(t *testing.T) {
	g, _ := GPUOf("NVIDIA H100 80GB HBM3")
	for _, c := range []struct {
		shape     profile.LaunchShape
		blocks    int64
		occupancy float64
		by        Limit
	}{
		{profile.LaunchShape{Blocks: 1000, Threads: 256, Registers: 32}, 8, 1, ByThreads},
		{profile.LaunchShape{Blocks: 1000, Threads: 256, Registers: 128}, 2, 0.25, ByRegisters},
		{profile.LaunchShape{Blocks: 1000, Threads: 128, Registers: 32, Shared: 100 << 10}, 2, 0.125, ByShared},
		{profile.LaunchShape{Blocks: 1000, Threads: 32, Registers: 32}, 32, 0.5, ByBlocks},
	} {
		if n, occupancy, by, ok := g.Resident(c.shape); !ok || n != c.blocks || occupancy != c.occupancy || by != c.by {
			t.Errorf("%+v: %d blocks, %g, %s, want %d, %g, %s", c.shape, n, occupancy, by, c.blocks, c.occupancy, c.by)
		}
	}
}

// Layers whose work follows from recorded values match TraceLens, which ignores the bias of a
// convolution: the patches of a vision model, a convolution of an image decoder, and a batch norm.
func TestLayersWithValues(t *testing.T) {
	for _, c := range []struct {
		name, shapes, values string
		flops, bytes         float64
	}{
		{"aten::convolution", "[[128,3,224,224],[768,3,16,16],[768],[],[],[],[],[],[]]", `["","","","[16, 16]","[0, 0]","[1, 1]","False","[0, 0]","1"]`,
			2*3*16*16*128*768*14*14 + 128*768*14*14, 2 * (128*3*224*224 + 768*3*16*16 + 768 + 128*768*14*14)},
		{"aten::convolution", "[[1,8,5,5],[8,4,3,3],[],[],[],[],[],[],[]]", `["","","","[2, 2]","[1, 1]","[1, 1]","True","[1, 1]","2"]`,
			2 * 4 * 3 * 3 * 8 * 5 * 5, 2 * (8*5*5 + 8*4*3*3 + 8*10*10)},
		{"aten::native_batch_norm", "[[10,64,56,56],[64],[64],[64],[64],[],[],[]]", `["","","","","","False","0.1","1e-05"]`, 2*10*64*56*56 + 6*64, 2 * (2*10*64*56*56 + 4*64)},
		{"aten::native_group_norm", "[[1,128,64,64],[128],[128],[],[],[],[],[]]", "", 5 * 128 * 64 * 64, 2 * (2*128*64*64 + 2*128)},
	} {
		w, ok := workOf(c.name, parseInputs(c.shapes, `["c10::BFloat16","c10::BFloat16","c10::BFloat16"]`), setting{Values: c.values})
		if !ok || w.FLOPs != c.flops || w.Bytes != c.bytes {
			t.Errorf("%s %s: %.0f operations, %.0f bytes, want %.0f, %.0f", c.name, c.shapes, w.FLOPs, w.Bytes, c.flops, c.bytes)
		}
	}
	for _, values := range []string{"", "[]", `["","","","[0, 0]","[0, 0]","[1, 1]","False","[0, 0]","1"]`, "[1,2,3]"} {
		if w, ok := workOf("aten::convolution", parseInputs("[[1,3,9,9],[3,3,3,3],[]]", `["float","float",""]`), setting{Values: values}); ok {
			t.Errorf("values %q: %+v", values, w)
		}
	}
}

// FLOPs and bytes of the two products of gpt-oss's experts, with weights as captured, match a
// count by hand. Inputs that do not fit have unknown work.
func TestExpertProduct(t *testing.T) {
	const operator = "[[32,3072],[32,32],[],[],"
	types := `["c10::BFloat16","c10::BFloat16","","","unsigned char","c10::BFloat16","c10::BFloat16"]`
	hit := 1 - math.Pow(28.0/32, 32) // share of experts that 32 tokens hit, with 4 experts each
	for _, c := range []struct {
		views        string
		flops, bytes float64
	}{
		{"[32,1536,5888],[32,3072],[1,128,2944]]", 2 * 128 * 3072 * 5888, hit*32*1536*5888 + 2*(32*3072+128*2944)},
		{"[32,1472,3072],[128,2944],[1,32,3072]]", 2 * 128 * 2944 * 3072, hit*32*1472*3072 + 2*(128*2944+128*3072)},
		{"[16,1472,3072],[128,2944],[1,32,3072]]", 0, 0},    // weights of a different number of experts
		{"[32,1472,3072],[130,2944],[1,32,3072]]", 0, 0},    // the number of rows is no multiple of the tokens' choices
		{"[32,1472,3072],[32,1536,5888],[128,2944]]", 0, 0}, // two weight tensors
		{"[32,1472,3072],[128,2900],[1,32,3072]]", 0, 0},    // rows of a different width
	} {
		w, ok := workOf("vllm::moe_forward", parseInputs(operator+c.views, types), setting{})
		if ok != (c.flops > 0) || w.FLOPs != c.flops || math.Abs(w.Bytes-c.bytes) > 1 {
			t.Errorf("%s: %.0f operations, %.0f bytes, want %.0f, %.0f", c.views, w.FLOPs, w.Bytes, c.flops, c.bytes)
		}
	}
}

// A collective sends the bytes that nccl-tests count, over the links of one host. Between
// hosts, or among unknown ranks, they are unknown.
func TestCommunication(t *testing.T) {
	for _, c := range []struct {
		values string
		sent   float64 // 0 is unknown
	}{
		{`["allreduce","BFloat16","1000000","1000000","4","[0, 1, 2, 3]"]`, 2 * 3.0 / 4 * 2e6},
		{`["_allgather_base","Float","1000","8000","8","[8, 9, 10, 11, 12, 13, 14, 15]"]`, 7.0 / 8 * 32_000},
		{`["allreduce","BFloat16","1000000","1000000","2","[0, 8]"]`, 0},
		{`["allreduce","BFloat16","1000000","1000000","16","[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]"]`, 0},
		{`["allreduce","BFloat16","1000000","1000000","4",""]`, 0},
		{`["wait","Byte","0","0","1","[]"]`, 0},
		{`["allreduce","BFloat16","","","4","[0, 1, 2, 3]"]`, 0},
		{`[]`, 0}, {"", 0},
	} {
		w, ok := workOf(profile.CommunicationOperator, inputs{}, setting{Values: c.values})
		if ok != (c.sent > 0) || w.Sent != c.sent {
			t.Errorf("%s: %.0f bytes, want %.0f", c.values, w.Sent, c.sent)
		}
	}
	g, _ := GPUOf("NVIDIA H100 80GB HBM3")
	w, _ := workOf(profile.CommunicationOperator, inputs{}, setting{Values: `["allreduce","BFloat16","1000000","1000000","4","[0, 1, 2, 3]"]`})
	if ns, by := w.roof(&g); by != ByLink || math.Abs(ns-3e6/450) > 1 {
		t.Errorf("%.0f ns by %s", ns, by)
	}
}
