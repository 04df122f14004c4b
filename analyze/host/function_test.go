package host

import "testing"

// FunctionOf returns the name of a symbol, and whose code it is.
func TestFunctionOf(t *testing.T) {
	for _, c := range []struct {
		symbol, module string
		want           Function
	}{
		{"drand(float*, int)", "/srv/softmax", Function{"drand()", false, true}},
		{"Sim::step(float)::{lambda(int)#1}::operator()(int) const", "/srv/sim", Function{"step()", false, true}},
		{"std::vector<int>::at(unsigned long)", "/srv/sim", Function{"at()", false, false}},
		{"cudaMallocManaged", "/srv/sim", Function{"cudaMallocManaged()", false, false}},
		{"libcudart_static_5382377d5c", "/srv/sim", Function{"[libcudart_static]", false, false}},
		{"pthread_cond_wait@@GLIBC_2", "/usr/lib/libc.so.6", Function{"pthread_cond_wait()", false, false}},
		{"at::native::add(at::Tensor const&)", "/opt/torch/lib/libtorch_cuda.so", Function{"add()", false, false}},
		{"_PyEval_EvalFrameDefault", "/usr/bin/python3.12", Function{"_PyEval_EvalFrameDefault()", true, false}},
		{"py::run_batch:/srv/sglang/scheduler.py", "//anon", Function{"run_batch() (scheduler.py)", true, true}},
		{"run_batch", "/srv/sglang/scheduler.py", Function{"run_batch() (scheduler.py)", true, true}},
		{"wait", "/usr/lib/python3.12/threading.py", Function{"wait() (threading.py)", true, false}},
		{"[libcuda.so.1]", "/usr/lib64/libcuda.so.1", Function{"[libcuda.so.1]", false, false}},
		{"[Broken backtraces]", "[Broken backtraces]", Function{}},
		{"do_syscall_64", "[kernel.kallsyms]", Function{"do_syscall_64()", false, false}},
	} {
		if got := FunctionOf(c.symbol, c.module); got != c.want {
			t.Errorf("%s in %s is %+v, want %+v", c.symbol, c.module, got, c.want)
		}
	}
}
