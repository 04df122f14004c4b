package profile

import "testing"

// Ranges in the formats of several versions of torch/csrc/profiler/util.cpp, and others.
func TestCutOperatorRange(t *testing.T) {
	for _, c := range []struct {
		text, name, shapes string
		ok                 bool
	}{
		{"aten::mm, seq = 12, op_id = 7, sizes = [[8, 4096], [4096, 1024]], input_op_ids = [(3,0), (4,0)]", "aten::mm", "[[8,4096],[4096,1024]]", true},
		{"aten::mm, seq = 12, sizes = [[8, 4096], [], [4096, 1024]]", "aten::mm", "[[8,4096],[],[4096,1024]]", true},
		{"aten::empty, op_id = 3, sizes = [[], [], []]", "aten::empty", "[[],[],[]]", true},
		{"aten::empty, sizes = []", "aten::empty", "[]", true},
		{"autograd::engine::evaluate_function: MmBackward0, seq = 5, op_id = 9", "autograd::engine::evaluate_function: MmBackward0", "", true},
		{"aten::mm", "", "", false},
		{"decode bs=8, tokens=3", "", "", false},
		{", seq = 3", "", "", false},
		{"", "", "", false},
	} {
		name, shapes, ok := CutOperatorRange(c.text)
		if name != c.name || shapes != c.shapes || ok != c.ok {
			t.Errorf("%q is %q of %q, %v", c.text, name, shapes, ok)
		}
	}
}
