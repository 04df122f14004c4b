package profile_test

import (
	"testing"

	"github.com/sgtrace/sgtrace/profile"
)

func TestModuleClass(t *testing.T) {
	for name, want := range map[string]string{
		"nn.Module: Qwen3MLP_17":        "Qwen3MLP",
		"nn.Module: Linear":             "Linear",
		"nn.Module: My_Block_2":         "My_Block",
		"nn.Module: My_Block":           "My_Block",
		"nn.Module: _7":                 "_7",
		"nn.Module: model.layers.3.mlp": "model.layers.*.mlp",
		"model.py(3): forward":          "",
		"nn.Module: ":                   "",
	} {
		if got := profile.ModuleClass(name); got != want {
			t.Errorf("%q is of class %q, want %q", name, got, want)
		}
	}
}

func TestCutModuleRange(t *testing.T) {
	for text, want := range map[string]string{
		"{'Module': 'model.layers.3.mlp', 'TrainableParams': {'weight': (8, 4)}}": "nn.Module: model.layers.3.mlp",
		"domain:{'Module': 'lm_head'}":                                            "nn.Module: lm_head",
		"{'Module': ''}":                                                          "",
		"{'Module': 'cut":                                                         "",
		"x {'a': 1} {'Module': 'm'}":                                              "",
		"step":                                                                    "",
	} {
		if got, ok := profile.CutModuleRange(text); ok != (want != "") || ok && got != want {
			t.Errorf("%q is %q, %v, want %q", text, got, ok, want)
		}
	}
}
