package gaps

import "testing"

// What symbols are called, and whose code they are.
func TestFunctionOf(t *testing.T) {
	for _, c := range []struct {
		symbol, module string
		want           function
	}{
		{"drand(float*, int)", "/srv/softmax", function{"drand()", false, true}},
		{"Sim::step(float)::{lambda(int)#1}::operator()(int) const", "/srv/sim", function{"step()", false, true}},
		{"std::vector<int>::at(unsigned long)", "/srv/sim", function{"at()", false, false}},
		{"cudaMallocManaged", "/srv/sim", function{"cudaMallocManaged()", false, false}},
		{"libcudart_static_5382377d5c", "/srv/sim", function{"[libcudart_static]", false, false}},
		{"pthread_cond_wait@@GLIBC_2", "/usr/lib/libc.so.6", function{"pthread_cond_wait()", false, false}},
		{"at::native::add(at::Tensor const&)", "/opt/torch/lib/libtorch_cuda.so", function{"add()", false, false}},
		{"_PyEval_EvalFrameDefault", "/usr/bin/python3.12", function{"_PyEval_EvalFrameDefault()", true, false}},
		{"py::run_batch:/srv/sglang/scheduler.py", "//anon", function{"run_batch() (scheduler.py)", true, true}},
		{"run_batch", "/srv/sglang/scheduler.py", function{"run_batch() (scheduler.py)", true, true}},
		{"wait", "/usr/lib/python3.12/threading.py", function{"wait() (threading.py)", true, false}},
		{"[libcuda.so.1]", "/usr/lib64/libcuda.so.1", function{"[libcuda.so.1]", false, false}},
		{"[Broken backtraces]", "[Broken backtraces]", function{}},
		{"do_syscall_64", "[kernel.kallsyms]", function{"do_syscall_64()", false, false}},
	} {
		if got := functionOf(c.symbol, c.module); got != c.want {
			t.Errorf("%s in %s is %+v, want %+v", c.symbol, c.module, got, c.want)
		}
	}
}
