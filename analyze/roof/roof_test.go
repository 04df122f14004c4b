package roof

import (
	"math"
	"testing"

	"github.com/sgtrace/sgtrace/profile"
)

// Work is that of TraceLens for a decode step of gpt-oss with 32 requests (GFLOPS_first, and Data Moved in
// MiB), where its formulas are right.
func TestWorkOfTraceLens(t *testing.T) {
	const bf16 = `"c10::BFloat16"`
	for _, c := range []struct {
		name, shapes, types string
		gflop, mib          float64
	}{
		{"aten::addmm", "[[5120],[32,2880],[2880,5120],[],[]]", "[" + bf16 + "," + bf16 + "," + bf16 + `,"Scalar","Scalar"]`, 0.94388224, 28.623046875},
		{"aten::mm", "[[32,2880],[2880,201088]]", "[" + bf16 + "," + bf16 + "]", 37.06454016, 1117.05859375},
	} {
		w, ok := WorkOf(c.name, ParseInputs(c.shapes, c.types))
		if !ok || math.Abs(w.FLOPs/1e9-c.gflop) > 1e-9 || math.Abs(w.Bytes/(1<<20)-c.mib) > 1e-6 {
			t.Errorf("%s %s: %.9f GFLOP, %.9f MiB, want %.9f, %.9f", c.name, c.shapes, w.FLOPs/1e9, w.Bytes/(1<<20), c.gflop, c.mib)
		}
	}
	step, _ := profile.ParseStep("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)")
	in := ParseInputs("[[32,64,64],[32,8,64],[32,8,64],[32,64,64],[],[],[],[0]]", "["+bf16+","+bf16+","+bf16+","+bf16+`,"","","",`+bf16+"]")
	w, ok := AttentionOf("vllm::unified_attention_with_output", in, *step.Lengths)
	if !ok || w.FLOPs != 902529024 || math.Abs(w.Bytes/(1<<20)-108.08984375) > 1e-9 {
		t.Errorf("attention: %.0f FLOP, %.9f MiB", w.FLOPs, w.Bytes/(1<<20))
	}
	g, _ := GPUOf("AMD Instinct MI300X")
	if ns, by := w.Roof(&g); by != ByMemory || math.Abs(ns-w.Bytes/5300) > 1 {
		t.Errorf("%.0f ns by %s", ns, by)
	}
}

// Experts read as many weights as random routing hits, and at most all.
func TestExperts(t *testing.T) {
	in := func(tokens string) Inputs {
		return ParseInputs("[["+tokens+",2048],[128,1536,2048],[128,2048,768],["+tokens+",8],["+tokens+",8]]", `["c10::BFloat16","c10::BFloat16","c10::BFloat16","float","int"]`)
	}
	one, ok := WorkOf("sglang::inplace_fused_experts", in("1"))
	if want := 2.0*2048*2 + 8*(1536*2048+2048*768)*2; !ok || math.Abs(one.Bytes-want) > 1 {
		t.Errorf("one token: %.0f bytes, want those of 8 experts, %.0f", one.Bytes, want)
	}
	many, _ := WorkOf("sglang::inplace_fused_experts", in("4096"))
	if want := 128.0 * (1536*2048 + 2048*768) * 2; many.Bytes < want || many.Bytes > 1.1*want {
		t.Errorf("4,096 tokens: %.0f bytes, want those of all experts, %.0f, and little more", many.Bytes, want)
	}
	if want := 4096.0 * 8 * 2 * (1536*2048 + 2048*768); many.FLOPs != want {
		t.Errorf("%.0f FLOP, want %.0f", many.FLOPs, want)
	}
}

// What shapes and types do not tell is not known, and never 0.
func TestUnknownWork(t *testing.T) {
	for _, c := range [][3]string{
		{"aten::mm", "[[4,8],[9,4]]", `["float","float"]`},
		{"aten::mm", "[[4,8],[8,4]]", `["a new type","float"]`},
		{"aten::sort", "[[4,8]]", `["float"]`},
		{"_C::rms_norm", "", ""},
	} {
		if w, ok := WorkOf(c[0], ParseInputs(c[1], c[2])); ok {
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
