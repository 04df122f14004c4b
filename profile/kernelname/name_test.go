package kernelname

import (
	"strings"
	"testing"
)

func TestParseKernelName(t *testing.T) {
	for name, want := range map[string]Name{
		"void (anonymous namespace)::all_reduce_two_shot_kernel<bf16, (bool)1>((anonymous namespace)::Params, device::Pull)": {"", "all_reduce_two_shot_kernel"},
		"void sglang::(anonymous namespace)::reduce<4>(int)":                                                                 {"sglang::", "reduce"},
		"void <unnamed>::softmax<float, (int)10>(T2 *)":                                                                      {"", "softmax"},
		"{anonymous}::f(int)": {"", "f"},
		"void deep_ep::internode_ll::dispatch<true, false, 7168>(void*)":                       {"deep_ep::internode_ll::", "dispatch"},
		"std::enable_if<(1 > 0), void>::type at::native::f<int>(int)":                          {"at::native::", "f"},
		"void gpu<at::(anonymous namespace)::g(int)::{lambda(float)#1}>(int)":                  {"", "gpu"},
		"void f<decltype(a->b), (3>2), (1<2)>::g(int)":                                         {"f::", "g"},
		"bool ns::operator()(int) const":                                                       {"ns::", "operator()"},
		"ns::A& ns::operator<<(int)":                                                           {"ns::", "operator<<"},
		"operator new(unsigned long)":                                                          {"", "operator new"},
		"my_operator(int)":                                                                     {"", "my_operator"},
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)":           {"", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"},
		"void f(int) [clone .kd]":                                                              {"", "f"},
		"f [clone .kd]":                                                                        {"", "f"},
		"_ZN5aiter26cross_device_reduce_1stageIDF16bLi8EEEvPNS_8RankDataENS_11RankSignalsE.kd": {"aiter::", "cross_device_reduce_1stage"},
		"_ZN12_GLOBAL__N_126all_reduce_two_shot_kernelIfLi8EEEvPT_":                            {"", "all_reduce_two_shot_kernel"},
		"void cut::off<int, at::nat":                                                           {"cut::", "off"},
		"triton_poi_fused_add_0":                                                               {"", "triton_poi_fused_add_0"},
		"nccl:all_reduce":                                                                      {"", "nccl:all_reduce"},
		"":                                                                                     {}, "<<<": {}, "()": {}, "(anonymous namespace)::": {}, "::": {"::", ""}, ")>)": {"", ""},
	} {
		if got := Parse(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// FuzzParseKernelName composes names from parts in each of the profilers' formats. Parsing returns
// the parts.
func FuzzParseKernelName(f *testing.F) {
	f.Add("all_reduce_two_shot_kernel", "sglang", "__nv_bfloat16, (int)4, a::b<c>", uint8(0))
	f.Add("operator()", "at::native", "decltype(x->y), (3>2)", uint8(7))
	f.Add("f", "", "", uint8(255))
	f.Fuzz(func(t *testing.T, bare, scope, types string, form uint8) {
		Parse(bare + scope + types) // must end, whatever the text
		if !isWord(bare) || scope != "" && !isWord(scope) || !balanced(types) {
			return
		}
		want := Name{Bare: bare}
		text := ""
		if scope != "" {
			text, want.Scope = scope+"::", scope+"::"
		}
		if form&1 != 0 {
			text += withoutName[int(form>>4)%3] + "::"
		}
		if text += bare; form&2 != 0 {
			text += "<" + types + ">"
		}
		if form&4 != 0 {
			text += "(" + types + ")"
		}
		if form&8 != 0 {
			text = "void " + text
		}
		if got := Parse(text); got != want {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	})
}

// isWord reports whether a text is an identifier without a special meaning.
func isWord(text string) bool {
	for i, c := range text {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return text != "" && text != "operator" && !strings.HasPrefix(text, "_Z")
}

// balanced reports whether the brackets in a text match.
func balanced(text string) bool {
	var open []rune
	for _, c := range text {
		switch c {
		case '(', '<':
			open = append(open, c)
		case ')', '>':
			if len(open) == 0 || (c == ')') != (open[len(open)-1] == '(') {
				return false
			}
			open = open[:len(open)-1]
		case '-':
			return false
		}
	}
	return len(open) == 0
}
