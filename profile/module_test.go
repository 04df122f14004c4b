package profile_test

import (
	"testing"

	"github.com/sgtrace/sgtrace/profile"
)

func TestModuleClass(t *testing.T) {
	for name, want := range map[string]string{
		"nn.Module: Qwen3MLP_17": "Qwen3MLP",
		"nn.Module: Linear":      "Linear",
		"nn.Module: My_Block_2":  "My_Block",
		"nn.Module: My_Block":    "My_Block",
		"nn.Module: _7":          "_7",
		"model.py(3): forward":   "",
		"nn.Module: ":            "",
	} {
		if got := profile.ModuleClass(name); got != want {
			t.Errorf("%q is of class %q, want %q", name, got, want)
		}
	}
}
