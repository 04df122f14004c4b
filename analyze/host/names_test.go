package host

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/sgtrace/sgtrace/trace"
)

// Names describe what a thread does, without the parts that vary from call to call.
func TestNames(t *testing.T) {
	syms := trace.NewSymbols()
	n := NewNames(syms)
	for _, c := range []struct {
		kind Kind
		name string
		want string // the name without the varying parts
		did  Activity
		own  bool
	}{
		{PythonFrame, "sglang/srt/managers/scheduler.py(2262): run_batch", "sglang/srt/managers/scheduler.py(2262): run_batch", InPython, true},
		{PythonFrame, "/usr/lib/python3/dist-packages/vllm/v1/engine/core.py(9): step", "/usr/lib/python3/dist-packages/vllm/v1/engine/core.py(9): step", InPython, true},
		{PythonFrame, "/usr/lib/python3.12/threading.py(359): wait", "/usr/lib/python3.12/threading.py(359): wait", Locked, false},
		{PythonFrame, "torch/nn/modules/module.py(1743): _call_impl", "torch/nn/modules/module.py(1743): _call_impl", InPython, false},
		{PythonFrame, "<built-in method item of Tensor object at 0x7f12ab>", "<built-in method item of Tensor>", InPython, false},
		{PythonFrame, "<built-in method acquire of _thread.lock object at 0x7f12ab>", "<built-in method acquire of _thread.lock>", Locked, false},
		{PythonFrame, "<built-in function sleep>", "<built-in function sleep>", Sleeping, false},
		{PythonFrame, "nn.Module: Linear_12", "nn.Module: Linear", InPython, false},
		{PythonFrame, "<eval_with_key>.51(4): forward", "<eval_with_key>(4): forward", InPython, true},
		{PythonFrame, "Python GC", "Python GC", Collecting, false},
		{RangeFrame, "step[DECODE bs=32]", "decode bs=17-32 step", InRange, false},
		{RangeFrame, "ProfilerStep#7", "ProfilerStep", InRange, false},
		{RangeFrame, "aten::copy_, seq = 7, op_id = 317168", "aten::copy_", InOperator, false},
		{SystemFrame, "pthread_cond_timedwait", "pthread_cond_timedwait", Locked, false},
		{SystemFrame, "epoll_wait", "epoll_wait", Sleeping, false},
		{SystemFrame, "read", "read", SystemCall, false},
		{CallFrame, "cudaMemcpyAsync", "cudaMemcpyAsync", Copying, false},
		{PageableFrame, "cudaMemcpyAsync_v3020", "cudaMemcpyAsync", CopyingPageable, false},
		{CallFrame, "cuModuleLoadData", "cuModuleLoadData", LoadingModule, false},
		{CallFrame, "cudaMalloc_v3020", "cudaMalloc", Allocating, false},
		{CallFrame, "hipDeviceSynchronize", "hipDeviceSynchronize", Syncing, false},
		{CallFrame, "cudaGraphLaunch", "cudaGraphLaunch", Launching, false},
		{CallFrame, "cudaEventRecord", "cudaEventRecord", OtherCall, false},
	} {
		m := n.Of(c.kind, syms.Intern(c.name))
		if syms.Name(m.Name) != c.want || m.Activity != c.did || m.Own != c.own {
			t.Errorf("%s is %q, %s, own %v", c.name, syms.Name(m.Name), m.Activity, m.Own)
		}
	}
}

// Names of Python functions are cut exactly as a regular expression cuts them, whatever characters they contain.
func TestPythonNamesAreCutAsByExpression(t *testing.T) {
	like := regexp.MustCompile(`^(.+)\((\d+)\): (.+)$`)
	pieces := []string{"(", ")", "(7): ", "12", "): ", ": ", "f", "a.py", "(3)", " "}
	random, cut := rand.New(rand.NewPCG(1, 2)), 0
	for range 20_000 {
		name := ""
		for range random.IntN(8) {
			name += pieces[random.IntN(len(pieces))]
		}
		file, line, function, ok := cutPython(name)
		m := like.FindStringSubmatch(name)
		if ok != (m != nil) || ok && (file != m[1] || line != m[2] || function != m[3]) {
			t.Fatalf("%q: %q %q %q %v, want %q", name, file, line, function, ok, m)
		}
		if ok {
			cut++
		}
	}
	if cut < 2000 {
		t.Errorf("%d of 20000 names are of functions: the test says little", cut)
	}
}
